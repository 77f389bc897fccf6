//! What an owner sets of the detector: the thresholds, and which parts of the rule are on.

use std::time::Duration;

/// How long a background task may be waited for before that counts as one idle step.
pub const WAIT_PER_STEP: Duration = Duration::from_secs(60);

/// How a turn is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnPolicy {
    /// How many idle steps in a row are a stall. Nothing counts as 1.
    pub stall_threshold: u32,
    /// How many characters an output needs to be news.
    pub min_info_gain_length: usize,
    /// Which rule.
    pub rule: Rule,
}

impl TurnPolicy {
    /// The plain rule with the thresholds of the default.
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

/// The two rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The outside changed, or a successful output is long enough and new.
    Plain,
    /// The plain rule and what goes beyond it, part by part.
    Default(Parts),
}

impl Rule {
    /// The parts that are on.
    pub const fn parts(self) -> Parts {
        match self {
            Rule::Plain => Parts::NONE,
            Rule::Default(parts) => parts,
        }
    }
}

/// The parts of the default rule, each with a switch. All of them off is the plain rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "one switch for each part, and every combination makes sense"
)]
pub struct Parts {
    /// News by the line: an output that repeats known lines with one new line is judged by that line.
    pub lines: bool,
    /// Parts that vary without meaning (clock, duration, process id, counter, address, temporary path)
    /// are masked before comparing.
    pub masks: bool,
    /// An answer that gives back its question is judged by what it adds.
    pub echoes: bool,
    /// A new error is news; the same error again is not.
    pub errors: bool,
    /// Known no-ops are idle whatever they print.
    pub no_ops: bool,
    /// The same call with an output that advances is progress; waiting for a background task counts by
    /// the clock.
    pub polling: bool,
    /// A different edit that succeeded is progress, whatever its acknowledgement says.
    pub edits: bool,
    /// The same edit made once more is no progress, although the outside changes.
    pub repeats: bool,
    /// Short but real answers to new questions, and new commands that say nothing, count as half an
    /// idle step.
    pub short_answers: bool,
}

impl Parts {
    /// None of them: the plain rule.
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

    /// All of them.
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
