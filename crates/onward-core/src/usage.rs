//! Token counts that model APIs report.

/// The tokens of one or more model responses. A part that an API does not report is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Input that was not read from a cache and not written to one.
    pub input: u64,
    /// Input that was written to a cache.
    pub cache_creation: u64,
    /// Input that was read from a cache.
    pub cache_read: u64,
    /// Output, including reasoning.
    pub output: u64,
}

impl TokenUsage {
    /// All tokens.
    pub const fn total(&self) -> u64 {
        self.input
            .saturating_add(self.cache_creation)
            .saturating_add(self.cache_read)
            .saturating_add(self.output)
    }

    /// The sum of two counts.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_creation: self.cache_creation.saturating_add(other.cache_creation),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            output: self.output.saturating_add(other.output),
        }
    }

    /// What this count adds to an earlier one of the same response.
    #[must_use]
    pub const fn beyond(self, earlier: Self) -> Self {
        Self {
            input: self.input.saturating_sub(earlier.input),
            cache_creation: self.cache_creation.saturating_sub(earlier.cache_creation),
            cache_read: self.cache_read.saturating_sub(earlier.cache_read),
            output: self.output.saturating_sub(earlier.output),
        }
    }
}
