//! A step: its definition, its states with their data and the transition table.
//!
//! [`StepStatus::after`] is the transition table: it rejects every transition that it does not
//! list. Commands are decided in [`decide`](mod@crate::decide). `apply/step.rs` applies events to a
//! step.

mod failure;
mod fields;
mod gates;
mod redo;
mod review;
mod work;

pub use failure::FailReason;
pub use fields::{FieldKind, FieldOption, ReviewField};
pub use gates::{Evidence, EvidenceKind, Gates};
pub use review::{Deadline, OnDeadline, Review, ReviewBy, ReviewOptions, ReviewScope};
pub use work::{Undelivered, Work};

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::id::{BranchId, ClaimToken, ReviewId, SessionId, StepId};
use crate::json::Json;
use crate::policy::{OnDependencyFailure, UnknownVariant, parse_variant};
use crate::routing::rank;
use crate::time::Timestamp;

/// The kind of work in a step. It informs the agent; the rules treat all kinds alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepType {
    /// Find sources.
    Search,
    /// Extract data from sources.
    Extract,
    /// Draw conclusions.
    Analyze,
    /// Find errors and weak points.
    Critique,
    /// Combine results.
    Synthesize,
    /// Review the state of the plan.
    Checkpoint,
    /// Anything else.
    Custom,
}

impl StepType {
    /// All types.
    pub const ALL: [StepType; 7] = [
        StepType::Search,
        StepType::Extract,
        StepType::Analyze,
        StepType::Critique,
        StepType::Synthesize,
        StepType::Checkpoint,
        StepType::Custom,
    ];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            StepType::Search => "search",
            StepType::Extract => "extract",
            StepType::Analyze => "analyze",
            StepType::Critique => "critique",
            StepType::Synthesize => "synthesize",
            StepType::Checkpoint => "checkpoint",
            StepType::Custom => "custom",
        }
    }
}

impl fmt::Display for StepType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for StepType {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// The status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepStatus {
    /// Not claimed.
    Pending,
    /// Claimed by an agent.
    InProgress,
    /// Awaiting review.
    AwaitingInput,
    /// Completed with a result. Terminal.
    Completed,
    /// Skipped. Terminal.
    Skipped,
    /// Failed. Terminal.
    Failed,
}

/// The cause of a status transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepCause {
    /// An agent claims the step.
    Claim,
    /// A branch's `skip_to` skips the step.
    BranchSkip,
    /// A person skips the step.
    SkipManually,
    /// `modify_plan: fail_step`.
    FailManually,
    /// The sweep's policy `fail`.
    FailByPolicy,
    /// All attempts are used.
    ExhaustAttempts,
    /// The step is requeued for another attempt.
    Requeue,
    /// A result is submitted.
    Complete,
    /// The agent requests a review.
    RequestReview,
    /// The author of the plan requires the approval of its start.
    RequestApproval,
    /// The reviewer approves.
    Approve,
    /// The reviewer approves the start of the plan.
    ApproveStart,
    /// The reviewer rejects.
    Reject,
    /// The reviewer requests changes.
    Revise,
    /// The reviewer skips the step.
    ReviewSkip,
}

/// A transition that is not in the transition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}: the step is `{from}`", cause.rejection())]
pub struct IllegalStepTransition {
    /// The current status.
    pub from: StepStatus,
    /// The requested transition.
    pub cause: StepCause,
}

impl StepStatus {
    /// All statuses.
    pub const ALL: [StepStatus; 6] = [
        StepStatus::Pending,
        StepStatus::InProgress,
        StepStatus::AwaitingInput,
        StepStatus::Completed,
        StepStatus::Skipped,
        StepStatus::Failed,
    ];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            StepStatus::Pending => "pending",
            StepStatus::InProgress => "in_progress",
            StepStatus::AwaitingInput => "awaiting_input",
            StepStatus::Completed => "completed",
            StepStatus::Skipped => "skipped",
            StepStatus::Failed => "failed",
        }
    }

    /// Whether no transition leaves this status.
    pub const fn is_terminal(self) -> bool {
        match self {
            StepStatus::Pending | StepStatus::InProgress | StepStatus::AwaitingInput => false,
            StepStatus::Completed | StepStatus::Skipped | StepStatus::Failed => true,
        }
    }

    /// The transition table: the status after `cause`, or an error if there is no such transition.
    pub const fn after(self, cause: StepCause) -> Result<StepStatus, IllegalStepTransition> {
        use StepCause as C;
        use StepStatus as S;
        match (self, cause) {
            (S::Pending, C::Claim) => Ok(S::InProgress),
            (S::Pending, C::BranchSkip | C::SkipManually) => Ok(S::Skipped),
            (S::Pending, C::FailManually) => Ok(S::Failed),
            (S::Pending, C::RequestApproval) => Ok(S::AwaitingInput),
            (S::InProgress, C::Complete) => Ok(S::Completed),
            (S::InProgress, C::RequestReview) => Ok(S::AwaitingInput),
            (S::InProgress, C::Requeue) => Ok(S::Pending),
            (S::InProgress, C::FailManually | C::FailByPolicy | C::ExhaustAttempts) => {
                Ok(S::Failed)
            }
            (S::AwaitingInput, C::Approve) => Ok(S::Completed),
            (S::AwaitingInput, C::ApproveStart) => Ok(S::Pending),
            (S::AwaitingInput, C::Reject) => Ok(S::Failed),
            (S::AwaitingInput, C::Revise) => Ok(S::InProgress),
            (S::AwaitingInput, C::ReviewSkip) => Ok(S::Skipped),

            (
                S::Pending,
                C::FailByPolicy | C::ExhaustAttempts | C::Requeue | C::Complete | C::RequestReview,
            )
            | (S::Pending | S::InProgress, C::Approve | C::Reject | C::Revise | C::ReviewSkip)
            | (S::Pending | S::InProgress, C::ApproveStart)
            | (S::InProgress | S::AwaitingInput, C::SkipManually)
            | (S::InProgress, C::Claim | C::BranchSkip | C::RequestApproval)
            | (S::AwaitingInput, C::Claim | C::BranchSkip | C::FailManually | C::FailByPolicy)
            | (
                S::AwaitingInput,
                C::ExhaustAttempts
                | C::Requeue
                | C::Complete
                | C::RequestReview
                | C::RequestApproval,
            )
            | (S::Completed | S::Skipped | S::Failed, C::Claim | C::BranchSkip | C::FailManually)
            | (
                S::Completed | S::Skipped | S::Failed,
                C::FailByPolicy | C::ExhaustAttempts | C::Requeue | C::SkipManually,
            )
            | (
                S::Completed | S::Skipped | S::Failed,
                C::Complete | C::RequestReview | C::Approve,
            )
            | (S::Completed | S::Skipped | S::Failed, C::RequestApproval | C::ApproveStart)
            | (S::Completed | S::Skipped | S::Failed, C::Reject | C::Revise | C::ReviewSkip) => {
                Err(IllegalStepTransition { from: self, cause })
            }
        }
    }
}

impl fmt::Display for StepStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for StepStatus {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

impl StepCause {
    /// All causes.
    pub const ALL: [StepCause; 15] = [
        StepCause::Claim,
        StepCause::BranchSkip,
        StepCause::SkipManually,
        StepCause::FailManually,
        StepCause::FailByPolicy,
        StepCause::ExhaustAttempts,
        StepCause::Requeue,
        StepCause::Complete,
        StepCause::RequestReview,
        StepCause::RequestApproval,
        StepCause::Approve,
        StepCause::ApproveStart,
        StepCause::Reject,
        StepCause::Revise,
        StepCause::ReviewSkip,
    ];

    /// The description in the tables of `docs/state-machine.md`.
    pub const fn as_str(self) -> &'static str {
        match self {
            StepCause::Claim => "an agent claims the step",
            StepCause::BranchSkip => "a branch's `skip_to` skips the step",
            StepCause::SkipManually => "a person skips the step",
            StepCause::FailManually => "`fail_step`",
            StepCause::FailByPolicy => "the policy `fail`",
            StepCause::ExhaustAttempts => "all attempts are used",
            StepCause::Requeue => "the step is requeued",
            StepCause::Complete => "a result is submitted",
            StepCause::RequestReview => "a review is requested",
            StepCause::RequestApproval => "the plan is created with `requiresApproval`",
            StepCause::Approve => "`approve`",
            StepCause::ApproveStart => "`approve` of the plan's start",
            StepCause::Reject => "`reject`",
            StepCause::Revise => "`modify`",
            StepCause::ReviewSkip => "`skip`",
        }
    }

    const fn rejection(self) -> &'static str {
        match self {
            StepCause::Claim => "cannot claim the step",
            StepCause::BranchSkip | StepCause::SkipManually => "cannot skip the step",
            StepCause::FailManually | StepCause::FailByPolicy | StepCause::ExhaustAttempts => {
                "cannot fail the step"
            }
            StepCause::Requeue => "cannot requeue the step",
            StepCause::Complete => "cannot submit a result",
            StepCause::RequestReview | StepCause::RequestApproval => "cannot request a review",
            StepCause::Approve
            | StepCause::ApproveStart
            | StepCause::Reject
            | StepCause::Revise
            | StepCause::ReviewSkip => "no pending review",
        }
    }
}

/// An agent's claim on a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The attempt number, from 1.
    pub attempt: u32,
    /// The token that proves the claim.
    pub token: ClaimToken,
    /// The session that holds the claim, if the agent reported one.
    pub session: Option<SessionId>,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResult {
    /// The result as text.
    pub summary: String,
    /// The result as a JSON object. Branch conditions read it.
    pub data: Option<Json>,
    /// The agent's confidence, 0 to 1.
    pub confidence: Option<f64>,
    /// A report on how the step was executed.
    pub report: Option<Json>,
    /// Notes on the format of the output.
    pub formatting_notes: Option<String>,
    /// Evidence that the result meets the step's criteria.
    pub evidence: Vec<Evidence>,
}

impl StepResult {
    /// A result with only a summary.
    pub fn from_summary(summary: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            data: None,
            confidence: None,
            report: None,
            formatting_notes: None,
            evidence: Vec::new(),
        }
    }
}

/// The cause of a skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipCause {
    /// A branch's `skip_to`.
    Branch(BranchId),
    /// A reviewer's decision.
    Review(ReviewId),
    /// A person, without a review.
    Person,
}

/// A step's status with its data.
#[derive(Debug, Clone, PartialEq)]
pub enum StepState {
    /// Not claimed.
    Pending {
        /// The attempt number of the next claim.
        attempt: u32,
    },
    /// Claimed.
    InProgress(Work),
    /// Awaiting review. The step cannot stall in this state.
    AwaitingInput {
        /// The work that continues after `modify`. `None` if the start of the plan is under
        /// review: no agent has claimed the step.
        work: Option<Work>,
        /// The open review.
        review: Review,
    },
    /// Completed.
    Completed {
        /// The claim that completed it.
        claim: Claim,
        /// When that claim began.
        started_at: Timestamp,
        /// When it was completed.
        ended_at: Timestamp,
        /// The result.
        result: Arc<StepResult>,
    },
    /// Skipped.
    Skipped {
        /// The cause.
        by: SkipCause,
        /// The last claim, if there was one.
        claim: Option<Claim>,
        /// When it was skipped.
        ended_at: Timestamp,
    },
    /// Failed.
    Failed {
        /// The reason.
        reason: FailReason,
        /// The last claim, if there was one.
        claim: Option<Claim>,
        /// When it failed.
        ended_at: Timestamp,
    },
}

/// The definition of a step: everything that does not change while agents work on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStep {
    /// The step's id.
    pub id: StepId,
    /// The kind of work.
    pub step_type: StepType,
    /// A short name for display.
    pub title: Option<String>,
    /// The instructions for the agent.
    pub instructions: String,
    /// Steps that must be [met](Self::is_met_by) before this one can be claimed. Contains no duplicates.
    pub depends_on: Vec<StepId>,
    /// The step's stall threshold, if it sets one.
    pub stall_threshold: Option<Duration>,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// The gates of the result. Most steps have none.
    pub gates: Option<Arc<Gates>>,
    /// The step that this one redoes.
    pub supersedes: Option<StepId>,
    /// The labels that an agent must offer to claim the step, sorted, without duplicates.
    pub labels: Vec<String>,
    /// The priority, 0 to 9.
    pub priority: u8,
    /// Whether the step waits for dependencies that have failed.
    pub on_dependency_failure: OnDependencyFailure,
}

impl NewStep {
    /// Whether a dependency in this status lets the step start.
    pub fn is_met_by(&self, dependency: StepStatus) -> bool {
        match dependency {
            StepStatus::Completed | StepStatus::Skipped => true,
            StepStatus::Failed => self.on_dependency_failure == OnDependencyFailure::Continue,
            StepStatus::Pending | StepStatus::InProgress | StepStatus::AwaitingInput => false,
        }
    }
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The definition.
    pub spec: NewStep,
    /// The position in the plan: 1-based, without gaps.
    pub order: u32,
    /// The status with its data.
    pub state: StepState,
    /// The tokens of requeued claims, oldest first.
    pub superseded: Vec<ClaimToken>,
    /// The step that redoes this one. Set only on a terminal step.
    pub superseded_by: Option<StepId>,
    /// The last change of anything except `order` and `superseded_by`.
    pub updated_at: Timestamp,
}

/// The separator between a step's instructions and a reviewer's feedback. Stored with the step.
pub(crate) const FEEDBACK: &str = "\n\n---\n\nUser feedback: ";

impl Step {
    /// A pending step.
    pub fn new(spec: NewStep, order: u32, at: Timestamp) -> Self {
        Self {
            spec,
            order,
            state: StepState::Pending { attempt: 1 },
            superseded: Vec::new(),
            superseded_by: None,
            updated_at: at,
        }
    }

    /// Whether the instructions contain a reviewer's feedback.
    pub fn has_feedback(&self) -> bool {
        self.spec.instructions.contains(FEEDBACK)
    }

    /// The key by which the steps of a plan are assigned: the highest priority first, then by order.
    pub fn claim_order(&self) -> (u8, u32) {
        (rank(self.spec.priority), self.order)
    }

    /// The step's id.
    pub fn id(&self) -> StepId {
        self.spec.id
    }

    /// The status without its data.
    pub fn status(&self) -> StepStatus {
        match &self.state {
            StepState::Pending { .. } => StepStatus::Pending,
            StepState::InProgress(_) => StepStatus::InProgress,
            StepState::AwaitingInput { .. } => StepStatus::AwaitingInput,
            StepState::Completed { .. } => StepStatus::Completed,
            StepState::Skipped { .. } => StepStatus::Skipped,
            StepState::Failed { .. } => StepStatus::Failed,
        }
    }

    /// The last claim. `None` for a pending step and for one that ended without a claim.
    pub fn claim(&self) -> Option<&Claim> {
        match &self.state {
            StepState::Pending { .. } => None,
            StepState::InProgress(work) => Some(&work.claim),
            StepState::AwaitingInput { work, .. } => work.as_ref().map(|work| &work.claim),
            StepState::Completed { claim, .. } => Some(claim),
            StepState::Skipped { claim, .. } | StepState::Failed { claim, .. } => claim.as_ref(),
        }
    }

    /// The number of the current or last attempt, or of the next one while pending. 0 for a step
    /// that ended without a claim.
    pub fn attempt(&self) -> u32 {
        let requeued = u32::try_from(self.superseded.len()).unwrap_or(u32::MAX);
        match &self.state {
            StepState::Pending { attempt } => *attempt,
            StepState::AwaitingInput { work: None, .. } => requeued.saturating_add(1),
            StepState::InProgress(_)
            | StepState::AwaitingInput { work: Some(_), .. }
            | StepState::Completed { .. }
            | StepState::Skipped { .. }
            | StepState::Failed { .. } => self.claim().map_or(requeued, |claim| claim.attempt),
        }
    }

    /// Whether the current or last attempt was the last one allowed.
    pub fn is_exhausted(&self) -> bool {
        self.attempt() >= self.spec.max_attempts
    }

    /// Whether the step is in progress and this session holds its claim. A caller without a
    /// session cannot be distinguished from a holder without one.
    pub fn is_held_by(&self, session: Option<&SessionId>) -> bool {
        self.work()
            .is_some_and(|work| work.claim.session.as_ref() == session)
    }

    /// The work of a claimed step: in progress or under review.
    pub fn claimed_work(&self) -> Option<&Work> {
        match &self.state {
            StepState::InProgress(work) => Some(work),
            StepState::AwaitingInput { work, .. } => work.as_ref(),
            StepState::Pending { .. }
            | StepState::Completed { .. }
            | StepState::Skipped { .. }
            | StepState::Failed { .. } => None,
        }
    }

    /// When the decision on the step is due, if it is under review with a deadline.
    pub fn deadline(&self) -> Option<Timestamp> {
        Some(self.open_review()?.options.deadline?.at)
    }

    /// The review without a decision.
    pub fn open_review(&self) -> Option<&Review> {
        match &self.state {
            StepState::AwaitingInput { review, .. } => Some(review),
            StepState::Pending { .. }
            | StepState::InProgress(_)
            | StepState::Completed { .. }
            | StepState::Skipped { .. }
            | StepState::Failed { .. } => None,
        }
    }

    /// The work of a step in progress.
    pub fn work(&self) -> Option<&Work> {
        match &self.state {
            StepState::InProgress(work) => Some(work),
            StepState::Pending { .. }
            | StepState::AwaitingInput { .. }
            | StepState::Completed { .. }
            | StepState::Skipped { .. }
            | StepState::Failed { .. } => None,
        }
    }
}
