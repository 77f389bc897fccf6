//! Is this agent getting anywhere, or going round in circles? The detector for turns.
//!
//! A turn is what an agent does between a person's message and its answer. After each step the
//! detector is shown what could be seen from outside, and answers with a [`Verdict`]. It knows nothing
//! of what the model intends, asks nobody, and changes nothing but its own [`State`]; what is done
//! about a stall is up to whoever runs the agent.
//!
//! A step got somewhere if the outside changed, or if something new was learned: that is the plain
//! rule. The default rule goes beyond it in parts that can be switched off one by one ([`Parts`]).
//! Where nobody can tell, nothing is held against the agent. A call that the caller refused itself is no
//! step: do not show it, or a block feeds its own count.
//!
//! ```
//! use onward_core::turn::{Call, Observation, Outside, ProgressDetector, TurnPolicy, Verdict};
//! use serde_json::json;
//!
//! let mut detector = ProgressDetector::new(TurnPolicy::default());
//! let input = json!({ "command": "make test" });
//! let mut step = |output: &str| {
//!     let call = Call { tool: "Bash", input: &input, ok: Some(false), output };
//!     let outside = Outside::Same;
//!     detector.observe(&Observation { calls: &[call], outside, at: None, background: false })
//! };
//!
//! // A new error is news …
//! assert!(matches!(step("test tides ... FAILED in 0.31s"), Verdict::Progress { .. }));
//! // … and the same error is not, however long it took this time.
//! for steps in 1..8 {
//!     assert_eq!(step("test tides ... FAILED in 0.35s"), Verdict::Idle { steps, threshold: 8 });
//! }
//! let Verdict::Stalled { evidence, .. } = step("test tides ... FAILED in 0.29s") else { panic!() };
//! assert_eq!(evidence[0].to_string(), "step 2: Bash `make test`: it failed as it did before");
//! ```
//!
//! # Where things are
//!
//! One step goes through `detector`, each of its calls through `judge`. The parts of the rule are in
//! files of their own: `lines` (news by the line), `mask` (what varies without meaning, the only list
//! of it), `echo` (answers that give back their question), `noop`, `poll`, `task` (what runs in the
//! background), and `intent` with `shell` (what a call is for, and so what its silence means). What is done about a stall stands in
//! [`ladder`]; [`secret`] takes out of a preview what nobody should keep.

mod clean;
mod detector;
mod echo;
mod evidence;
mod hash;
mod intent;
mod judge;
pub mod ladder;
mod lines;
mod mask;
mod memory;
mod noop;
mod policy;
mod poll;
mod record;
pub mod secret;
mod shell;
mod task;

use std::fmt;

use serde_json::Value;

use crate::time::Timestamp;

pub use detector::{ProgressDetector, State};
pub use evidence::{Evidence, Nothing, preview};
pub use ladder::{LoopControl, OnStall};
pub use policy::{Parts, Rule, TurnPolicy, WAIT_PER_STEP};
pub use record::{Judgement, TurnEnd};
pub use task::ended_task;

/// What one step of a turn looked like from outside: one model response with all the calls of its
/// batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation<'a> {
    /// The calls, in their order. A step without any ends the turn.
    pub calls: &'a [Call<'a>],
    /// What the world outside says.
    pub outside: Outside,
    /// When the step ended. Needed only to wait by the clock while a background task runs.
    pub at: Option<Timestamp>,
    /// Whether somebody knows that a background task runs. What the calls say of tasks is known anyway.
    pub background: bool,
}

/// The output of a call that succeeded, where its agent tells of the call and not of what it gave. Under
/// the default rule such a call counts for nothing only where it was made before: what it taught the first
/// time nobody knows.
pub const NOT_TOLD: &str = "[the agent does not tell what this gave]";

/// One call of a tool, with its result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// What it was asked: an object as a rule, a text where the agent writes plain commands.
    pub input: &'a Value,
    /// Whether it succeeded. `None`: nobody said; it counts as success.
    pub ok: Option<bool>,
    /// The raw result, before anybody decorated it.
    pub output: &'a str,
}

/// What the fingerprint of the world outside says: the working tree, and the background tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Outside {
    /// There is no such signal: no checkout, or a proxy. The step is judged by what was learned.
    #[default]
    Unknown,
    /// As it was after the last step.
    Same,
    /// It differs from the last one seen.
    Changed,
    /// The fingerprint ran past its budget: the step neither counts nor resets.
    Late,
}

impl Outside {
    /// Compares two fingerprints of any kind. The first one of a turn is a baseline, never a change;
    /// none at all is [`Unknown`](Self::Unknown).
    pub fn between<T: PartialEq>(last: Option<&T>, current: Option<&T>) -> Self {
        match (last, current) {
            (_, None) => Outside::Unknown,
            (None, Some(_)) => Outside::Same,
            (Some(last), Some(current)) if last == current => Outside::Same,
            (Some(_), Some(_)) => Outside::Changed,
        }
    }
}

/// What the detector says after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The step got somewhere; the count of idle steps is at nothing again.
    Progress {
        /// What got it somewhere.
        why: Progress,
    },
    /// It did not, and the turn may go on.
    Idle {
        /// Idle steps in a row, this one included.
        steps: u32,
        /// How many it takes.
        threshold: u32,
    },
    /// Nothing has come of the turn for too long: the next model step must be text only. Said again
    /// after every further idle step.
    Stalled {
        /// Idle steps in a row.
        steps: u32,
        /// The calls of the last of these steps, and why each counted for nothing.
        evidence: Vec<Evidence>,
    },
    /// Nobody can tell: the fingerprint was late. Neither counted nor reset.
    Unjudged {
        /// Idle steps in a row, as before.
        steps: u32,
    },
    /// A step without calls: the agent answered, and the turn is over.
    Ended,
}

/// What made a step count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Progress {
    /// The world outside changed.
    Changed,
    /// A call's output is new.
    Learned {
        /// Which call of the step, from 0.
        call: usize,
    },
    /// A call failed in a way that was not seen before.
    NewError {
        /// Which call of the step, from 0.
        call: usize,
    },
    /// The answer to a call that was made before went on.
    Advanced {
        /// Which call of the step, from 0.
        call: usize,
    },
    /// An edit that was not made before succeeded.
    Edited {
        /// Which call of the step, from 0.
        call: usize,
    },
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Progress::Changed => "the outside changed",
            Progress::Learned { .. } => "something new was learned",
            Progress::NewError { .. } => "a new error",
            Progress::Advanced { .. } => "the answer to the same call went on",
            Progress::Edited { .. } => "a different edit succeeded",
        })
    }
}
