//! Commands on plans. A command contains every random value that it needs: the ids of new objects
//! and the token of a new claim.
//!
//! Texts are unchecked; [`decide`](mod@crate::decide) checks them. Orders (`depends_on`,
//! `after_order`, …) refer to the plan as it is before the command. New steps are numbered after
//! its last step, wherever they are inserted: in a plan of 5 steps, the first new step is 6.

mod modification;
mod update;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

pub use crate::id::StepRef;
pub use modification::Modification;
pub use update::{PlanUpdate, StepUpdate};

use crate::budget::Budget;
use crate::event::{Decision, ProgressSource};
use crate::id::{
    ArtifactId, BranchId, ClaimToken, PlanId, ReviewId, SessionId, SkillExecutionId, StepId,
};
use crate::plan::Origin;
use crate::policy::{OnDependencyFailure, OnStall};
use crate::routing::{DEFAULT_PRIORITY, Routing};
use crate::skill::SkillStatus;
use crate::step::{Gates, ReviewOptions, ReviewScope, StepResult, StepType};

/// The specification of a new step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSpec {
    /// A new id.
    pub id: StepId,
    /// The kind of work.
    pub step_type: StepType,
    /// A short name for display.
    pub title: Option<String>,
    /// The instructions for the agent.
    pub instructions: String,
    /// Orders of the steps that must be terminal before this one can be claimed.
    pub depends_on: Vec<u32>,
    /// Ids of existing steps that must be terminal as well.
    pub depends_on_ids: Vec<StepId>,
    /// The step's stall threshold.
    pub stall_threshold: Option<Duration>,
    /// The maximum number of attempts.
    pub max_attempts: Option<u32>,
    /// The gates of the result.
    pub gates: Option<Arc<Gates>>,
    /// The labels that an agent must offer to claim the step.
    pub labels: Vec<String>,
    /// The priority, 0 to 9. Higher priorities are assigned first.
    pub priority: u8,
}

impl StepSpec {
    /// A step with only the required fields.
    pub fn new(id: StepId, step_type: StepType, instructions: impl Into<String>) -> Self {
        Self {
            id,
            step_type,
            title: None,
            instructions: instructions.into(),
            depends_on: Vec::new(),
            depends_on_ids: Vec::new(),
            stall_threshold: None,
            max_attempts: None,
            gates: None,
            labels: Vec::new(),
            priority: DEFAULT_PRIORITY,
        }
    }
}

/// The specification of a new branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchSpec {
    /// A new id.
    pub id: BranchId,
    /// The order of the step whose result the condition reads.
    pub after_order: u32,
    /// The condition in CEL.
    pub condition: String,
    /// The action if the condition is true.
    pub action: ActionSpec,
}

/// The specification of a branch's action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionSpec {
    /// Continue with the next step.
    Continue,
    /// Skip the pending steps before this one.
    SkipTo(StepRef),
    /// Insert steps directly after the step.
    AddSteps(Vec<StepSpec>),
    /// Fail the plan.
    Fail {
        /// The reason.
        reason: Option<String>,
    },
}

/// Create a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatePlan {
    /// A new id.
    pub plan: PlanId,
    /// A short name.
    pub name: String,
    /// The question or goal.
    pub research_question: String,
    /// The steps, sorted by order.
    pub steps: Vec<StepSpec>,
    /// The branches, in evaluation order.
    pub branches: Vec<BranchSpec>,
    /// The reasons for the plan's design.
    pub design_rationale: Option<String>,
    /// Notes on the format of the output.
    pub output_formatting_notes: Option<String>,
    /// The plan's stall threshold.
    pub stall_threshold: Option<Duration>,
    /// The sweep's action on a stall.
    pub on_stall: OnStall,
    /// Whether steps wait for dependencies that have failed.
    pub on_dependency_failure: OnDependencyFailure,
    /// The session that creates the plan.
    pub session: Option<SessionId>,
    /// Who wrote the plan.
    pub origin: Origin,
    /// A new id for the review of the plan's start. `None` if the plan requires no approval.
    pub approval: Option<ReviewId>,
    /// The project, the labels and the priority.
    pub routing: Routing,
    /// The limits of the budget.
    pub budget: Option<Budget>,
}

impl CreatePlan {
    /// A plan with only the required fields.
    pub fn new(
        plan: PlanId,
        name: impl Into<String>,
        research_question: impl Into<String>,
        steps: Vec<StepSpec>,
    ) -> Self {
        Self {
            plan,
            name: name.into(),
            research_question: research_question.into(),
            steps,
            branches: Vec::new(),
            design_rationale: None,
            output_formatting_notes: None,
            stall_threshold: None,
            on_stall: OnStall::default(),
            on_dependency_failure: OnDependencyFailure::default(),
            session: None,
            origin: Origin::default(),
            approval: None,
            routing: Routing::default(),
            budget: None,
        }
    }
}

/// Create a plan from an existing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPlan {
    /// A new id.
    pub plan: PlanId,
    /// The order of the first step whose result is not taken over.
    pub from_order: u32,
    /// A short name. Default: that of the source.
    pub name: Option<String>,
    /// The question or goal. Default: that of the source.
    pub research_question: Option<String>,
    /// The reasons for the plan's design. Default: those of the source.
    pub design_rationale: Option<String>,
    /// The session that creates the plan.
    pub session: Option<SessionId>,
    /// A new id for the review of the plan's start. `None` if the plan requires no approval.
    pub approval: Option<ReviewId>,
}

/// Claim the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartNext {
    /// A new token for the claim.
    pub token: ClaimToken,
    /// The calling session.
    pub session: Option<SessionId>,
    /// Take over a stalled step if there is one. Stalled steps take precedence over pending ones.
    pub include_stalled: bool,
    /// The labels that the caller offers. Default: all.
    pub labels: Option<Vec<String>>,
}

/// Claim a pending step that the caller selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartStep {
    /// The step.
    pub step: StepId,
    /// A new token for the claim.
    pub token: ClaimToken,
    /// The calling session.
    pub session: Option<SessionId>,
}

/// Submit a step's result.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmitResult {
    /// The step.
    pub step: StepId,
    /// The result.
    pub result: Arc<StepResult>,
    /// The token of the claim. Optional, because agents often lose it.
    pub token: Option<ClaimToken>,
    /// A new token for a step without a claim.
    pub fresh_token: ClaimToken,
    /// A new id for the review of the result, if the step requires one.
    pub review: ReviewId,
    /// The calling session.
    pub session: Option<SessionId>,
}

/// Report activity on a step.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportProgress {
    /// The step.
    pub step: StepId,
    /// The source of the activity. Only [`ProgressSource::Reported`] can be rejected; activity from
    /// another source is ignored if it does not apply.
    pub source: ProgressSource,
    /// The agent's note.
    pub note: Option<String>,
    /// Progress in percent, 0 to 100.
    pub percent: Option<f64>,
    /// The token of the claim.
    pub token: Option<ClaimToken>,
    /// The calling session.
    pub session: Option<SessionId>,
}

/// Request a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestReview {
    /// The step.
    pub step: StepId,
    /// A new id.
    pub review: ReviewId,
    /// The text under review. On approval it becomes the step's result.
    pub summary: String,
    /// The agent's questions.
    pub questions: Vec<String>,
    /// What waits for the decision.
    pub scope: ReviewScope,
    /// The optional parts of the request.
    pub options: ReviewOptions,
    /// The token of the claim.
    pub token: Option<ClaimToken>,
    /// The calling session.
    pub session: Option<SessionId>,
}

/// The author of a review decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewer {
    /// A person.
    Person,
    /// An agent: its own decision, or one that it passes on.
    Agent {
        /// Whether it may decide reviews that are not a gate.
        permitted: bool,
    },
    /// The policy of the review, at its deadline.
    Policy,
    /// The holder of a decision link: a person. The link works once.
    Link {
        /// The recipient.
        recipient: String,
    },
}

/// Decide a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecideReview {
    /// The step under review.
    pub step: StepId,
    /// The review. Default: the pending review of the step.
    pub review: Option<ReviewId>,
    /// The author of the decision.
    pub reviewer: Reviewer,
    /// The reviewer's decision.
    pub decision: Decision,
    /// The reviewer's feedback.
    pub feedback: Option<String>,
    /// The answers to the typed questions.
    pub answers: Map<String, Value>,
    /// The token of the claim, if an agent submits the decision.
    pub token: Option<ClaimToken>,
    /// The calling session.
    pub session: Option<SessionId>,
}

/// Change the step list, a branch or one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifyPlan {
    /// The change.
    pub modification: Modification,
    /// The reason.
    pub rationale: Option<String>,
    /// Resume a stalled plan in the same transaction. Set for changes by a user.
    pub resume: bool,
    /// The token of the claim on the changed step, if an agent changes it.
    pub token: Option<ClaimToken>,
    /// The calling session.
    pub session: Option<SessionId>,
}

impl ModifyPlan {
    /// A change without a rationale, to a plan that is not stalled.
    pub fn new(modification: Modification) -> Self {
        Self {
            modification,
            rationale: None,
            resume: false,
            token: None,
            session: None,
        }
    }
}

/// Handle the stalls of a plan. Sent by the sweep or by a handler that detects a stall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HandleStalls {
    /// Overrides the plan's policy.
    pub policy: Option<OnStall>,
    /// Overrides the thresholds of the plan and its steps.
    pub threshold: Option<Duration>,
}

/// Compare the tokens of the plan's sessions with its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountTokens {
    /// All tokens so far.
    pub total: u64,
}

/// Abandon the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbandonPlan {
    /// The reason.
    pub reason: Option<String>,
}

/// Record that a session continues the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeSession {
    /// The session.
    pub session: SessionId,
}

/// Record that the session that holds a step has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanStep {
    /// The step.
    pub step: StepId,
    /// The ended session.
    pub session: SessionId,
    /// The token of its claim, if the claim is not recorded under the session's id.
    pub token: Option<ClaimToken>,
}

/// Record the start or end of a skill execution that is linked to the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSkill {
    /// The execution's id.
    pub execution: SkillExecutionId,
    /// The skill's name.
    pub skill: String,
    /// The recorded phase.
    pub phase: SkillPhase,
}

/// The phase of a skill execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillPhase {
    /// The execution started.
    Started,
    /// The execution completed.
    Completed,
    /// The execution failed.
    Failed {
        /// The error.
        error: Option<String>,
    },
}

/// Report on a skill execution, which may be linked to a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportSkill {
    /// The skill's name.
    pub skill: String,
    /// The status of the execution.
    pub status: SkillStatus,
    /// The session that runs the skill.
    pub session: Option<SessionId>,
    /// The plan to link it to.
    pub plan: Option<PlanId>,
    /// Additional data. Later reports overwrite earlier values, key by key.
    pub metadata: Map<String, Value>,
    /// The error.
    pub error: Option<String>,
}

/// Record that a rejected result is stored as an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepLateResult {
    /// The step of the result.
    pub step: StepId,
    /// The artifact that contains the result.
    pub artifact: ArtifactId,
    /// The code of the rejection.
    pub rejection: crate::refusal::Code,
    /// The attempt whose next accepted result makes the artifact obsolete:
    /// [`correctable_attempt`](crate::decide::keep_late_result::correctable_attempt).
    pub attempt: Option<u32>,
}

/// A command on an existing plan.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each variant is documented at its struct")]
pub enum Command {
    StartNext(StartNext),
    StartStep(StartStep),
    SubmitResult(SubmitResult),
    ReportProgress(ReportProgress),
    RequestReview(RequestReview),
    DecideReview(DecideReview),
    ModifyPlan(ModifyPlan),
    HandleStalls(HandleStalls),
    CountTokens(CountTokens),
    /// A user resumes a stalled plan.
    ResumePlan,
    AbandonPlan(AbandonPlan),
    ResumeSession(ResumeSession),
    OrphanStep(OrphanStep),
    LogSkill(LogSkill),
    KeepLateResult(KeepLateResult),
}

macro_rules! commands {
    ($($name:ident),*) => {
        $(impl From<$name> for Command {
            fn from(command: $name) -> Self {
                Command::$name(command)
            }
        })*
    };
}

commands!(
    StartNext,
    StartStep,
    SubmitResult,
    ReportProgress,
    RequestReview,
    DecideReview,
    ModifyPlan,
    HandleStalls,
    CountTokens,
    AbandonPlan,
    ResumeSession,
    OrphanStep,
    LogSkill,
    KeepLateResult
);

/// The content of a rejected command that must be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct LateResult {
    /// The step of the result.
    pub step: StepId,
    /// The content.
    pub content: Arc<StepResult>,
    /// The token of the claim, if the caller sent it.
    pub token: Option<ClaimToken>,
}

impl Command {
    /// The content of this command that must be stored if the command is rejected.
    pub fn late_result(&self) -> Option<LateResult> {
        match self {
            Command::SubmitResult(submit) => Some(LateResult {
                step: submit.step,
                content: Arc::clone(&submit.result),
                token: submit.token.clone(),
            }),
            Command::RequestReview(request) => Some(LateResult {
                step: request.step,
                content: Arc::new(StepResult {
                    data: Some(serde_json::json!({ "questions": request.questions }).into()),
                    ..StepResult::from_summary(request.summary.clone())
                }),
                token: request.token.clone(),
            }),
            Command::ReportProgress(report) => {
                let percent = report
                    .percent
                    .map(|percent| format!("{percent} percent done"));
                report.note.clone().or(percent).map(|note| LateResult {
                    step: report.step,
                    content: Arc::new(StepResult::from_summary(note)),
                    token: report.token.clone(),
                })
            }
            Command::StartNext(_)
            | Command::StartStep(_)
            | Command::DecideReview(_)
            | Command::ModifyPlan(_)
            | Command::HandleStalls(_)
            | Command::CountTokens(_)
            | Command::ResumePlan
            | Command::AbandonPlan(_)
            | Command::ResumeSession(_)
            | Command::OrphanStep(_)
            | Command::LogSkill(_)
            | Command::KeepLateResult(_) => None,
        }
    }
}
