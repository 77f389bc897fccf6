//! The status of a plan and its transition table.
//!
//! [`PlanStatus::after`] rejects every transition that the table does not list.

use std::fmt;
use std::str::FromStr;

use crate::policy::{UnknownVariant, parse_variant};

/// The status of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlanStatus {
    /// No step has been claimed yet.
    Planning,
    /// At least one step has been claimed, or the start was approved.
    Executing,
    /// A review of the plan is pending. A review of scope `step` does not stop its plan.
    AwaitingReview,
    /// The plan was marked because a step stalled.
    Stalled,
    /// Every step has ended. Terminal.
    Completed,
    /// Failed by a branch, rejected in review or abandoned. Terminal.
    Failed,
}

/// The cause of a status transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlanCause {
    /// The first step is claimed or ends.
    Begin,
    /// A review of scope `plan` or `start` is requested.
    RequestReview,
    /// A review of scope `step` is requested.
    RequestStepReview,
    /// The reviewer approves, modifies or skips, and no other review stops the plan.
    Decide,
    /// The reviewer approves, modifies or skips a review of scope `step`, or one of several that
    /// stop the plan.
    DecideOne,
    /// The reviewer rejects.
    Reject,
    /// The plan is marked as stalled.
    Stall,
    /// A stalled plan is resumed.
    Resume,
    /// Every step is terminal.
    Finish,
    /// A branch with the action `fail` is taken.
    BranchFail,
    /// A user abandons the plan.
    Abandon,
}

/// A transition that is not in the transition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct IllegalPlanTransition {
    /// The current status.
    pub from: PlanStatus,
    /// The requested transition.
    pub cause: PlanCause,
}

impl PlanStatus {
    /// All statuses.
    pub const ALL: [PlanStatus; 6] = [
        PlanStatus::Planning,
        PlanStatus::Executing,
        PlanStatus::AwaitingReview,
        PlanStatus::Stalled,
        PlanStatus::Completed,
        PlanStatus::Failed,
    ];

    /// The value in the API and in the database.
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

    /// Whether steps of the plan can be claimed.
    pub const fn assigns_steps(self) -> bool {
        match self {
            PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled => true,
            PlanStatus::AwaitingReview | PlanStatus::Completed | PlanStatus::Failed => false,
        }
    }

    /// Whether no transition leaves this status.
    pub const fn is_terminal(self) -> bool {
        match self {
            PlanStatus::Planning
            | PlanStatus::Executing
            | PlanStatus::AwaitingReview
            | PlanStatus::Stalled => false,
            PlanStatus::Completed | PlanStatus::Failed => true,
        }
    }

    /// The transition table: the status after `cause`, or an error if there is no such transition.
    pub const fn after(self, cause: PlanCause) -> Result<PlanStatus, IllegalPlanTransition> {
        use PlanCause as C;
        use PlanStatus as S;
        match (self, cause) {
            (S::Planning, C::Begin) => Ok(S::Executing),
            (S::Planning, C::RequestReview) => Ok(S::AwaitingReview),
            (S::Planning, C::Abandon) => Ok(S::Failed),
            (S::Executing, C::RequestReview) => Ok(S::AwaitingReview),
            (S::Executing, C::RequestStepReview | C::DecideOne) => Ok(S::Executing),
            (S::Executing, C::Stall) => Ok(S::Stalled),
            (S::Executing, C::Finish) => Ok(S::Completed),
            (S::Executing, C::Reject | C::BranchFail | C::Abandon) => Ok(S::Failed),
            (S::AwaitingReview, C::RequestReview | C::RequestStepReview | C::DecideOne) => {
                Ok(S::AwaitingReview)
            }
            (S::AwaitingReview, C::Decide) => Ok(S::Executing),
            (S::AwaitingReview, C::Reject | C::BranchFail | C::Abandon) => Ok(S::Failed),
            (S::Stalled, C::Resume) => Ok(S::Executing),
            (S::Stalled, C::Abandon) => Ok(S::Failed),

            (S::Planning, C::Decide | C::Reject | C::Stall | C::Resume)
            | (S::Planning, C::RequestStepReview | C::DecideOne | C::Finish | C::BranchFail)
            | (S::Executing, C::Begin | C::Decide | C::Resume)
            | (S::AwaitingReview, C::Begin | C::Stall | C::Resume | C::Finish)
            | (S::Stalled, C::Begin | C::RequestReview | C::Decide | C::Reject | C::Stall)
            | (S::Stalled, C::RequestStepReview | C::DecideOne | C::Finish | C::BranchFail)
            | (S::Completed | S::Failed, C::Begin | C::RequestReview | C::Decide | C::Reject)
            | (S::Completed | S::Failed, C::RequestStepReview | C::DecideOne)
            | (S::Completed | S::Failed, C::Stall | C::Resume | C::Finish | C::BranchFail)
            | (S::Completed | S::Failed, C::Abandon) => {
                Err(IllegalPlanTransition { from: self, cause })
            }
        }
    }
}

impl fmt::Display for PlanStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PlanStatus {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

impl PlanCause {
    /// All causes.
    pub const ALL: [PlanCause; 11] = [
        PlanCause::Begin,
        PlanCause::RequestReview,
        PlanCause::RequestStepReview,
        PlanCause::Decide,
        PlanCause::DecideOne,
        PlanCause::Reject,
        PlanCause::Stall,
        PlanCause::Resume,
        PlanCause::Finish,
        PlanCause::BranchFail,
        PlanCause::Abandon,
    ];

    /// The description in the tables of `docs/state-machine.md`.
    pub const fn as_str(self) -> &'static str {
        match self {
            PlanCause::Begin => "the first step is claimed or ends",
            PlanCause::RequestReview => "a review of scope `plan` or `start` is requested",
            PlanCause::RequestStepReview => "a review of scope `step` is requested",
            PlanCause::Decide => {
                "`approve`, `modify` or `skip` of the last pending review of scope `plan` or `start`"
            }
            PlanCause::DecideOne => "`approve`, `modify` or `skip` of any other review",
            PlanCause::Reject => "`reject`",
            PlanCause::Stall => "the plan is marked as stalled",
            PlanCause::Resume => "the plan is resumed",
            PlanCause::Finish => "every step is terminal",
            PlanCause::BranchFail => "a branch with `fail` applies",
            PlanCause::Abandon => "a user abandons the plan",
        }
    }

    const fn rejection(self) -> &'static str {
        match self {
            PlanCause::Begin => "cannot start a step",
            PlanCause::RequestReview | PlanCause::RequestStepReview => "cannot request a review",
            PlanCause::Decide | PlanCause::DecideOne | PlanCause::Reject => "no pending review",
            PlanCause::Stall => "cannot mark the plan as stalled",
            PlanCause::Resume => "cannot resume the plan",
            PlanCause::Finish => "cannot complete the plan",
            PlanCause::BranchFail => "cannot apply the branch action `fail`",
            PlanCause::Abandon => "cannot abandon the plan",
        }
    }
}

impl IllegalPlanTransition {
    fn message(&self) -> String {
        let Self { from, cause } = self;
        if from.is_terminal() {
            format!("the plan is `{from}` and cannot be changed")
        } else {
            format!("{}: the plan is `{from}`", cause.rejection())
        }
    }
}
