//! A plan's head: status with its data, and step counts.
//!
//! Most commands need only the head, regardless of the number of steps. `plan_status.rs` contains
//! the transition table, `apply/head.rs` applies events to the head. [`Plan`](crate::apply::Plan)
//! is the plan with all its steps.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::budget::{BudgetState, Exhausted, Limit};
use crate::id::{PlanId, ReviewId, SessionId, StepId};
use crate::policy::{OnDependencyFailure, OnStall, UnknownVariant, parse_variant};
use crate::progress::Counts;
use crate::routing::Routing;
use crate::time::Timestamp;

pub use crate::plan_status::{IllegalPlanTransition, PlanCause, PlanStatus};

/// Why a plan failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanFailure {
    /// A branch with the action `fail`, with its reason.
    Branch(Option<String>),
    /// A reviewer rejected a step, with their feedback.
    Rejected(Option<String>),
    /// A user abandoned the plan, with their reason.
    Abandoned(Option<String>),
}

impl PlanFailure {
    /// All kinds.
    pub const KINDS: [&str; 3] = ["branch", "rejected", "abandoned"];

    /// The failure of this kind, with the caller's text.
    pub fn from_kind(kind: &str, text: Option<String>) -> Option<Self> {
        match kind {
            "branch" => Some(PlanFailure::Branch(text)),
            "rejected" => Some(PlanFailure::Rejected(text)),
            "abandoned" => Some(PlanFailure::Abandoned(text)),
            _ => None,
        }
    }

    /// The stored value.
    pub const fn kind(&self) -> &'static str {
        match self {
            PlanFailure::Branch(_) => "branch",
            PlanFailure::Rejected(_) => "rejected",
            PlanFailure::Abandoned(_) => "abandoned",
        }
    }

    /// The caller's text.
    pub fn text(&self) -> Option<&str> {
        match self {
            PlanFailure::Branch(text)
            | PlanFailure::Rejected(text)
            | PlanFailure::Abandoned(text) => text.as_deref(),
        }
    }

    /// The transition that this failure causes.
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

/// A pending review that stops its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingReview {
    /// The step under review.
    pub step: StepId,
    /// The review.
    pub review: ReviewId,
}

/// A plan's status with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanState {
    /// No step has been claimed yet.
    Planning,
    /// At least one step has been claimed, or the start was approved.
    Executing,
    /// At least one review that [stops the plan](crate::step::ReviewScope::stops_plan) is pending.
    AwaitingReview {
        /// The pending reviews that stop the plan, oldest first. Never empty.
        reviews: Vec<PendingReview>,
    },
    /// A step stalled.
    Stalled {
        /// When the plan was marked.
        marked_at: Timestamp,
    },
    /// Every step is terminal.
    Completed {
        /// When the last step became terminal.
        ended_at: Timestamp,
    },
    /// The plan failed.
    Failed {
        /// The reason.
        reason: PlanFailure,
        /// When it failed.
        ended_at: Timestamp,
    },
}

/// The author's description of a plan. No rule depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// A short name.
    pub name: String,
    /// The question or goal.
    pub research_question: String,
    /// The reasons for the plan's design.
    pub design_rationale: Option<String>,
    /// Notes on the format of the output.
    pub output_formatting_notes: Option<String>,
    /// The plan of which this one is a fork.
    pub forked_from: Option<ForkedFrom>,
}

/// The source of a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkedFrom {
    /// The plan.
    pub plan: PlanId,
    /// The order of the first step of that plan whose result was not taken over.
    pub step_order: u32,
}

/// Who wrote a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Origin {
    /// A caller of `create_research_plan`, or an import.
    #[default]
    Caller,
    /// An agent, as its own plan or task list, which hooks mirror.
    Agent,
}

impl Origin {
    /// Whether inactivity of its agents needs a person. A list that an agent keeps for itself is
    /// often left unfinished on purpose, so a captured plan never stalls, even if an agent has claimed its steps.
    pub const fn reports_inactivity(self) -> bool {
        match self {
            Origin::Caller => true,
            Origin::Agent => false,
        }
    }

    /// All origins.
    pub const ALL: [Origin; 2] = [Origin::Caller, Origin::Agent];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Origin::Caller => "caller",
            Origin::Agent => "agent",
        }
    }
}

impl FromStr for Origin {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// The part of a plan that most commands need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanHead {
    /// The plan's id.
    pub id: PlanId,
    /// Who wrote the plan.
    pub origin: Origin,
    /// The status with its data.
    pub state: PlanState,
    /// The number of steps in each status.
    pub counts: Counts,
    /// The sequence number of the last event, which is the plan's version.
    pub seq: u64,
    /// The plan's stall threshold, if it sets one.
    pub stall_threshold: Option<Duration>,
    /// The sweep's action on a stall.
    pub on_stall: OnStall,
    /// Whether steps wait for dependencies that have failed. Later steps take it over.
    pub on_dependency_failure: OnDependencyFailure,
    /// The session that last worked on the plan, if agents report their sessions.
    pub last_session: Option<SessionId>,
    /// The project, the labels and the priority.
    pub routing: Routing,
    /// The budget and its use.
    pub budget: Option<BudgetState>,
}

impl PlanHead {
    /// The exhausted limit of the budget, whether or not it is recorded.
    pub fn exhausted(&self, now: Timestamp) -> Option<Exhausted> {
        self.budget
            .as_ref()
            .and_then(|budget| budget.exhausted(now))
    }

    /// The exhausted limit, if nothing but a higher one lets the plan continue: steps are pending,
    /// none is in progress, and the plan does not await review.
    pub fn stopped_by_budget(&self, now: Timestamp) -> Option<Exhausted> {
        let is_stopped = self.status().assigns_steps()
            && self.counts.pending > 0
            && self.counts.in_progress == 0;
        self.exhausted(now).filter(|_| is_stopped)
    }

    /// Whether steps of the plan can be claimed, as far as its status and the recorded use of its
    /// budget decide it.
    pub fn assigns_steps(&self) -> bool {
        let is_exhausted = (self.budget.as_ref()).is_some_and(|budget| {
            let counted = |limit| {
                budget
                    .limits
                    .max(limit)
                    .zip(budget.used(limit, Timestamp::MIN))
            };
            let is_reached = |limit| counted(limit).is_some_and(|(max, used)| used >= max);
            budget.exhausted.is_some() || is_reached(Limit::Steps) || is_reached(Limit::Attempts)
        });
        self.status().assigns_steps() && !is_exhausted
    }

    /// Whether a user has cancelled the plan.
    pub const fn is_cancelled(&self) -> bool {
        match &self.state {
            PlanState::Failed { reason, .. } => match reason {
                PlanFailure::Abandoned(_) => true,
                PlanFailure::Branch(_) | PlanFailure::Rejected(_) => false,
            },
            PlanState::Planning
            | PlanState::Executing
            | PlanState::AwaitingReview { .. }
            | PlanState::Stalled { .. }
            | PlanState::Completed { .. } => false,
        }
    }

    /// When the plan ended, if it has.
    pub const fn ended_at(&self) -> Option<Timestamp> {
        match &self.state {
            PlanState::Completed { ended_at } | PlanState::Failed { ended_at, .. } => {
                Some(*ended_at)
            }
            PlanState::Planning
            | PlanState::Executing
            | PlanState::AwaitingReview { .. }
            | PlanState::Stalled { .. } => None,
        }
    }

    /// The status without its data.
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
