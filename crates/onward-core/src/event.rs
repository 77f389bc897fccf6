//! Events: the changes of a plan. [`apply`](crate::apply) builds the state from them.
//!
//! An event contains all data of its change and the previous status of the step, so that a plan's
//! head can be updated without its steps. [`Event::name`] is the stable name in the audit trail.
//! Several changes may share a name; [`Event::action`] distinguishes them.

mod change;
mod review;
mod successor;

use std::sync::Arc;
use std::time::Duration;

use crate::branch::{Branch, BranchVerdict, Effect};
use crate::budget::{Budget, Exhausted};
use crate::id::{ArtifactId, BranchId, PlanId, ReviewId, SessionId, SkillExecutionId, StepId};
use crate::plan::{Brief, Origin, PlanFailure, PlanStatus};
use crate::policy::{OnDependencyFailure, OnStall};
use crate::refusal::Code;
use crate::routing::Routing;
use crate::stall::Stall;
use crate::step::{Claim, FailReason, NewStep, SkipCause, StepResult, StepStatus};

pub use change::Change;
pub(crate) use review::answers_line;
pub use review::{Decided, DecidedBy, Decision, ReviewAction};
pub use successor::Successor;

/// One change of a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The plan was created, or its steps or branches changed.
    PlanModified {
        /// The change.
        change: Change,
        /// The author's reason.
        rationale: Option<String>,
    },
    /// A step was claimed. The first claim moves the plan from `planning` to `executing`.
    StepStarted {
        /// The step.
        step: StepId,
        /// The new claim.
        claim: Claim,
    },
    /// A result was accepted or approved.
    StepCompleted {
        /// The step.
        step: StepId,
        /// `in_progress`, or `awaiting_input` after an approval.
        from: StepStatus,
        /// The result.
        result: Arc<StepResult>,
        /// The verdicts of the evaluated branches.
        verdicts: Vec<BranchVerdict>,
        /// The session that submitted it, if reported.
        session: Option<SessionId>,
    },
    /// A step failed.
    StepFailed {
        /// The step.
        step: StepId,
        /// The previous status.
        from: StepStatus,
        /// The reason.
        reason: FailReason,
    },
    /// A step was skipped.
    StepSkipped {
        /// The step.
        step: StepId,
        /// The previous status.
        from: StepStatus,
        /// The cause.
        by: SkipCause,
    },
    /// A step was requeued for another attempt, or the approval of the plan's start released it.
    StepRequeued {
        /// The step.
        step: StepId,
        /// The number of the next attempt.
        attempt: u32,
        /// The reason.
        reason: RequeueReason,
    },
    /// Activity on a step.
    StepProgressed {
        /// The step.
        step: StepId,
        /// The source of the activity.
        source: ProgressSource,
        /// The agent's note.
        note: Option<String>,
        /// The progress reported by the agent, in percent.
        percent: Option<f64>,
        /// The session, if known.
        session: Option<SessionId>,
    },
    /// A reviewer's feedback or changed instructions were delivered to the step's agent. Counts as
    /// activity.
    FeedbackDelivered {
        /// The step.
        step: StepId,
        /// The receiving session, if reported.
        session: Option<SessionId>,
    },
    /// The session that holds a step in progress has ended. Another session can take over the step.
    StepOrphaned {
        /// The step.
        step: StepId,
        /// The ended session.
        session: Option<SessionId>,
    },
    /// A branch was taken because its condition was true.
    BranchTaken {
        /// The branch.
        branch: BranchId,
        /// The step before the branch.
        step: StepId,
        /// The effect.
        effect: Effect,
    },
    /// A review was requested or decided.
    UserReviewed {
        /// The step.
        step: StepId,
        /// The review.
        review: ReviewId,
        /// The request or the decision.
        action: ReviewAction,
    },
    /// A session continued the plan for the first time.
    SessionResumed {
        /// The session.
        session: SessionId,
    },
    /// A skill execution linked to the plan started. Does not change the plan.
    SkillStarted {
        /// The execution.
        execution: SkillExecutionId,
        /// The skill's name.
        skill: String,
    },
    /// A skill execution linked to the plan ended. Does not change the plan.
    SkillCompleted {
        /// The execution.
        execution: SkillExecutionId,
        /// The skill's name.
        skill: String,
        /// The error, if the execution failed.
        error: Option<String>,
    },
    /// A limit of the plan's budget was found to be exhausted. Recorded once until the budget changes.
    BudgetExhausted {
        /// The limit.
        exhausted: Exhausted,
    },
    /// The plan was marked as stalled.
    PlanStalled {
        /// The stalls that caused it. Empty if the budget is exhausted and no step is in progress.
        stalls: Vec<Stall>,
    },
    /// A stalled plan was resumed.
    PlanResumed {
        /// The cause.
        by: ResumedBy,
    },
    /// Every step is terminal.
    PlanCompleted,
    /// The plan failed.
    PlanFailed {
        /// The plan's previous status.
        from: PlanStatus,
        /// The reason.
        reason: PlanFailure,
    },
    /// The previous event changed the plan's status but does not contain it: the first claim, a
    /// review request or a decision.
    PlanStatusChanged {
        /// The previous status.
        from: PlanStatus,
        /// The status since the previous event.
        to: PlanStatus,
    },
    /// A rejected result was stored as an artifact. Does not change the plan.
    LateResultKept {
        /// The step of the result.
        step: StepId,
        /// The artifact that contains the result.
        artifact: ArtifactId,
        /// The code of the rejection.
        rejection: Code,
        /// The attempt whose holder can correct the result. The step then refers to the artifact
        /// until the attempt ends.
        attempt: Option<u32>,
    },
}

/// A plan at its creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The plan's id.
    pub plan: PlanId,
    /// Who wrote it.
    pub origin: Origin,
    /// The author's description.
    pub brief: Brief,
    /// The steps, sorted by order.
    pub steps: Vec<NewStep>,
    /// The branches, in evaluation order.
    pub branches: Vec<Branch>,
    /// The plan's stall threshold.
    pub stall_threshold: Option<Duration>,
    /// The sweep's action on a stall.
    pub on_stall: OnStall,
    /// Whether steps wait for dependencies that have failed.
    pub on_dependency_failure: OnDependencyFailure,
    /// The session that created the plan, if reported.
    pub session: Option<SessionId>,
    /// The project, the labels and the priority.
    pub routing: Routing,
    /// The limits of the budget.
    pub budget: Option<Budget>,
}

/// Why a step was requeued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequeueReason {
    /// `modify_plan: requeue_step`.
    Manual,
    /// The step stalled, and the policy is `requeue`.
    Stalled,
    /// The step stalled, and another session took it over.
    TakenOver,
    /// A person approved the start of the plan. The step had no claim.
    Approved,
}

impl RequeueReason {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Manual, Self::Stalled, Self::TakenOver, Self::Approved];

    /// The value in the audit trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            RequeueReason::Manual => "by_hand",
            RequeueReason::Stalled => "stalled",
            RequeueReason::TakenOver => "taken_over",
            RequeueReason::Approved => "approved",
        }
    }

    /// The status of the step before the event.
    pub const fn previous_status(self) -> StepStatus {
        match self {
            RequeueReason::Manual | RequeueReason::Stalled | RequeueReason::TakenOver => {
                StepStatus::InProgress
            }
            RequeueReason::Approved => StepStatus::AwaitingInput,
        }
    }
}

/// The source of activity on a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressSource {
    /// `report_step_progress`. Always recorded.
    Reported,
    /// Data was written for the step. Recorded at intervals.
    Written,
    /// The session that holds the claim was active. Recorded at intervals.
    Seen,
}

impl ProgressSource {
    /// All sources.
    pub const ALL: [Self; 3] = [Self::Reported, Self::Written, Self::Seen];

    /// The value in the audit trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            ProgressSource::Reported => "reported",
            ProgressSource::Written => "written",
            ProgressSource::Seen => "seen",
        }
    }
}

/// Why a stalled plan was resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumedBy {
    /// An agent requested the next step.
    NextStep,
    /// A result was submitted after the stall.
    LateResult,
    /// Progress was reported.
    Progress,
    /// A user resumed it.
    User,
    /// A review of one of its steps was decided.
    Review,
    /// Its budget was raised or removed.
    Budget,
}

impl ResumedBy {
    /// All causes.
    pub const ALL: [Self; 6] = [
        Self::NextStep,
        Self::LateResult,
        Self::Progress,
        Self::User,
        Self::Review,
        Self::Budget,
    ];

    /// The value in the audit trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            ResumedBy::NextStep => "next_step",
            ResumedBy::LateResult => "late_result",
            ResumedBy::Progress => "progress",
            ResumedBy::User => "person",
            ResumedBy::Review => "review",
            ResumedBy::Budget => "budget",
        }
    }
}

impl Event {
    /// All names in the audit trail.
    pub const NAMES: [&str; 20] = [
        "plan_modified",
        "step_started",
        "step_completed",
        "step_failed",
        "step_skipped",
        "step_requeued",
        "step_progressed",
        "step_orphaned",
        "branch_taken",
        "user_reviewed",
        "session_resumed",
        "skill_started",
        "skill_completed",
        "budget_exhausted",
        "plan_stalled",
        "plan_resumed",
        "plan_completed",
        "plan_failed",
        "plan_status_changed",
        "late_result_kept",
    ];

    /// Whether the event changes the plan. If not, the plan's time of last change is kept.
    pub const fn changes_plan(&self) -> bool {
        !matches!(self, Event::LateResultKept { .. })
    }

    /// Whether an agent works on the plan, or is expected to continue after a decision. Changes by
    /// users to the plan's list of steps are no sign of an agent.
    pub const fn is_agent_activity(&self) -> bool {
        matches!(
            self,
            Event::StepStarted { .. }
                | Event::StepCompleted { .. }
                | Event::StepProgressed { .. }
                | Event::FeedbackDelivered { .. }
                | Event::UserReviewed { .. }
                | Event::SessionResumed { .. }
                | Event::SkillStarted { .. }
                | Event::SkillCompleted { .. }
        )
    }

    /// The name in the audit trail.
    pub const fn name(&self) -> &'static str {
        match self {
            Event::PlanModified { .. } => "plan_modified",
            Event::StepStarted { .. } => "step_started",
            Event::StepCompleted { .. } => "step_completed",
            Event::StepFailed { .. } => "step_failed",
            Event::StepSkipped { .. } => "step_skipped",
            Event::StepRequeued { .. } => "step_requeued",
            Event::StepProgressed { .. } | Event::FeedbackDelivered { .. } => "step_progressed",
            Event::StepOrphaned { .. } => "step_orphaned",
            Event::BranchTaken { .. } => "branch_taken",
            Event::UserReviewed { .. } => "user_reviewed",
            Event::SessionResumed { .. } => "session_resumed",
            Event::SkillStarted { .. } => "skill_started",
            Event::SkillCompleted { .. } => "skill_completed",
            Event::BudgetExhausted { .. } => "budget_exhausted",
            Event::PlanStalled { .. } => "plan_stalled",
            Event::PlanResumed { .. } => "plan_resumed",
            Event::PlanCompleted => "plan_completed",
            Event::PlanFailed { .. } => "plan_failed",
            Event::PlanStatusChanged { .. } => "plan_status_changed",
            Event::LateResultKept { .. } => "late_result_kept",
        }
    }

    /// The action or cause, for names that cover several changes.
    pub fn action(&self) -> Option<&'static str> {
        match self {
            Event::PlanModified { change, .. } => Some(change.as_str()),
            Event::StepProgressed { source: sign, .. } => Some(sign.as_str()),
            Event::FeedbackDelivered { .. } => Some("feedback_delivered"),
            Event::UserReviewed { action, .. } => Some(match action {
                ReviewAction::Requested { .. } => "review_requested",
                ReviewAction::Decided { decision, .. } => decision.as_str(),
            }),
            Event::BranchTaken { effect, .. } => Some(effect.action()),
            Event::StepRequeued { reason, .. } => Some(reason.as_str()),
            Event::PlanResumed { by } => Some(by.as_str()),
            Event::StepStarted { .. }
            | Event::StepCompleted { .. }
            | Event::StepFailed { .. }
            | Event::StepSkipped { .. }
            | Event::StepOrphaned { .. }
            | Event::SessionResumed { .. }
            | Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::BudgetExhausted { .. }
            | Event::PlanStalled { .. }
            | Event::PlanCompleted
            | Event::PlanFailed { .. }
            | Event::PlanStatusChanged { .. }
            | Event::LateResultKept { .. } => None,
        }
    }

    /// Whether the event is a change of the plan's status, with the previous and the new status.
    pub(crate) fn names_plan_status(&self) -> bool {
        matches!(
            self,
            Event::PlanStalled { .. }
                | Event::PlanResumed { .. }
                | Event::PlanCompleted
                | Event::PlanFailed { .. }
                | Event::PlanStatusChanged { .. }
        )
    }

    /// The step that the event ends.
    pub fn ended_step(&self) -> Option<StepId> {
        if let Event::StepCompleted { step, .. }
        | Event::StepFailed { step, .. }
        | Event::StepSkipped { step, .. } = self
        {
            Some(*step)
        } else {
            None
        }
    }

    /// The step, if the event concerns one.
    pub fn step(&self) -> Option<StepId> {
        match self {
            Event::StepStarted { step, .. }
            | Event::StepCompleted { step, .. }
            | Event::StepFailed { step, .. }
            | Event::StepSkipped { step, .. }
            | Event::StepRequeued { step, .. }
            | Event::StepProgressed { step, .. }
            | Event::FeedbackDelivered { step, .. }
            | Event::StepOrphaned { step, .. }
            | Event::BranchTaken { step, .. }
            | Event::UserReviewed { step, .. }
            | Event::LateResultKept { step, .. } => Some(*step),
            Event::PlanModified { change, .. } => match change {
                Change::StepRemoved { step }
                | Change::InstructionsUpdated { step, .. }
                | Change::StepRenamed { step, .. }
                | Change::StepFailed { step }
                | Change::StepSkipped { step }
                | Change::StepRequeued { step }
                | Change::StepRedone { step, .. } => Some(*step),
                Change::StepUpdated { step } => Some(step.id),
                Change::BranchAdded { branch } => Some(branch.after),
                Change::Created(_)
                | Change::StepsAdded { .. }
                | Change::StepsReordered { .. }
                | Change::BudgetSet { .. }
                | Change::PlanUpdated { .. } => None,
            },
            Event::SessionResumed { .. }
            | Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::BudgetExhausted { .. }
            | Event::PlanStalled { .. }
            | Event::PlanResumed { .. }
            | Event::PlanCompleted
            | Event::PlanFailed { .. }
            | Event::PlanStatusChanged { .. } => None,
        }
    }
}
