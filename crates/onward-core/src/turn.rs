//! Loop detection in agent turns.
//!
//! A turn is everything that an agent does between a user's message and its answer. A step of a
//! turn is one model response with its tool calls. Texts for users and agents call it a *response*,
//! because a step is also a part of a plan. After each step the detector gets the observable facts
//! and returns a [`Verdict`]. It does not see the model's intent and changes only its own
//! [`State`]; the program that runs the agent acts on a stall.
//!
//! A step makes progress if the external state changed or if its output is new: that is the plain
//! rule. The default rule extends it in parts that can be switched off individually ([`Parts`]). If
//! progress cannot be determined, the step does not count as idle. Do not pass calls that the
//! caller itself rejected: they are not steps and would increase the idle count.
//!
//! ```
//! use onward_core::turn::{Call, ExternalChange, Observation, ProgressDetector, TurnPolicy, Verdict};
//! use serde_json::json;
//!
//! let mut detector = ProgressDetector::new(TurnPolicy::default());
//! let input = json!({ "command": "make test" });
//! let mut step = |output: &str| {
//!     let call = Call { tool: "Bash", input: &input, ok: Some(false), output };
//!     let external = ExternalChange::Unchanged;
//!     detector.observe(&Observation { calls: &[call], external, tree: None, at: None, background: false })
//! };
//!
//! // A new error counts as progress …
//! assert!(matches!(step("test tides ... FAILED in 0.31s"), Verdict::Progress { .. }));
//! // … and the same error does not, whatever its duration.
//! for steps in 1..8 {
//!     assert_eq!(step("test tides ... FAILED in 0.35s"), Verdict::Idle { steps, threshold: 8 });
//! }
//! let Verdict::Stalled { evidence, .. } = step("test tides ... FAILED in 0.29s") else { panic!() };
//! assert_eq!(evidence[0].to_string(), "response 2: Bash `make test`: same error as before");
//! ```
//!
//! # Modules
//!
//! `detector` judges a step, `judge` each of its calls. The parts of the rule have separate files:
//! `payload` (the output without the lines of a harness), `outcome` (answer, refusal or nothing),
//! `lines` (new lines), `mask` (variable content that is ignored), `input_echo` (output that
//! repeats its input), `identity` (repeated calls), `noop`, `poll`, `pause` (waiting), `task`
//! (background tasks), and `intent` with `shell` (the purpose of a call). `text_loop` finds texts
//! that repeat themselves. `effect` classifies commands in logs without fingerprints. [`escalation`]
//! defines the reaction to a stall. [`TurnJudge`] combines detector and escalation.
//! [`secret`](crate::secret) removes secrets from previews.

mod bounded_map;
mod clean;
mod detector;
mod effect;
pub mod escalation;
mod evidence;
mod hash;
mod identity;
mod input_echo;
mod intent;
mod judge;
mod lines;
mod mask;
mod noop;
mod outcome;
mod pause;
mod payload;
mod policy;
mod poll;
mod record;
mod shell;
mod task;
mod text_loop;
mod turn_judge;

use std::fmt;

use serde_json::Value;

use crate::time::Timestamp;

pub use detector::{ProgressDetector, State};
pub use effect::{certainly_changes, command_effect};
pub use escalation::{LoopControl, OnStall};
pub use evidence::{Evidence, IdleReason, preview};
pub use policy::{Parts, Rule, TurnPolicy, WAIT_PER_STEP};
pub use poll::LastOutput;
pub use record::{Judgement, TurnEnd};
pub use task::ended_task;
pub use text_loop::{OnTextLoop, TextLoop, TextLoopScope, TextMonitor};
pub use turn_judge::{JudgedStep, TurnJudge};

/// The observable facts of one step: one model response with all calls of its batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation<'a> {
    /// The calls, in order. A step without calls ends the turn.
    pub calls: &'a [Call<'a>],
    /// The change of the external state.
    pub external: ExternalChange,
    /// The states of the working tree before and after the step, if they are known.
    pub tree: Option<TreeChange>,
    /// When the step ended. Needed only to measure waiting for background tasks.
    pub at: Option<Timestamp>,
    /// Whether the caller detected a running background task. The detector also finds tasks in the
    /// calls.
    pub background: bool,
}

/// Hashes of the fingerprints of a working tree before and after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeChange {
    /// Before the step.
    pub before: u64,
    /// After the step.
    pub after: u64,
}

impl TreeChange {
    /// The change between two fingerprints.
    pub fn new(before: &str, after: &str) -> Self {
        let [before, after] = [before, after].map(|print| hash::hash(print.as_bytes()));
        TreeChange { before, after }
    }
}

/// The output of a successful call whose agent does not report outputs. Under the default rule such
/// a call is idle only if it is a repetition, because the first output is unknown.
pub const OUTPUT_NOT_REPORTED: &str = "[output not reported by the agent]";

/// A tool call with its result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The input: usually an object, or a string for plain commands.
    pub input: &'a Value,
    /// Whether it succeeded. `None` counts as success.
    pub ok: Option<bool>,
    /// The raw output.
    pub output: &'a str,
}

/// The change of the external state (working tree and background tasks), by fingerprint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ExternalChange {
    /// No fingerprint, for example without a checkout or in a proxy. The step is judged by its
    /// output.
    #[default]
    Unknown,
    /// Unchanged since the last step.
    Unchanged,
    /// Changed since the last step.
    Changed,
    /// The fingerprint exceeded its time budget. The step neither counts as idle nor resets the
    /// count.
    TimedOut,
}

impl ExternalChange {
    /// Compares two fingerprints. The first one of a turn is the baseline, never a change. Without
    /// a current fingerprint the change is [`Unknown`](Self::Unknown).
    pub fn compare<T: PartialEq>(last: Option<&T>, current: Option<&T>) -> Self {
        match (last, current) {
            (_, None) => ExternalChange::Unknown,
            (None, Some(_)) => ExternalChange::Unchanged,
            (Some(last), Some(current)) if last == current => ExternalChange::Unchanged,
            (Some(_), Some(_)) => ExternalChange::Changed,
        }
    }
}

/// The detector's verdict on a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The step made progress. The idle count is reset.
    Progress {
        /// The kind of progress.
        reason: Progress,
    },
    /// The step was idle, below the threshold.
    Idle {
        /// Consecutive idle steps, including this one.
        steps: u32,
        /// The threshold.
        threshold: u32,
    },
    /// The threshold is reached: the next model response must be text only. Returned again after
    /// every further idle step.
    Stalled {
        /// Consecutive idle steps.
        steps: u32,
        /// The last idle calls, with the reason for each.
        evidence: Vec<Evidence>,
    },
    /// Progress is unknown because the fingerprint timed out. The idle count does not change.
    Unjudged {
        /// Consecutive idle steps, unchanged.
        steps: u32,
    },
    /// A step without calls: the agent answered, and the turn ended.
    Ended,
}

/// The kind of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Progress {
    /// The external state changed.
    Changed,
    /// A call returned new output.
    Learned {
        /// The index of the call in the step.
        call: usize,
    },
    /// A call returned a new error.
    NewError {
        /// The index of the call in the step.
        call: usize,
    },
    /// The output of a repeated call advanced.
    Advanced {
        /// The index of the call in the step.
        call: usize,
    },
    /// A new edit succeeded.
    Edited {
        /// The index of the call in the step.
        call: usize,
    },
    /// A new action outside the working tree succeeded.
    Acted {
        /// The index of the call in the step.
        call: usize,
    },
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Progress::Changed => "external state changed",
            Progress::Learned { .. } => "new output",
            Progress::NewError { .. } => "new error",
            Progress::Advanced { .. } => "output of a repeated call advanced",
            Progress::Edited { .. } => "new edit succeeded",
            Progress::Acted { .. } => "new action succeeded",
        })
    }
}
