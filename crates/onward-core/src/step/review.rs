//! A pending review of a step: its scope, its reviewer and the result under review.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{ReviewField, StepResult, StepStatus};
use crate::id::{ReviewId, SessionId};
use crate::policy::{UnknownVariant, parse_variant};
use crate::time::Timestamp;

/// An open review.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// The review's id.
    pub id: ReviewId,
    /// The text under review. On approval it becomes the step's result, unless the start of the plan
    /// is under review.
    pub summary: String,
    /// The agent's questions.
    pub questions: Vec<String>,
    /// When the review was requested.
    pub requested_at: Timestamp,
    /// What waits for the decision.
    pub scope: ReviewScope,
    /// Who must decide, if the review is a gate. Any other review is decided by a user, and an agent
    /// may pass on the decision.
    pub by: Option<ReviewBy>,
    /// The session that requested the review, if reported.
    pub session: Option<SessionId>,
    /// The result under review. Without one, the summary becomes the step's result on approval.
    pub result: Option<Arc<StepResult>>,
    /// The optional parts of the request.
    pub options: ReviewOptions,
}

impl Review {
    /// All questions as the reviewer reads them, in the order of the review page.
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        let typed = self.options.fields.iter().map(ReviewField::label);
        typed.chain(self.questions.iter().map(String::as_str))
    }
}

/// The optional parts of a review request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewOptions {
    /// Typed questions, whose answers become data of the step's result.
    pub fields: Vec<ReviewField>,
    /// When the decision is due.
    pub deadline: Option<Deadline>,
    /// The member who should decide. Other members see the review and may decide as well.
    pub assignee: Option<String>,
}

/// When a decision is due, and what happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// The time.
    pub at: Timestamp,
    /// The action of the sweep.
    pub action: OnDeadline,
}

/// What happens if a review has no decision at its deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OnDeadline {
    /// Users are notified again. The review stays pending.
    #[default]
    Remind,
    /// The review is approved by policy.
    Approve,
    /// The step is skipped by policy.
    Skip,
    /// The review is rejected by policy.
    Reject,
}

impl OnDeadline {
    /// All actions.
    pub const ALL: [Self; 4] = [Self::Remind, Self::Approve, Self::Skip, Self::Reject];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            OnDeadline::Remind => "remind",
            OnDeadline::Approve => "approve",
            OnDeadline::Skip => "skip",
            OnDeadline::Reject => "reject",
        }
    }
}

impl fmt::Display for OnDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OnDeadline {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// Who decides the review of a gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ReviewBy {
    /// A person. An agent cannot pass on their decision.
    #[default]
    Person,
    /// A person, or an agent in another session than the one that did the work.
    OtherSession,
}

impl ReviewBy {
    /// All reviewers.
    pub const ALL: [Self; 2] = [Self::Person, Self::OtherSession];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            ReviewBy::Person => "person",
            ReviewBy::OtherSession => "other_session",
        }
    }
}

impl fmt::Display for ReviewBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ReviewBy {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// What a pending review stops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ReviewScope {
    /// The plan: no step is assigned, and the plan cannot be modified.
    #[default]
    Plan,
    /// The step and the steps that depend on it.
    Step,
    /// The start of the plan: no step is assigned before a person approves it. Its first open step
    /// carries the review.
    Start,
}

impl ReviewScope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Plan, Self::Step, Self::Start];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            ReviewScope::Plan => "plan",
            ReviewScope::Step => "step",
            ReviewScope::Start => "start",
        }
    }

    /// The status of the step before the request.
    pub const fn previous_status(self) -> StepStatus {
        match self {
            ReviewScope::Plan | ReviewScope::Step => StepStatus::InProgress,
            ReviewScope::Start => StepStatus::Pending,
        }
    }

    /// Whether the plan waits for the decision.
    pub const fn stops_plan(self) -> bool {
        match self {
            ReviewScope::Plan | ReviewScope::Start => true,
            ReviewScope::Step => false,
        }
    }
}

impl fmt::Display for ReviewScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ReviewScope {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}
