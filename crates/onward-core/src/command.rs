//! What can be asked of a plan. A command is imperative, and brings everything with it that is
//! random: the ids of what it makes, the token of a claim it may give out.
//!
//! Texts are as their author sent them; the verbs in [`decide`](mod@crate::decide) check them. Orders
//! (`depends_on`, `after_order`, …) are those of the plan as it will be once the command is done.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::event::{Decision, Sign};
use crate::id::{
    ArtifactId, BranchId, ClaimToken, PlanId, ReviewId, SessionId, SkillExecutionId, StepId,
};
use crate::policy::OnStall;
use crate::skill::SkillStatus;
use crate::step::{StepResult, StepType};

/// A step as its author describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSpec {
    /// A fresh id.
    pub id: StepId,
    /// What kind of work.
    pub step_type: StepType,
    /// A short name for people.
    pub title: Option<String>,
    /// What the agent is to do.
    pub instructions: String,
    /// Orders of the steps that must be terminal first.
    pub depends_on: Vec<u32>,
    /// The step's own threshold.
    pub stall_threshold: Option<Duration>,
    /// How often it is handed out at most.
    pub max_attempts: Option<u32>,
}

impl StepSpec {
    /// A step with instructions and nothing else said about it.
    pub fn new(id: StepId, step_type: StepType, instructions: impl Into<String>) -> Self {
        Self {
            id,
            step_type,
            title: None,
            instructions: instructions.into(),
            depends_on: Vec::new(),
            stall_threshold: None,
            max_attempts: None,
        }
    }
}

/// A branch as its author describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchSpec {
    /// A fresh id.
    pub id: BranchId,
    /// The order of the step whose result it looks at.
    pub after_order: u32,
    /// What must be true, in CEL.
    pub condition: String,
    /// What happens then.
    pub action: ActionSpec,
}

/// A branch's action as its author describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionSpec {
    /// Go on as usual.
    Continue,
    /// Pass over the pending steps up to this one.
    SkipTo(StepRef),
    /// Insert steps right after the step.
    AddSteps(Vec<StepSpec>),
    /// Fail the plan.
    Fail {
        /// Why.
        reason: Option<String>,
    },
}

/// A step, named in one of two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepRef {
    /// By its place.
    Order(u32),
    /// By its id.
    Id(StepId),
}

/// Make a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatePlan {
    /// A fresh id.
    pub plan: PlanId,
    /// A short name.
    pub name: String,
    /// The question, or the goal.
    pub research_question: String,
    /// Its steps, in their order.
    pub steps: Vec<StepSpec>,
    /// Its branches, in the order in which they are tried.
    pub branches: Vec<BranchSpec>,
    /// Why it is designed as it is.
    pub design_rationale: Option<String>,
    /// How the output should look.
    pub output_formatting_notes: Option<String>,
    /// The plan's own threshold.
    pub stall_threshold: Option<Duration>,
    /// What the sweep does about a stall.
    pub on_stall: OnStall,
    /// Who makes it.
    pub session: Option<SessionId>,
}

impl CreatePlan {
    /// A plan with steps and nothing else said about it.
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
            session: None,
        }
    }
}

/// Hand out the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartNext {
    /// A fresh token for the claim.
    pub token: ClaimToken,
    /// Who asks.
    pub session: Option<SessionId>,
    /// Also take over a step that is past its threshold; such a step comes first.
    pub include_stalled: bool,
}

/// Submit a step's result.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmitResult {
    /// Which step.
    pub step: StepId,
    /// What came out.
    pub result: Arc<StepResult>,
    /// The claim that it is submitted under; agents forget it.
    pub token: Option<ClaimToken>,
    /// A fresh token, for a step that nobody had claimed.
    pub fresh_token: ClaimToken,
    /// Who submits it.
    pub session: Option<SessionId>,
}

/// Show that somebody works on a step.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportProgress {
    /// Which step.
    pub step: StepId,
    /// What the sign is. Only [`Sign::Reported`] is ever refused; the others are silent where they
    /// do not fit.
    pub sign: Sign,
    /// In the agent's words.
    pub note: Option<String>,
    /// How far it is, 0 to 100.
    pub percent: Option<f64>,
    /// The claim that it is reported under.
    pub token: Option<ClaimToken>,
    /// Who reports.
    pub session: Option<SessionId>,
}

/// Ask a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestReview {
    /// Which step.
    pub step: StepId,
    /// A fresh id.
    pub review: ReviewId,
    /// What the person reads; on approval it becomes the step's result.
    pub summary: String,
    /// What the agent wants to know.
    pub questions: Vec<String>,
    /// The claim that it is asked under.
    pub token: Option<ClaimToken>,
    /// Who asks.
    pub session: Option<SessionId>,
}

/// Decide a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecideReview {
    /// Which step.
    pub step: StepId,
    /// What the person decided.
    pub decision: Decision,
    /// In their words.
    pub feedback: Option<String>,
}

/// Change the list of steps and branches, or one step in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifyPlan {
    /// What to change.
    pub modification: Modification,
    /// Why.
    pub rationale: Option<String>,
    /// A person acts on a stalled plan: resume it first, in the same breath.
    pub resume: bool,
}

/// A change of the list of steps and branches, or of one step in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Modification {
    /// Insert steps.
    AddSteps {
        /// What to insert.
        steps: Vec<StepSpec>,
        /// After the step with this order, 0 being the front; without it they are appended.
        insert_after: Option<u32>,
    },
    /// Take a pending step out.
    RemoveStep {
        /// Which one.
        step: StepId,
    },
    /// Put all steps in another order.
    ReorderSteps {
        /// All of them.
        steps: Vec<StepId>,
    },
    /// Replace a step's instructions.
    UpdateInstructions {
        /// Which step.
        step: StepId,
        /// What the agent is to do.
        instructions: String,
    },
    /// Give a step up.
    FailStep {
        /// Which step.
        step: StepId,
        /// Why.
        reason: Option<String>,
    },
    /// Hand a step back, to be handed out again.
    RequeueStep {
        /// Which step.
        step: StepId,
    },
    /// Add a branch.
    AddBranch {
        /// Which one.
        branch: BranchSpec,
    },
}

/// Act on the stalls of a plan. The sweep asks for it, or a handler that knows of one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HandleStalls {
    /// Another policy than the plan's own.
    pub policy: Option<OnStall>,
    /// Another threshold than the plan's and its steps' own.
    pub threshold: Option<Duration>,
}

/// Give the plan up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbandonPlan {
    /// Why.
    pub reason: Option<String>,
}

/// Note that a session takes the plan up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeSession {
    /// Which session.
    pub session: SessionId,
}

/// Note that a skill which is linked to the plan began or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSkill {
    /// Which execution.
    pub execution: SkillExecutionId,
    /// Of which skill.
    pub skill: String,
    /// What happened to it.
    pub phase: SkillPhase,
}

/// What happened to a skill's execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillPhase {
    /// It began.
    Started,
    /// It ended well.
    Completed,
    /// It ended badly.
    Failed {
        /// What went wrong.
        error: Option<String>,
    },
}

/// Report on a skill's execution. It is about no plan, or about the one that it is linked to.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportSkill {
    /// Which skill.
    pub skill: String,
    /// Where its execution stands.
    pub status: SkillStatus,
    /// Whose execution it is.
    pub session: Option<SessionId>,
    /// The plan to link it to.
    pub plan: Option<PlanId>,
    /// Whatever else there is to say; later words replace earlier ones, key by key.
    pub metadata: Map<String, Value>,
    /// What went wrong.
    pub error: Option<String>,
}

/// Note that a refused result is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepLateResult {
    /// For which step it was meant.
    pub step: StepId,
    /// Where it is kept.
    pub artifact: ArtifactId,
    /// Why it was refused.
    pub refused: crate::refusal::Code,
}

/// Anything that can be asked of a plan that exists.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    missing_docs,
    reason = "each variant is documented at the struct that it holds"
)]
pub enum Command {
    StartNext(StartNext),
    SubmitResult(SubmitResult),
    ReportProgress(ReportProgress),
    RequestReview(RequestReview),
    DecideReview(DecideReview),
    ModifyPlan(ModifyPlan),
    HandleStalls(HandleStalls),
    /// A person goes on with a stalled plan.
    ResumePlan,
    AbandonPlan(AbandonPlan),
    ResumeSession(ResumeSession),
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
    SubmitResult,
    ReportProgress,
    RequestReview,
    DecideReview,
    ModifyPlan,
    HandleStalls,
    AbandonPlan,
    ResumeSession,
    LogSkill,
    KeepLateResult
);

/// What of a refused command must not be lost.
#[derive(Debug, Clone, PartialEq)]
pub struct LateResult {
    /// For which step it was meant.
    pub step: StepId,
    /// What was said.
    pub content: Arc<StepResult>,
}

impl Command {
    /// What must be kept of this command where it is refused, whatever the reason: work is never
    /// thrown away.
    pub fn late_result(&self) -> Option<LateResult> {
        match self {
            Command::SubmitResult(submit) => Some(LateResult {
                step: submit.step,
                content: Arc::clone(&submit.result),
            }),
            Command::RequestReview(request) => Some(LateResult {
                step: request.step,
                content: Arc::new(StepResult {
                    data: Some(serde_json::json!({ "questions": request.questions })),
                    ..StepResult::of_summary(request.summary.clone())
                }),
            }),
            Command::ReportProgress(report) => {
                let percent = report
                    .percent
                    .map(|percent| format!("{percent} percent done"));
                report.note.clone().or(percent).map(|note| LateResult {
                    step: report.step,
                    content: Arc::new(StepResult::of_summary(note)),
                })
            }
            Command::StartNext(_)
            | Command::DecideReview(_)
            | Command::ModifyPlan(_)
            | Command::HandleStalls(_)
            | Command::ResumePlan
            | Command::AbandonPlan(_)
            | Command::ResumeSession(_)
            | Command::LogSkill(_)
            | Command::KeepLateResult(_) => None,
        }
    }
}
