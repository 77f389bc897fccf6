//! Will this tool call ever answer? The states of a call, and the detector for calls.
//!
//! A call is recorded before its effect begins. [`CallStatus::after`] is the law of its states: a move
//! that it does not name is refused, with the state and what was asked. Whether a call is past its time
//! is said by [`is_stale`], whether its owner is dead by [`owner`]; both report and change nothing.
//! [`Call::verdict`] brings the two together: it says for which [`Cause`] a call must be settled, or
//! that nothing speaks against it yet; [`give_up`] says it of all open calls of a session at once, since
//! those of one batch stand and fall together. What the model and the operator are then told stands in
//! [`words`].
//!
//! An interrupted call that answers after all keeps its answer, and also that the model was told
//! otherwise: it is never answered a second time.
//!
//! ```
//! use onward_core::call::{Call, CallMove, CallPolicy, Cause, Limit};
//! use onward_core::Timestamp;
//!
//! let second = |s: i64| Timestamp::from_millis(s * 1000);
//! let policy = CallPolicy::default();
//! let mut call = Call::requested(Limit::of_seconds(Some(600.0)), None);
//! call.apply(CallMove::Start, second(0))?;
//!
//! // Its own ten minutes count, and the grace; exactly then it is alive.
//! assert_eq!(call.verdict(second(630), policy, None), None);
//! assert_eq!(call.verdict(second(631), policy, None), Some(Cause::TimedOut));
//! # Ok::<(), onward_core::call::IllegalCallMove>(())
//! ```

pub mod limit;
pub mod owner;
mod settle;
mod stale;
pub mod words;

use std::fmt;
use std::str::FromStr;

use crate::policy::{UnknownWord, from_word};
use crate::time::Timestamp;

pub use limit::Limit;
pub use owner::{Death, Owner};
pub use settle::{Clock, Given, Up, give_up};
pub use stale::{CallPolicy, CallTimestamp, DEFAULT_CALL_TIMEOUT, STALE_GRACE};
pub use stale::{is_stale, next_stale_at, stale_at};

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallStatus {
    /// The model asked for it; nothing has happened.
    Requested,
    /// A person must allow it; no clock runs.
    AwaitingApproval,
    /// Started; the effect may have happened.
    Running,
    /// Its own result arrived. Terminal.
    Completed,
    /// Its own error arrived. Terminal.
    Failed,
    /// A person did not allow it. Terminal.
    Denied,
    /// A person called it off. Terminal.
    Cancelled,
    /// It will not answer. Only its own result, late, moves it once more.
    Interrupted,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallMove {
    /// A person is asked.
    AskApproval,
    /// It begins: at once, or because a person allowed it.
    Start,
    /// A sign of life.
    Progress,
    /// Its own result arrives.
    Complete,
    /// Its own error arrives.
    Fail,
    /// A person does not allow it.
    Deny,
    /// A person calls it off.
    Cancel,
    /// It is given up, with a synthetic result.
    Interrupt(Cause),
}

/// Why a call will not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It never began.
    NotStarted,
    /// It had begun, and nobody knows how far it came.
    OutcomeUnknown,
    /// No answer came within its time; it may still be running.
    TimedOut,
}

/// A move that the law of the calls does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a call that is `{from}` {}", asked.refused())]
pub struct IllegalCallMove {
    /// Where the call stands.
    pub from: CallStatus,
    /// What was to happen to it.
    pub asked: CallMove,
}

impl CallStatus {
    /// Every status.
    pub const ALL: [CallStatus; 8] = [
        CallStatus::Requested,
        CallStatus::AwaitingApproval,
        CallStatus::Running,
        CallStatus::Completed,
        CallStatus::Failed,
        CallStatus::Denied,
        CallStatus::Cancelled,
        CallStatus::Interrupted,
    ];

    /// The word for it, on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            CallStatus::Requested => "requested",
            CallStatus::AwaitingApproval => "awaiting_approval",
            CallStatus::Running => "running",
            CallStatus::Completed => "completed",
            CallStatus::Failed => "failed",
            CallStatus::Denied => "denied",
            CallStatus::Cancelled => "cancelled",
            CallStatus::Interrupted => "interrupted",
        }
    }

    /// Whether the model still waits for its result.
    pub const fn is_open(self) -> bool {
        match self {
            CallStatus::Requested | CallStatus::AwaitingApproval | CallStatus::Running => true,
            CallStatus::Completed
            | CallStatus::Failed
            | CallStatus::Denied
            | CallStatus::Cancelled
            | CallStatus::Interrupted => false,
        }
    }

    /// The table of moves: where this one leads from here, if it leads anywhere.
    ///
    /// Whoever records may have missed a start or an approval, so a result is taken from every open
    /// call, and a sign of life says that it runs.
    pub const fn after(self, asked: CallMove) -> Result<CallStatus, IllegalCallMove> {
        use CallMove as M;
        use CallStatus as S;
        match (self, asked) {
            (S::Requested | S::Running, M::AskApproval) => Ok(S::AwaitingApproval),
            (S::Requested | S::AwaitingApproval, M::Start) => Ok(S::Running),
            (S::Requested | S::AwaitingApproval | S::Running, M::Progress) => Ok(S::Running),
            (S::Requested | S::AwaitingApproval | S::Running, M::Complete) => Ok(S::Completed),
            (S::Requested | S::AwaitingApproval | S::Running, M::Fail) => Ok(S::Failed),
            (S::Requested | S::AwaitingApproval | S::Running, M::Deny) => Ok(S::Denied),
            (S::Requested | S::AwaitingApproval | S::Running, M::Cancel) => Ok(S::Cancelled),
            (S::Requested | S::AwaitingApproval | S::Running, M::Interrupt(_)) => {
                Ok(S::Interrupted)
            }
            // Late, but its own.
            (S::Interrupted, M::Complete) => Ok(S::Completed),
            (S::Interrupted, M::Fail) => Ok(S::Failed),

            (S::AwaitingApproval, M::AskApproval)
            | (S::Running, M::Start)
            | (S::Interrupted, M::AskApproval | M::Start | M::Progress)
            | (S::Interrupted, M::Deny | M::Cancel | M::Interrupt(_))
            | (S::Completed | S::Failed, M::AskApproval | M::Start | M::Progress)
            | (S::Completed | S::Failed, M::Complete | M::Fail | M::Deny)
            | (S::Completed | S::Failed, M::Cancel | M::Interrupt(_))
            | (S::Denied | S::Cancelled, M::AskApproval | M::Start | M::Progress)
            | (S::Denied | S::Cancelled, M::Complete | M::Fail | M::Deny)
            | (S::Denied | S::Cancelled, M::Cancel | M::Interrupt(_)) => {
                Err(IllegalCallMove { from: self, asked })
            }
        }
    }
}

impl fmt::Display for CallStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CallStatus {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Self::ALL, Self::as_str)
    }
}

impl CallMove {
    const fn refused(self) -> &'static str {
        match self {
            CallMove::AskApproval => "does not wait for a person",
            CallMove::Start => "cannot begin",
            CallMove::Progress => "gives no sign of life",
            CallMove::Complete | CallMove::Fail => "has its answer",
            CallMove::Deny => "cannot be denied",
            CallMove::Cancel => "cannot be called off",
            CallMove::Interrupt(_) => "cannot be given up",
        }
    }
}

impl Cause {
    /// Every cause.
    pub const ALL: [Cause; 3] = [Cause::NotStarted, Cause::OutcomeUnknown, Cause::TimedOut];

    /// The word for it, on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Cause::NotStarted => "not_started",
            Cause::OutcomeUnknown => "outcome_unknown",
            Cause::TimedOut => "timed_out",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Cause {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Self::ALL, Self::as_str)
    }
}

/// A state with what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// See [`CallStatus::Requested`].
    Requested,
    /// See [`CallStatus::AwaitingApproval`].
    AwaitingApproval {
        /// When the person was asked.
        asked_at: Timestamp,
        /// Whether it was recorded as running before: whoever records it then does not see the
        /// approval either, so it may have begun unseen.
        had_begun: bool,
    },
    /// See [`CallStatus::Running`].
    Running(Run),
    /// See [`CallStatus::Completed`].
    Completed(End),
    /// See [`CallStatus::Failed`].
    Failed(End),
    /// See [`CallStatus::Denied`].
    Denied {
        /// When.
        ended_at: Timestamp,
    },
    /// See [`CallStatus::Cancelled`].
    Cancelled {
        /// When.
        ended_at: Timestamp,
    },
    /// See [`CallStatus::Interrupted`].
    Interrupted(Interruption),
}

/// A call at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// When it began: after an approval, the approval.
    pub started_at: Timestamp,
    /// Its last sign of life.
    pub last_progress_at: Option<Timestamp>,
}

/// How a call got its own result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// When the result arrived.
    pub ended_at: Timestamp,
    /// What the model was told before, where the result came late. The result is shown to people in
    /// its place; the model has its answer.
    pub instead_of: Option<Interruption>,
}

/// That a call was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interruption {
    /// Why.
    pub cause: Cause,
    /// When.
    pub interrupted_at: Timestamp,
}

impl CallState {
    /// Where the call stands.
    pub const fn status(self) -> CallStatus {
        match self {
            CallState::Requested => CallStatus::Requested,
            CallState::AwaitingApproval { .. } => CallStatus::AwaitingApproval,
            CallState::Running(_) => CallStatus::Running,
            CallState::Completed(_) => CallStatus::Completed,
            CallState::Failed(_) => CallStatus::Failed,
            CallState::Denied { .. } => CallStatus::Denied,
            CallState::Cancelled { .. } => CallStatus::Cancelled,
            CallState::Interrupted(_) => CallStatus::Interrupted,
        }
    }

    /// The state after a move, or that there is no such move.
    pub fn after(self, asked: CallMove, at: Timestamp) -> Result<CallState, IllegalCallMove> {
        self.status().after(asked)?;
        let end = End {
            ended_at: at,
            instead_of: self.interruption(),
        };
        Ok(match asked {
            CallMove::AskApproval => CallState::AwaitingApproval {
                asked_at: at,
                had_begun: self.run().is_some(),
            },
            CallMove::Start => CallState::Running(Run {
                started_at: at,
                last_progress_at: None,
            }),
            CallMove::Progress => CallState::Running(self.run().map_or(
                Run {
                    started_at: at,
                    last_progress_at: None,
                },
                |run| Run {
                    // A clock that was set back takes no sign of life away.
                    last_progress_at: run.last_progress_at.max(Some(at)),
                    ..run
                },
            )),
            CallMove::Complete => CallState::Completed(end),
            CallMove::Fail => CallState::Failed(end),
            CallMove::Deny => CallState::Denied { ended_at: at },
            CallMove::Cancel => CallState::Cancelled { ended_at: at },
            CallMove::Interrupt(cause) => CallState::Interrupted(Interruption {
                cause,
                interrupted_at: at,
            }),
        })
    }

    /// The work, while there is some.
    pub const fn run(self) -> Option<Run> {
        match self {
            CallState::Running(run) => Some(run),
            CallState::Requested
            | CallState::AwaitingApproval { .. }
            | CallState::Completed(_)
            | CallState::Failed(_)
            | CallState::Denied { .. }
            | CallState::Cancelled { .. }
            | CallState::Interrupted(_) => None,
        }
    }

    /// That the model was given a synthetic result, whatever came after it.
    pub const fn interruption(self) -> Option<Interruption> {
        match self {
            CallState::Interrupted(interruption) => Some(interruption),
            CallState::Completed(end) | CallState::Failed(end) => end.instead_of,
            CallState::Requested
            | CallState::AwaitingApproval { .. }
            | CallState::Running(_)
            | CallState::Denied { .. }
            | CallState::Cancelled { .. } => None,
        }
    }

    /// What can be said of a call whose owner is dead; nothing where it is settled.
    pub const fn cause_of_death(self) -> Option<Cause> {
        match self {
            CallState::Requested
            | CallState::AwaitingApproval {
                had_begun: false, ..
            } => Some(Cause::NotStarted),
            CallState::AwaitingApproval {
                had_begun: true, ..
            }
            | CallState::Running(_) => Some(Cause::OutcomeUnknown),
            CallState::Completed(_)
            | CallState::Failed(_)
            | CallState::Denied { .. }
            | CallState::Cancelled { .. }
            | CallState::Interrupted(_) => None,
        }
    }
}

/// A call, as far as the rules look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Where it stands.
    pub state: CallState,
    /// The timeout that applies to this very call.
    pub limit: Limit,
    /// The process that runs the tool; none where nobody knows.
    pub owner: Option<Owner>,
}

impl Call {
    /// A call that the model asked for.
    pub const fn requested(limit: Limit, owner: Option<Owner>) -> Self {
        Self {
            state: CallState::Requested,
            limit,
            owner,
        }
    }

    /// Moves it on; refused, it stays as it was.
    pub fn apply(&mut self, asked: CallMove, at: Timestamp) -> Result<(), IllegalCallMove> {
        self.state = self.state.after(asked, at)?;
        Ok(())
    }

    /// What the detector looks at.
    pub fn timestamp(&self) -> CallTimestamp {
        let run = self.state.run();
        CallTimestamp {
            status: self.state.status(),
            started_at: run.map(|run| run.started_at),
            last_progress_at: run.and_then(|run| run.last_progress_at),
            limit: self.limit,
        }
    }

    /// For which cause the call must be settled: at once where its owner is dead, else after its
    /// time. `None`: it may still answer, or has.
    pub fn verdict(
        &self,
        now: Timestamp,
        policy: CallPolicy,
        death: Option<Death>,
    ) -> Option<Cause> {
        if death.is_some() {
            return self.state.cause_of_death();
        }
        is_stale(&self.timestamp(), now, policy).then_some(Cause::TimedOut)
    }
}
