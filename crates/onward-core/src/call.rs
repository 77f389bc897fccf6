//! Tool calls: their states, and the detector for calls that will not return.
//!
//! A call is recorded before it takes effect. [`CallStatus::after`] is the transition table: it
//! rejects every transition that it does not list. [`is_stale`] checks a call's timeout, [`owner`]
//! checks whether its owner process is dead; both report and change nothing.
//! [`calls_to_interrupt`] combines them for all open calls of a session, because the calls of one
//! batch depend on each other. [`message`] contains the texts for the model and the operator.
//!
//! An interrupted call that returns later stores its result and the fact that the model already has
//! a synthetic one: the model never gets a second result.
//!
//! ```
//! use onward_core::call::{Call, CallPolicy, CallTransition, Limit, is_stale};
//! use onward_core::Timestamp;
//!
//! let second = |s: i64| Timestamp::from_millis(s * 1000);
//! let policy = CallPolicy::default();
//! let mut call = Call::requested(Limit::from_millis(Some(600_000.0)), None);
//! call.apply(CallTransition::Start, second(0))?;
//!
//! // Its timeout of ten minutes and the grace period apply. The limit is inclusive.
//! assert!(!is_stale(&call.timestamp(), second(630), policy));
//! assert!(is_stale(&call.timestamp(), second(631), policy));
//! # Ok::<(), onward_core::call::IllegalCallTransition>(())
//! ```

pub mod agent;
mod interrupt;
pub mod limit;
pub mod message;
pub mod owner;
mod stale;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::policy::{UnknownVariant, parse_variant};
use crate::time::Timestamp;

pub use interrupt::{InterruptDecision, OpenCall, Timeouts, calls_to_interrupt};
pub use limit::{CallTimeouts, Limit, TimeoutRule};
pub use owner::{Owner, OwnerExit};
pub use stale::{CallPolicy, CallTimestamp, DEFAULT_CALL_TIMEOUT, STALE_GRACE};
pub use stale::{is_stale, next_stale_at, stale_at};

/// The status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallStatus {
    /// Requested by the model, not started.
    Requested,
    /// Waiting for a user's approval. No timeout applies.
    AwaitingApproval,
    /// Started. It may have taken effect.
    Running,
    /// Returned a result. Terminal.
    Completed,
    /// Returned an error. Terminal.
    Failed,
    /// Denied by a user. Terminal.
    Denied,
    /// Cancelled by a user. Terminal.
    Cancelled,
    /// Not expected to return. Only a late result changes this status.
    Interrupted,
}

/// A transition of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallTransition {
    /// Approval is requested from a user.
    RequestApproval,
    /// The call starts, directly or after approval.
    Start,
    /// The call shows activity.
    Progress,
    /// The call returns a result.
    Complete,
    /// The call returns an error.
    Fail,
    /// A user denies the call.
    Deny,
    /// A user cancels the call.
    Cancel,
    /// The call is interrupted and gets a synthetic result.
    Interrupt(Cause),
}

/// Why a call was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The call never started.
    NotStarted,
    /// The call started, and its outcome is unknown.
    OutcomeUnknown,
    /// No result within the timeout. The call may still be running.
    TimedOut,
}

/// A transition that is not in the transition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}: the call is `{from}`", transition.rejection())]
pub struct IllegalCallTransition {
    /// The current status.
    pub from: CallStatus,
    /// The requested transition.
    pub transition: CallTransition,
}

impl CallStatus {
    /// All statuses.
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

    /// The value in the API and in the database.
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

    /// Whether the model still waits for the result.
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

    /// The transition table: the next status, or an error if there is no such transition.
    ///
    /// The recorder may have missed a start or an approval. So every open call accepts a result,
    /// and activity on an open call means that it is running.
    pub const fn after(
        self,
        transition: CallTransition,
    ) -> Result<CallStatus, IllegalCallTransition> {
        use CallStatus as S;
        use CallTransition as M;
        match (self, transition) {
            (S::Requested | S::Running, M::RequestApproval) => Ok(S::AwaitingApproval),
            (S::Requested | S::AwaitingApproval, M::Start) => Ok(S::Running),
            (S::Requested | S::AwaitingApproval | S::Running, M::Progress) => Ok(S::Running),
            (S::Requested | S::AwaitingApproval | S::Running, M::Complete) => Ok(S::Completed),
            (S::Requested | S::AwaitingApproval | S::Running, M::Fail) => Ok(S::Failed),
            (S::Requested | S::AwaitingApproval | S::Running, M::Deny) => Ok(S::Denied),
            (S::Requested | S::AwaitingApproval | S::Running, M::Cancel) => Ok(S::Cancelled),
            (S::Requested | S::AwaitingApproval | S::Running, M::Interrupt(_)) => {
                Ok(S::Interrupted)
            }
            // A late result.
            (S::Interrupted, M::Complete) => Ok(S::Completed),
            (S::Interrupted, M::Fail) => Ok(S::Failed),

            (S::AwaitingApproval, M::RequestApproval)
            | (S::Running, M::Start)
            | (S::Interrupted, M::RequestApproval | M::Start | M::Progress)
            | (S::Interrupted, M::Deny | M::Cancel | M::Interrupt(_))
            | (S::Completed | S::Failed, M::RequestApproval | M::Start | M::Progress)
            | (S::Completed | S::Failed, M::Complete | M::Fail | M::Deny)
            | (S::Completed | S::Failed, M::Cancel | M::Interrupt(_))
            | (S::Denied | S::Cancelled, M::RequestApproval | M::Start | M::Progress)
            | (S::Denied | S::Cancelled, M::Complete | M::Fail | M::Deny)
            | (S::Denied | S::Cancelled, M::Cancel | M::Interrupt(_)) => {
                Err(IllegalCallTransition {
                    from: self,
                    transition,
                })
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
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

impl CallTransition {
    const fn rejection(self) -> &'static str {
        match self {
            CallTransition::RequestApproval => "cannot request approval",
            CallTransition::Start => "cannot start the call",
            CallTransition::Progress => "cannot record activity",
            CallTransition::Complete | CallTransition::Fail => "cannot record a result",
            CallTransition::Deny => "cannot deny the call",
            CallTransition::Cancel => "cannot cancel the call",
            CallTransition::Interrupt(_) => "cannot interrupt the call",
        }
    }
}

impl Cause {
    /// All causes.
    pub const ALL: [Cause; 3] = [Cause::NotStarted, Cause::OutcomeUnknown, Cause::TimedOut];

    /// The value in the API and in the database.
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
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// A status with its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// See [`CallStatus::Requested`].
    Requested,
    /// See [`CallStatus::AwaitingApproval`].
    AwaitingApproval {
        /// When approval was requested.
        requested_at: Timestamp,
        /// Whether the call was recorded as running before. Such a recorder does not see the
        /// approval, so the call may have started unnoticed.
        had_started: bool,
    },
    /// See [`CallStatus::Running`].
    Running(Run),
    /// See [`CallStatus::Completed`].
    Completed(CallEnd),
    /// See [`CallStatus::Failed`].
    Failed(CallEnd),
    /// See [`CallStatus::Denied`].
    Denied {
        /// When it was denied.
        ended_at: Timestamp,
    },
    /// See [`CallStatus::Cancelled`].
    Cancelled {
        /// When it was cancelled.
        ended_at: Timestamp,
    },
    /// See [`CallStatus::Interrupted`].
    Interrupted(Interruption),
}

/// The data of a running call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// When it started: after an approval, the time of the approval.
    pub started_at: Timestamp,
    /// The last activity.
    pub last_progress_at: Option<Timestamp>,
}

/// The end of a call that returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEnd {
    /// When the result arrived.
    pub ended_at: Timestamp,
    /// The interruption that the result came after. Users see the late result; the model keeps the
    /// synthetic one.
    pub interruption: Option<Interruption>,
}

/// The interruption of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interruption {
    /// The cause.
    pub cause: Cause,
    /// When the call was interrupted.
    pub interrupted_at: Timestamp,
}

impl CallState {
    /// The status without its data.
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

    /// The state after a transition, or an error if there is no such transition.
    pub fn after(
        self,
        transition: CallTransition,
        at: Timestamp,
    ) -> Result<CallState, IllegalCallTransition> {
        self.status().after(transition)?;
        let end = CallEnd {
            ended_at: at,
            interruption: self.interruption(),
        };
        Ok(match transition {
            CallTransition::RequestApproval => CallState::AwaitingApproval {
                requested_at: at,
                had_started: self.run().is_some(),
            },
            CallTransition::Start => CallState::Running(Run {
                started_at: at,
                last_progress_at: None,
            }),
            CallTransition::Progress => CallState::Running(self.run().map_or(
                Run {
                    started_at: at,
                    last_progress_at: None,
                },
                |run| Run {
                    // The timestamp never moves back, even if the clock is set back.
                    last_progress_at: run.last_progress_at.max(Some(at)),
                    ..run
                },
            )),
            CallTransition::Complete => CallState::Completed(end),
            CallTransition::Fail => CallState::Failed(end),
            CallTransition::Deny => CallState::Denied { ended_at: at },
            CallTransition::Cancel => CallState::Cancelled { ended_at: at },
            CallTransition::Interrupt(cause) => CallState::Interrupted(Interruption {
                cause,
                interrupted_at: at,
            }),
        })
    }

    /// The data of a running call.
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

    /// The interruption, if the model got a synthetic result. Kept after a late result.
    pub const fn interruption(self) -> Option<Interruption> {
        match self {
            CallState::Interrupted(interruption) => Some(interruption),
            CallState::Completed(end) | CallState::Failed(end) => end.interruption,
            CallState::Requested
            | CallState::AwaitingApproval { .. }
            | CallState::Running(_)
            | CallState::Denied { .. }
            | CallState::Cancelled { .. } => None,
        }
    }

    /// The cause for interrupting the call if its owner is dead. `None` if the call is settled.
    pub const fn cause_after_owner_exit(self) -> Option<Cause> {
        match self {
            CallState::Requested
            | CallState::AwaitingApproval {
                had_started: false, ..
            } => Some(Cause::NotStarted),
            CallState::AwaitingApproval {
                had_started: true, ..
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

/// The properties of a call that the rules need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The status with its data.
    pub state: CallState,
    /// The timeout of this call.
    pub limit: Limit,
    /// The grace period after the timeout, if it is not the default.
    pub grace: Option<Duration>,
    /// The process that runs the tool, if known.
    pub owner: Option<Owner>,
}

impl Call {
    /// A requested call.
    pub const fn requested(limit: Limit, owner: Option<Owner>) -> Self {
        Self {
            state: CallState::Requested,
            limit,
            grace: None,
            owner,
        }
    }

    /// Applies a transition. A rejected transition changes nothing.
    pub fn apply(
        &mut self,
        transition: CallTransition,
        at: Timestamp,
    ) -> Result<(), IllegalCallTransition> {
        self.state = self.state.after(transition, at)?;
        Ok(())
    }

    /// The input of the stale-call detector.
    pub fn timestamp(&self) -> CallTimestamp {
        let run = self.state.run();
        CallTimestamp {
            status: self.state.status(),
            started_at: run.map(|run| run.started_at),
            last_progress_at: run.and_then(|run| run.last_progress_at),
            limit: self.limit,
            grace: self.grace,
        }
    }

    /// Whether the agent has answered the model while the tool continues in the background.
    pub fn has_yielded(&self, now: Timestamp) -> bool {
        let Limit::Yields(time) = self.limit else {
            return false;
        };
        let started_at = self.state.run().map(|run| run.started_at);
        let answered_at = started_at.and_then(|started_at| started_at.checked_add(time));
        answered_at.is_some_and(|answered_at| now >= answered_at)
    }
}
