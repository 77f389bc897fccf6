//! A plan's head: its status with what belongs to it, how many steps are in each status, and the one
//! table of moves between the statuses.
//!
//! The head is all that most verbs need to know of a plan, however many steps it has.
//! [`PlanStatus::after`] is the law: a move that it does not name is refused, with the status and
//! what was asked. How an event changes the head stands in `plan/apply.rs`; the plan with all its
//! steps is [`Plan`](crate::apply::Plan).

mod apply;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::id::{PlanId, ReviewId, SessionId, StepId};
use crate::policy::{OnStall, UnknownWord, from_word};
use crate::progress::Counts;
use crate::time::Timestamp;

/// Where a plan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlanStatus {
    /// No step was ever taken on.
    Planning,
    /// Under way.
    Executing,
    /// A step waits for a person.
    AwaitingReview,
    /// A step stalled, and the plan was marked for it.
    Stalled,
    /// Every step is terminal. Terminal.
    Completed,
    /// Given up. Terminal.
    Failed,
}

/// Why a plan moves from one status to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlanCause {
    /// Its first step was taken on, or ended.
    Begin,
    /// A review is requested.
    AskReview,
    /// A person approves, modifies or skips.
    Decide,
    /// A person rejects.
    Reject,
    /// A stall is acted upon.
    Stall,
    /// Somebody goes on with it after a stall.
    Resume,
    /// Every step is terminal.
    Finish,
    /// A branch's `fail`.
    BranchFail,
    /// A person abandons it.
    Abandon,
}

/// A move that the law of the plans does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a plan that is `{from}` {}", if from.is_terminal() { "takes no more changes" } else { asked.refused() })]
pub struct IllegalPlanMove {
    /// Where the plan stands.
    pub from: PlanStatus,
    /// What was asked of it.
    pub asked: PlanCause,
}

impl PlanStatus {
    /// Every status.
    pub const ALL: [PlanStatus; 6] = [
        PlanStatus::Planning,
        PlanStatus::Executing,
        PlanStatus::AwaitingReview,
        PlanStatus::Stalled,
        PlanStatus::Completed,
        PlanStatus::Failed,
    ];

    /// The word for it, on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            PlanStatus::Planning => "planning",
            PlanStatus::Executing => "executing",
            PlanStatus::AwaitingReview => "awaiting_review",
            PlanStatus::Stalled => "stalled",
            PlanStatus::Completed => "completed",
            PlanStatus::Failed => "failed",
        }
    }

    /// Whether nothing can move it any more.
    pub const fn is_terminal(self) -> bool {
        match self {
            PlanStatus::Planning
            | PlanStatus::Executing
            | PlanStatus::AwaitingReview
            | PlanStatus::Stalled => false,
            PlanStatus::Completed | PlanStatus::Failed => true,
        }
    }

    /// The table of moves: where this cause leads from here, if it leads anywhere.
    pub const fn after(self, cause: PlanCause) -> Result<PlanStatus, IllegalPlanMove> {
        use PlanCause as C;
        use PlanStatus as S;
        match (self, cause) {
            (S::Planning, C::Begin) => Ok(S::Executing),
            (S::Planning, C::Abandon) => Ok(S::Failed),
            (S::Executing, C::AskReview) => Ok(S::AwaitingReview),
            (S::Executing, C::Stall) => Ok(S::Stalled),
            (S::Executing, C::Finish) => Ok(S::Completed),
            (S::Executing, C::BranchFail | C::Abandon) => Ok(S::Failed),
            (S::AwaitingReview, C::Decide) => Ok(S::Executing),
            (S::AwaitingReview, C::Reject | C::BranchFail | C::Abandon) => Ok(S::Failed),
            (S::Stalled, C::Resume) => Ok(S::Executing),
            (S::Stalled, C::Abandon) => Ok(S::Failed),

            (S::Planning, C::AskReview | C::Decide | C::Reject | C::Stall | C::Resume)
            | (S::Planning, C::Finish | C::BranchFail)
            | (S::Executing, C::Begin | C::Decide | C::Reject | C::Resume)
            | (S::AwaitingReview, C::Begin | C::AskReview | C::Stall | C::Resume | C::Finish)
            | (S::Stalled, C::Begin | C::AskReview | C::Decide | C::Reject | C::Stall)
            | (S::Stalled, C::Finish | C::BranchFail)
            | (S::Completed | S::Failed, C::Begin | C::AskReview | C::Decide | C::Reject)
            | (S::Completed | S::Failed, C::Stall | C::Resume | C::Finish | C::BranchFail)
            | (S::Completed | S::Failed, C::Abandon) => Err(IllegalPlanMove {
                from: self,
                asked: cause,
            }),
        }
    }
}

impl fmt::Display for PlanStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PlanStatus {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Self::ALL, Self::as_str)
    }
}

impl PlanCause {
    /// Every cause.
    pub const ALL: [PlanCause; 9] = [
        PlanCause::Begin,
        PlanCause::AskReview,
        PlanCause::Decide,
        PlanCause::Reject,
        PlanCause::Stall,
        PlanCause::Resume,
        PlanCause::Finish,
        PlanCause::BranchFail,
        PlanCause::Abandon,
    ];

    /// What is asked, as the docs' tables name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            PlanCause::Begin => "its first step is taken on, or ends",
            PlanCause::AskReview => "a review is requested",
            PlanCause::Decide => "`approve`, `modify` or `skip`",
            PlanCause::Reject => "`reject`",
            PlanCause::Stall => "a stall is acted upon",
            PlanCause::Resume => "somebody goes on with it",
            PlanCause::Finish => "every step is terminal",
            PlanCause::BranchFail => "a branch's `fail`",
            PlanCause::Abandon => "a person abandons it",
        }
    }

    const fn refused(self) -> &'static str {
        match self {
            PlanCause::Begin => "lets no step be taken on",
            PlanCause::AskReview => "cannot be put up for review",
            PlanCause::Decide | PlanCause::Reject => "has no open review to decide",
            PlanCause::Stall => "cannot be marked stalled",
            PlanCause::Resume => "cannot be resumed",
            PlanCause::Finish => "cannot be completed",
            PlanCause::BranchFail => "cannot be failed by a branch",
            PlanCause::Abandon => "cannot be abandoned",
        }
    }
}

/// Why a plan failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanFailure {
    /// A branch's `fail`, which may say why.
    Branch(Option<String>),
    /// A person rejected a step, and may have said why.
    Rejected(Option<String>),
    /// A person abandoned the plan, and may have said why.
    Abandoned(Option<String>),
}

impl PlanFailure {
    /// The move that it is.
    pub const fn cause(&self) -> PlanCause {
        match self {
            PlanFailure::Branch(_) => PlanCause::BranchFail,
            PlanFailure::Rejected(_) => PlanCause::Reject,
            PlanFailure::Abandoned(_) => PlanCause::Abandon,
        }
    }
}

impl fmt::Display for PlanFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanFailure::Branch(Some(reason))
            | PlanFailure::Rejected(Some(reason))
            | PlanFailure::Abandoned(Some(reason)) => f.write_str(reason),
            PlanFailure::Branch(None) => f.write_str("a branch failed the plan"),
            PlanFailure::Rejected(None) => f.write_str("rejected in review"),
            PlanFailure::Abandoned(None) => f.write_str("abandoned"),
        }
    }
}

/// A plan's status, with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanState {
    /// No step was ever taken on.
    Planning,
    /// Under way.
    Executing,
    /// A step waits for a person.
    AwaitingReview {
        /// Which step.
        step: StepId,
        /// Which review.
        review: ReviewId,
    },
    /// A step stalled.
    Stalled {
        /// When the plan was marked.
        marked_at: Timestamp,
    },
    /// Every step is terminal.
    Completed {
        /// When the last one became so.
        ended_at: Timestamp,
    },
    /// Given up.
    Failed {
        /// Why.
        reason: PlanFailure,
        /// When.
        ended_at: Timestamp,
    },
}

/// What the author of a plan said about it. Nothing here is looked at by a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// A short name.
    pub name: String,
    /// The question, or the goal.
    pub research_question: String,
    /// Why it is designed as it is.
    pub design_rationale: Option<String>,
    /// How the output should look.
    pub output_formatting_notes: Option<String>,
}

/// What most verbs need to know of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanHead {
    /// Which plan.
    pub id: PlanId,
    /// Where it stands.
    pub state: PlanState,
    /// How many steps are in each status.
    pub counts: Counts,
    /// How many events the plan has: the last one's sequence number, and so its version.
    pub seq: u64,
    /// The plan's own threshold.
    pub stall_threshold: Option<Duration>,
    /// What the sweep does about a stall.
    pub on_stall: OnStall,
    /// The session that last worked on it, where agents name theirs.
    pub last_session: Option<SessionId>,
}

impl PlanHead {
    /// Where it stands, without what belongs to it.
    pub fn status(&self) -> PlanStatus {
        match &self.state {
            PlanState::Planning => PlanStatus::Planning,
            PlanState::Executing => PlanStatus::Executing,
            PlanState::AwaitingReview { .. } => PlanStatus::AwaitingReview,
            PlanState::Stalled { .. } => PlanStatus::Stalled,
            PlanState::Completed { .. } => PlanStatus::Completed,
            PlanState::Failed { .. } => PlanStatus::Failed,
        }
    }
}
