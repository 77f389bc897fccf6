//! The detector's settings: thresholds and enabled parts of the rule.

use std::time::Duration;

/// The time of waiting for a background task that counts as one idle step.
pub const WAIT_PER_STEP: Duration = Duration::from_secs(60);

/// The detector's policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnPolicy {
    /// The number of consecutive idle steps that is a stall. 0 counts as 1.
    pub stall_threshold: u32,
    /// The minimum number of new characters in an output that counts as progress.
    pub min_info_gain_length: usize,
    /// The rule.
    pub rule: Rule,
}

impl TurnPolicy {
    /// The plain rule with the default thresholds.
    pub fn plain() -> Self {
        TurnPolicy {
            rule: Rule::Plain,
            ..TurnPolicy::default()
        }
    }
}

impl Default for TurnPolicy {
    fn default() -> Self {
        TurnPolicy {
            stall_threshold: 8,
            min_info_gain_length: 60,
            rule: Rule::Default(Parts::ALL),
        }
    }
}

/// The rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Progress is a change of the external state or a new successful output that is long enough.
    Plain,
    /// The plain rule with extensions, which can be switched individually.
    Default(Parts),
}

impl Rule {
    /// The enabled parts.
    pub const fn parts(self) -> Parts {
        match self {
            Rule::Plain => Parts::NONE,
            Rule::Default(parts) => parts,
        }
    }
}

/// The extensions of the default rule. Without any, the plain rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the parts are independent switches"
)]
pub struct Parts {
    /// Judge an output by its new lines.
    pub lines: bool,
    /// Mask variable content (times, durations, process ids, counters, addresses, temporary paths)
    /// before comparing.
    pub masks: bool,
    /// Ignore the parts of an output that repeat its input.
    pub echoes: bool,
    /// A new error is progress; a repeated error is not.
    pub errors: bool,
    /// No-ops are idle, regardless of their output.
    pub no_ops: bool,
    /// A repeated call with advancing output is progress; waiting for a background task is measured
    /// by time.
    pub polling: bool,
    /// A new successful edit is progress, regardless of its output.
    pub edits: bool,
    /// A repeated edit is not progress, even if the external state changes.
    pub repeats: bool,
    /// Short outputs of new queries, and new commands without output, count as half an idle step.
    pub short_answers: bool,
}

impl Parts {
    /// No extensions: the plain rule.
    pub const NONE: Parts = Parts {
        lines: false,
        masks: false,
        echoes: false,
        errors: false,
        no_ops: false,
        polling: false,
        edits: false,
        repeats: false,
        short_answers: false,
    };

    /// All extensions.
    pub const ALL: Parts = Parts {
        lines: true,
        masks: true,
        echoes: true,
        errors: true,
        no_ops: true,
        polling: true,
        edits: true,
        repeats: true,
        short_answers: true,
    };
}

impl Default for Parts {
    fn default() -> Self {
        Parts::ALL
    }
}
