//! What happened. A plan is what its events say: [`apply`](crate::apply) makes the state from them.
//!
//! An event holds everything that its change needs, and where a step stood before, so that the head
//! of a plan can follow without its steps. [`Event::name`] is the name in the audit trail: stable,
//! and sometimes shared by several changes, which [`Event::action`] then tells apart.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::branch::{Branch, Effect, Verdict};
use crate::id::{ArtifactId, BranchId, PlanId, ReviewId, SessionId, SkillExecutionId, StepId};
use crate::plan::{Brief, PlanFailure};
use crate::policy::{OnStall, UnknownWord, from_word};
use crate::refusal::Code;
use crate::stall::Stall;
use crate::step::{Claim, FailReason, NewStep, SkipCause, StepResult, StepStatus};

/// One change of a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The plan came into being, or its list of steps and branches changed.
    PlanModified {
        /// What changed.
        change: Change,
        /// Why, where the author said so.
        rationale: Option<String>,
    },
    /// A claim was given out. The first one moves a plan from `planning` to `executing`.
    StepStarted {
        /// Which step.
        step: StepId,
        /// To whom.
        claim: Claim,
    },
    /// A result was accepted, or approved.
    StepCompleted {
        /// Which step.
        step: StepId,
        /// `in_progress`, or `awaiting_input` where a person approved.
        from: StepStatus,
        /// What came out.
        result: Arc<StepResult>,
        /// What came of the branches that were tried.
        verdicts: Vec<Verdict>,
        /// Who submitted it, where the agent said so.
        session: Option<SessionId>,
    },
    /// A step was given up.
    StepFailed {
        /// Which step.
        step: StepId,
        /// Where it stood.
        from: StepStatus,
        /// Why.
        reason: FailReason,
    },
    /// A step was passed over.
    StepSkipped {
        /// Which step.
        step: StepId,
        /// Where it stood.
        from: StepStatus,
        /// By whom.
        by: SkipCause,
    },
    /// A step was handed back, and waits for its next attempt.
    StepRequeued {
        /// Which step.
        step: StepId,
        /// The attempt that comes next.
        attempt: u32,
        /// Why.
        reason: RequeueReason,
    },
    /// A sign of life.
    StepProgressed {
        /// Which step.
        step: StepId,
        /// What the sign was.
        sign: Sign,
        /// In the agent's words.
        note: Option<String>,
        /// How far the agent thinks that it is.
        percent: Option<f64>,
        /// Whose sign it was, where known.
        session: Option<SessionId>,
    },
    /// An agent was told of a person's feedback. A sign of life, too.
    FeedbackDelivered {
        /// Which step.
        step: StepId,
        /// Who was told, where the agent said so.
        session: Option<SessionId>,
    },
    /// A branch's condition was true.
    BranchTaken {
        /// Which branch.
        branch: BranchId,
        /// After which step.
        step: StepId,
        /// What it did.
        effect: Effect,
    },
    /// A review was requested, or decided.
    UserReviewed {
        /// Which step.
        step: StepId,
        /// Which review.
        review: ReviewId,
        /// What was asked, or answered.
        action: ReviewAction,
    },
    /// A session that did not work on the plan before has taken it up.
    SessionResumed {
        /// Which session.
        session: SessionId,
    },
    /// A skill that is linked to the plan has begun. Changes nothing about the plan.
    SkillStarted {
        /// Which execution.
        execution: SkillExecutionId,
        /// Of which skill.
        skill: String,
    },
    /// A skill that is linked to the plan has ended. Changes nothing about the plan.
    SkillCompleted {
        /// Which execution.
        execution: SkillExecutionId,
        /// Of which skill.
        skill: String,
        /// What went wrong, where something did.
        error: Option<String>,
    },
    /// Stalls were acted upon by marking the plan.
    PlanStalled {
        /// Every stall that it is marked for.
        stalls: Vec<Stall>,
    },
    /// A stalled plan goes on.
    PlanResumed {
        /// Who goes on.
        by: ResumedBy,
    },
    /// Every step is terminal.
    PlanCompleted,
    /// The plan was given up.
    PlanFailed {
        /// Why.
        reason: PlanFailure,
    },
    /// A result was refused, and is kept beside the plan. Changes nothing about the plan.
    LateResultKept {
        /// For which step it was meant.
        step: StepId,
        /// Where it is kept.
        artifact: ArtifactId,
        /// Why it was refused.
        refused: Code,
    },
}

/// How a plan's list of steps and branches changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The plan came into being.
    Created(Box<Created>),
    /// Steps were inserted.
    StepsAdded {
        /// After the step with this order; 0 is the front.
        after: u32,
        /// What was inserted.
        steps: Arc<[NewStep]>,
    },
    /// A pending step was taken out, with its own branches.
    StepRemoved {
        /// Which step.
        step: StepId,
    },
    /// The steps stand in another order.
    StepsReordered {
        /// All of them, in their order.
        steps: Arc<[StepId]>,
    },
    /// A step's instructions were replaced.
    InstructionsUpdated {
        /// Which step.
        step: StepId,
        /// The text that stands there since.
        instructions: String,
    },
    /// Somebody failed a step; an event of its own says so of the step.
    StepFailed {
        /// Which step.
        step: StepId,
    },
    /// Somebody handed a step back; an event of its own says so of the step.
    StepRequeued {
        /// Which step.
        step: StepId,
    },
    /// A branch was added.
    BranchAdded {
        /// Which one.
        branch: Branch,
    },
}

impl Change {
    /// The word for it in the audit trail: the action of `modify_plan`, or `created`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Change::Created(_) => "created",
            Change::StepsAdded { .. } => "add_steps",
            Change::StepRemoved { .. } => "remove_step",
            Change::StepsReordered { .. } => "reorder_steps",
            Change::InstructionsUpdated { .. } => "update_step_instructions",
            Change::StepFailed { .. } => "fail_step",
            Change::StepRequeued { .. } => "requeue_step",
            Change::BranchAdded { .. } => "add_branch",
        }
    }
}

/// A plan as it came into being.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Which plan.
    pub plan: PlanId,
    /// What its author said about it.
    pub brief: Brief,
    /// Its steps, in their order.
    pub steps: Vec<NewStep>,
    /// Its branches, in the order in which they are tried.
    pub branches: Vec<Branch>,
    /// The plan's own threshold.
    pub stall_threshold: Option<Duration>,
    /// What the sweep does about a stall.
    pub on_stall: OnStall,
    /// Who made it, where the agent said so.
    pub session: Option<SessionId>,
}

/// Why a step was handed back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequeueReason {
    /// `modify_plan: requeue_step`.
    ByHand,
    /// It stalled, and the plan's policy is `requeue`.
    Stalled,
    /// It stalled, and another agent asked for it.
    TakenOver,
}

impl RequeueReason {
    /// The word for it in the audit trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            RequeueReason::ByHand => "by_hand",
            RequeueReason::Stalled => "stalled",
            RequeueReason::TakenOver => "taken_over",
        }
    }
}

/// What shows that somebody works on a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// `report_step_progress`. Always recorded.
    Reported,
    /// Something was written about the step. Recorded now and then.
    Written,
    /// The guard saw the session that holds the claim. Recorded now and then.
    Seen,
}

impl Sign {
    /// The word for it in the audit trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            Sign::Reported => "reported",
            Sign::Written => "written",
            Sign::Seen => "seen",
        }
    }
}

/// What a person can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The summary is the result.
    Approve,
    /// The plan fails.
    Reject,
    /// The agent goes on with it, and the feedback.
    Modify,
    /// The step is passed over.
    Skip,
}

impl Decision {
    /// Every decision.
    pub const ALL: [Decision; 4] = [
        Decision::Approve,
        Decision::Reject,
        Decision::Modify,
        Decision::Skip,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Decision::Approve => "approve",
            Decision::Reject => "reject",
            Decision::Modify => "modify",
            Decision::Skip => "skip",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Decision {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Self::ALL, Self::as_str)
    }
}

/// What was asked of a person, or answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewAction {
    /// An agent asks.
    Requested {
        /// What the person reads.
        summary: String,
        /// What the agent wants to know.
        questions: Vec<String>,
        /// Who asks, where the agent said so.
        session: Option<SessionId>,
    },
    /// A person answers.
    Decided {
        /// What they decided.
        decision: Decision,
        /// In their words.
        feedback: Option<String>,
    },
}

/// Who goes on with a stalled plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumedBy {
    /// An agent asked for the next step.
    NextStep,
    /// A result came late.
    LateResult,
    /// A step showed that it is alive.
    Progress,
    /// A person.
    Person,
}

impl ResumedBy {
    /// The word for it in the audit trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            ResumedBy::NextStep => "next_step",
            ResumedBy::LateResult => "late_result",
            ResumedBy::Progress => "progress",
            ResumedBy::Person => "person",
        }
    }
}

impl Event {
    /// Every name in the audit trail.
    pub const NAMES: [&str; 17] = [
        "plan_modified",
        "step_started",
        "step_completed",
        "step_failed",
        "step_skipped",
        "step_requeued",
        "step_progressed",
        "branch_taken",
        "user_reviewed",
        "session_resumed",
        "skill_started",
        "skill_completed",
        "plan_stalled",
        "plan_resumed",
        "plan_completed",
        "plan_failed",
        "late_result_kept",
    ];

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
            Event::BranchTaken { .. } => "branch_taken",
            Event::UserReviewed { .. } => "user_reviewed",
            Event::SessionResumed { .. } => "session_resumed",
            Event::SkillStarted { .. } => "skill_started",
            Event::SkillCompleted { .. } => "skill_completed",
            Event::PlanStalled { .. } => "plan_stalled",
            Event::PlanResumed { .. } => "plan_resumed",
            Event::PlanCompleted => "plan_completed",
            Event::PlanFailed { .. } => "plan_failed",
            Event::LateResultKept { .. } => "late_result_kept",
        }
    }

    /// What exactly was done, or by what, where one name in the audit trail covers several.
    pub fn action(&self) -> Option<&'static str> {
        match self {
            Event::PlanModified { change, .. } => Some(change.as_str()),
            Event::StepProgressed { sign, .. } => Some(sign.as_str()),
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
            | Event::SessionResumed { .. }
            | Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::PlanStalled { .. }
            | Event::PlanCompleted
            | Event::PlanFailed { .. }
            | Event::LateResultKept { .. } => None,
        }
    }

    /// The step that it is about, where it is about one.
    pub fn step(&self) -> Option<StepId> {
        match self {
            Event::StepStarted { step, .. }
            | Event::StepCompleted { step, .. }
            | Event::StepFailed { step, .. }
            | Event::StepSkipped { step, .. }
            | Event::StepRequeued { step, .. }
            | Event::StepProgressed { step, .. }
            | Event::FeedbackDelivered { step, .. }
            | Event::BranchTaken { step, .. }
            | Event::UserReviewed { step, .. }
            | Event::LateResultKept { step, .. } => Some(*step),
            Event::PlanModified { change, .. } => match change {
                Change::StepRemoved { step }
                | Change::InstructionsUpdated { step, .. }
                | Change::StepFailed { step }
                | Change::StepRequeued { step } => Some(*step),
                Change::BranchAdded { branch } => Some(branch.after),
                Change::Created(_) | Change::StepsAdded { .. } | Change::StepsReordered { .. } => {
                    None
                }
            },
            Event::SessionResumed { .. }
            | Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::PlanStalled { .. }
            | Event::PlanResumed { .. }
            | Event::PlanCompleted
            | Event::PlanFailed { .. } => None,
        }
    }
}
