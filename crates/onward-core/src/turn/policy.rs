//! The detector's settings: thresholds and enabled parts of the rule.

use std::time::Duration;

/// The time of polling a background task without a pause that counts as one idle step.
pub const WAIT_PER_STEP: Duration = Duration::from_secs(60);

/// The detector's policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnPolicy {
    /// The number of consecutive idle steps that is a stall. 0 counts as 1.
    pub stall_threshold: u32,
    /// The minimum number of new characters in an output that counts as progress.
    pub min_info_gain_length: usize,
    /// The time of waiting with pauses, without any change, that is a stall.
    pub stall_wait: Duration,
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
            stall_wait: Duration::from_secs(30 * 60),
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
    /// before comparing, and ignore the lines that a harness adds to an output.
    pub masks: bool,
    /// Ignore the parts of an output that repeat its input.
    pub echoes: bool,
    /// A new error is progress; a repeated error is not.
    pub errors: bool,
    /// A refusal or an empty result in plain text is an error, and a short verdict of a failed
    /// command is an answer.
    pub refusals: bool,
    /// No-ops are idle, regardless of their output.
    pub no_ops: bool,
    /// A repeated call with advancing output is progress.
    pub polling: bool,
    /// Waiting is measured by time.
    pub waiting: bool,
    /// A new successful edit is progress, regardless of its output.
    pub edits: bool,
    /// A new successful action outside the working tree is progress, regardless of its output.
    pub actions: bool,
    /// A repeated edit is not progress, even if the external state changes.
    pub repeats: bool,
    /// A short answer to a new question is progress, and the same answer does not count as idle.
    pub answers: bool,
}

/// Reads and writes one switch.
type Switch = (&'static str, fn(&mut Parts) -> &mut bool);

impl Parts {
    /// The parts by name.
    pub const SWITCHES: [Switch; 12] = [
        ("lines", |parts| &mut parts.lines),
        ("masks", |parts| &mut parts.masks),
        ("echoes", |parts| &mut parts.echoes),
        ("errors", |parts| &mut parts.errors),
        ("refusals", |parts| &mut parts.refusals),
        ("no_ops", |parts| &mut parts.no_ops),
        ("polling", |parts| &mut parts.polling),
        ("waiting", |parts| &mut parts.waiting),
        ("edits", |parts| &mut parts.edits),
        ("actions", |parts| &mut parts.actions),
        ("repeats", |parts| &mut parts.repeats),
        ("answers", |parts| &mut parts.answers),
    ];

    /// No extensions: the plain rule.
    pub const NONE: Parts = Parts {
        lines: false,
        masks: false,
        echoes: false,
        errors: false,
        refusals: false,
        no_ops: false,
        polling: false,
        waiting: false,
        edits: false,
        actions: false,
        repeats: false,
        answers: false,
    };

    /// All extensions.
    pub const ALL: Parts = Parts {
        lines: true,
        masks: true,
        echoes: true,
        errors: true,
        refusals: true,
        no_ops: true,
        polling: true,
        waiting: true,
        edits: true,
        actions: true,
        repeats: true,
        answers: true,
    };

    /// Switches a part off. Returns whether there is a part of this name.
    pub fn switch_off(&mut self, name: &str) -> bool {
        let switch = Parts::SWITCHES.iter().find(|(part, _)| *part == name);
        switch.is_some_and(|(_, switch)| {
            *switch(self) = false;
            true
        })
    }
}

impl Default for Parts {
    fn default() -> Self {
        Parts::ALL
    }
}
