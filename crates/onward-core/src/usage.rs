//! Token counts that model APIs report, and how to read them from the transcript of Claude Code.

use memchr::{memchr_iter, memmem, memrchr};
use serde::Deserialize;

/// The number of last responses whose counts are kept.
const MAX_RECENT: usize = 8;

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

/// The lines of a transcript that [`read_transcript`] read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscriptPart {
    /// The number of bytes of complete lines.
    pub length: usize,
    /// Their tokens, without those that were counted with an earlier line of the same response.
    pub tokens: TokenUsage,
}

/// Counts the tokens in the complete lines at the beginning of `bytes`.
///
/// A response is several lines with the same message id and the same usage, which counts once; later
/// lines may report more output. `recent` has the counts of the last responses.
pub fn read_transcript(recent: &mut Vec<(String, TokenUsage)>, bytes: &[u8]) -> TranscriptPart {
    let length = memrchr(b'\n', bytes).map_or(0, |end| end + 1);
    let mut tokens = TokenUsage::default();
    let mut start = 0;
    for end in memchr_iter(b'\n', bytes) {
        let line = bytes.get(start..end).unwrap_or_default();
        if let Some((id, usage)) = response_usage(line) {
            tokens = tokens.plus(new_tokens(recent, id, usage));
        }
        start = end + 1;
    }
    TranscriptPart { length, tokens }
}

/// The id of a response and its usage. `None` if the line has none.
fn response_usage(line: &[u8]) -> Option<(String, TokenUsage)> {
    // Most of a transcript is output of tools, which need not be parsed.
    memmem::find(line, b"\"usage\"")?;
    let line: Line = serde_json::from_slice(line).ok()?;
    let message = line.message?;
    Some((message.id?, message.usage?.into()))
}

/// What a usage adds to the tokens counted for the same response.
fn new_tokens(recent: &mut Vec<(String, TokenUsage)>, id: String, usage: TokenUsage) -> TokenUsage {
    if let Some((_, counted)) = recent.iter_mut().find(|(known, _)| *known == id) {
        let new = usage.beyond(*counted);
        *counted = counted.plus(new);
        return new;
    }
    recent.push((id, usage));
    let surplus = recent.len().saturating_sub(MAX_RECENT);
    recent.drain(..surplus);
    usage
}

#[derive(Deserialize)]
struct Line {
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    id: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: u64,
    #[serde(default)]
    cache_read_input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input_tokens,
            cache_creation: usage.cache_creation_input_tokens,
            cache_read: usage.cache_read_input_tokens,
            output: usage.output_tokens,
        }
    }
}
