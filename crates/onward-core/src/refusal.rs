//! Why a command was not done: one fact each, with a stable code and a hint at the call that helps.
//!
//! A refusal changes nothing. It is not an error of the machinery: those belong to the crates above,
//! which share the list of [`Code`]s so that one word means one thing everywhere. A hint never names
//! a command that destroys something.

use std::fmt;

use crate::condition::InvalidCondition;
use crate::id::{BranchId, StepId};
use crate::plan::{IllegalPlanMove, PlanStatus};
use crate::role::Forbidden;
use crate::skill::IllegalSkillMove;
use crate::step::{IllegalStepMove, StepStatus};

/// The stable name of a kind of refusal, on every surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "the variants are the codes, and the refusals explain them"
)]
pub enum Code {
    InvalidInput,
    InvalidCondition,
    InvalidDependency,
    InvalidStepReference,
    PlanNotFound,
    StepNotFound,
    IllegalTransition,
    PlanNotModifiable,
    PlanIsTerminal,
    StepNotRemovable,
    IncompleteStepList,
    ClaimSuperseded,
    FeedbackRequired,
    LimitExceeded,
    Unauthorized,
    Forbidden,
    RateLimited,
    Conflict,
    Unavailable,
    NotConfigured,
}

impl Code {
    /// Every code.
    pub const ALL: [Code; 20] = [
        Code::InvalidInput,
        Code::InvalidCondition,
        Code::InvalidDependency,
        Code::InvalidStepReference,
        Code::PlanNotFound,
        Code::StepNotFound,
        Code::IllegalTransition,
        Code::PlanNotModifiable,
        Code::PlanIsTerminal,
        Code::StepNotRemovable,
        Code::IncompleteStepList,
        Code::ClaimSuperseded,
        Code::FeedbackRequired,
        Code::LimitExceeded,
        Code::Unauthorized,
        Code::Forbidden,
        Code::RateLimited,
        Code::Conflict,
        Code::Unavailable,
        Code::NotConfigured,
    ];

    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::InvalidInput => "invalid_input",
            Code::InvalidCondition => "invalid_condition",
            Code::InvalidDependency => "invalid_dependency",
            // The one that keeps its historic spelling.
            Code::InvalidStepReference => "INVALID_STEP_REFERENCE",
            Code::PlanNotFound => "plan_not_found",
            Code::StepNotFound => "step_not_found",
            Code::IllegalTransition => "illegal_transition",
            Code::PlanNotModifiable => "plan_not_modifiable",
            Code::PlanIsTerminal => "plan_is_terminal",
            Code::StepNotRemovable => "step_not_removable",
            Code::IncompleteStepList => "incomplete_step_list",
            Code::ClaimSuperseded => "claim_superseded",
            Code::FeedbackRequired => "feedback_required",
            Code::LimitExceeded => "limit_exceeded",
            Code::Unauthorized => "unauthorized",
            Code::Forbidden => "forbidden",
            Code::RateLimited => "rate_limited",
            Code::Conflict => "conflict",
            Code::Unavailable => "unavailable",
            Code::NotConfigured => "not_configured",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that is wrong with the input, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Such as `steps[2].instructions`.
    pub path: String,
    /// What is wrong with it, and what would fit.
    pub message: String,
}

/// Why a dependency cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadDependency {
    /// There is no step with this order.
    Unknown {
        /// The step that names it.
        step: u32,
        /// What it names.
        order: u32,
    },
    /// Each of these steps waits for the next; the first one stands at the end again.
    Cycle(Vec<u32>),
}

/// Why a step cannot be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRemovable {
    /// It was taken on already.
    NotPending(StepStatus),
    /// A branch needs it.
    NeededByBranch(BranchId),
    /// A step depends on it.
    NeededByStep(StepId),
}

/// Why a command was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The input does not fit.
    InvalidInput(Vec<Issue>),
    /// A condition cannot be parsed, or is out of bounds.
    InvalidCondition {
        /// Where it stands in the input.
        path: String,
        /// What is wrong with it.
        why: InvalidCondition,
    },
    /// A dependency cannot be.
    InvalidDependency(BadDependency),
    /// An order, or a step, that a branch or an insertion cannot use.
    InvalidStepReference {
        /// Where it stands in the input.
        path: String,
        /// What was named.
        named: String,
        /// What would fit.
        expected: String,
    },
    /// There is no such step in this plan.
    StepNotFound(StepId),
    /// The step cannot do that from where it stands.
    IllegalStepMove(IllegalStepMove),
    /// Nobody works on the step, so nothing can show that somebody does.
    StepNotInProgress(StepStatus),
    /// The step is over.
    StepIsTerminal(StepStatus),
    /// The plan cannot do that from where it stands.
    IllegalPlanMove(IllegalPlanMove),
    /// The skill's execution cannot do that from where it stands.
    IllegalSkillMove(IllegalSkillMove),
    /// Only a plan that is `planning` or `executing` can be modified.
    PlanNotModifiable(PlanStatus),
    /// The plan is over.
    PlanIsTerminal(PlanStatus),
    /// The step cannot be taken out.
    StepNotRemovable(NotRemovable),
    /// The list to reorder by is not exactly the plan's.
    IncompleteStepList {
        /// Steps of the plan that are not in the list.
        missing: Vec<StepId>,
        /// Ids in the list that are no step of the plan.
        unknown: Vec<StepId>,
        /// Ids that are in the list more than once.
        doubled: Vec<StepId>,
    },
    /// Another claim holds the step, or ended it.
    ClaimSuperseded {
        /// The attempt that the step is in.
        attempt: u32,
        /// Where the step stands.
        status: StepStatus,
    },
    /// `modify` says nothing without feedback.
    FeedbackRequired,
    /// Something would grow past its bound.
    LimitExceeded {
        /// What.
        what: &'static str,
        /// Its bound.
        limit: usize,
        /// What it would have been.
        asked: usize,
    },
    /// The role does not allow it.
    Forbidden(Forbidden),
}

impl Refusal {
    /// The stable name.
    pub fn code(&self) -> Code {
        match self {
            Refusal::InvalidInput(_) => Code::InvalidInput,
            Refusal::InvalidCondition { .. } => Code::InvalidCondition,
            Refusal::InvalidDependency(_) => Code::InvalidDependency,
            Refusal::InvalidStepReference { .. } => Code::InvalidStepReference,
            Refusal::StepNotFound(_) => Code::StepNotFound,
            Refusal::IllegalStepMove(_)
            | Refusal::StepNotInProgress(_)
            | Refusal::StepIsTerminal(_)
            | Refusal::IllegalPlanMove(_)
            | Refusal::IllegalSkillMove(_) => Code::IllegalTransition,
            Refusal::PlanNotModifiable(_) => Code::PlanNotModifiable,
            Refusal::PlanIsTerminal(_) => Code::PlanIsTerminal,
            Refusal::StepNotRemovable(_) => Code::StepNotRemovable,
            Refusal::IncompleteStepList { .. } => Code::IncompleteStepList,
            Refusal::ClaimSuperseded { .. } => Code::ClaimSuperseded,
            Refusal::FeedbackRequired => Code::FeedbackRequired,
            Refusal::LimitExceeded { .. } => Code::LimitExceeded,
            Refusal::Forbidden(_) => Code::Forbidden,
        }
    }

    /// What to do next: a call that helps.
    pub fn hint(&self) -> &'static str {
        match self {
            Refusal::InvalidInput(_) => {
                "correct the fields named in `issues` and send the call again"
            }
            Refusal::InvalidCondition { .. } => {
                "write the condition in CEL, such as `confidence >= 0.8` or `result.sources.size() < 3`"
            }
            Refusal::InvalidDependency(_) => {
                "`dependsOn` takes the orders of steps of this plan, and no step may wait for itself"
            }
            Refusal::InvalidStepReference { .. } | Refusal::StepNotFound(_) => {
                "`list_plan_steps` shows the steps of the plan with their ids and orders"
            }
            Refusal::IllegalStepMove(_) | Refusal::StepIsTerminal(_) => {
                "`get_plan_status` shows where each step stands"
            }
            Refusal::StepNotInProgress(_) => "`get_next_step` hands out a step to work on",
            Refusal::IllegalPlanMove(IllegalPlanMove { from, .. }) => match from {
                PlanStatus::Stalled => "`get_next_step` or `report_step_progress` resumes the plan",
                PlanStatus::AwaitingReview => "a person decides first: `submit_user_decision`",
                PlanStatus::Planning
                | PlanStatus::Executing
                | PlanStatus::Completed
                | PlanStatus::Failed => "`get_plan_status` shows where the plan stands",
            },
            Refusal::IllegalSkillMove(_) => {
                "`log_skill_execution` without `executionId` starts another execution"
            }
            Refusal::PlanNotModifiable(status) => match status {
                PlanStatus::Stalled => "`get_next_step` resumes the plan; then it can be modified",
                PlanStatus::AwaitingReview => "a person decides first: `submit_user_decision`",
                PlanStatus::Planning
                | PlanStatus::Executing
                | PlanStatus::Completed
                | PlanStatus::Failed => {
                    "`create_research_plan` makes a plan for what is left to do"
                }
            },
            Refusal::PlanIsTerminal(_) => "`get_plan_status` shows how the plan ended",
            Refusal::StepNotRemovable(NotRemovable::NotPending(_)) => {
                "only a pending step can be removed; `get_plan_status` shows where each step stands"
            }
            Refusal::StepNotRemovable(
                NotRemovable::NeededByBranch(_) | NotRemovable::NeededByStep(_),
            ) => {
                "`modify_plan` with `update_step_instructions` can change what the step is for instead"
            }
            Refusal::IncompleteStepList { .. } => {
                "`list_plan_steps` shows all ids; send every one of them exactly once"
            }
            Refusal::ClaimSuperseded { .. } => "`get_next_step` hands out a step that is free",
            Refusal::FeedbackRequired => "send `feedback` with what should be different",
            Refusal::LimitExceeded { .. } => "send less at once, or use a second plan",
            Refusal::Forbidden(_) => {
                "ask an owner or admin of the tenant for a token with another role"
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::InvalidInput(issues) => match issues.as_slice() {
                [only] => write!(f, "`{}` {}", only.path, only.message),
                several => write!(f, "{} fields do not fit", several.len()),
            },
            Refusal::InvalidCondition { path, why } => write!(f, "`{path}`: {why}"),
            Refusal::InvalidDependency(BadDependency::Unknown { step, order }) => {
                write!(
                    f,
                    "step {step} depends on step {order}, which does not exist"
                )
            }
            Refusal::InvalidDependency(BadDependency::Cycle(orders)) => {
                let chain: Vec<String> = orders.iter().map(u32::to_string).collect();
                write!(f, "steps wait for each other: {}", chain.join(" → "))
            }
            Refusal::InvalidStepReference {
                path,
                named,
                expected,
            } => {
                write!(f, "`{path}` names {named}, but needs {expected}")
            }
            Refusal::StepNotFound(step) => write!(f, "no step `{step}`"),
            Refusal::IllegalStepMove(illegal) => fmt::Display::fmt(illegal, f),
            Refusal::StepNotInProgress(status) => {
                write!(
                    f,
                    "a step that is `{status}` shows no progress, only one that is `in_progress`"
                )
            }
            Refusal::StepIsTerminal(status) => {
                write!(f, "a step that is `{status}` gets no more branches")
            }
            Refusal::IllegalPlanMove(illegal) => fmt::Display::fmt(illegal, f),
            Refusal::IllegalSkillMove(illegal) => fmt::Display::fmt(illegal, f),
            Refusal::PlanNotModifiable(status) => {
                write!(f, "a plan that is `{status}` cannot be modified")
            }
            Refusal::PlanIsTerminal(status) => {
                write!(f, "the plan is `{status}`, and takes no more changes")
            }
            Refusal::StepNotRemovable(NotRemovable::NotPending(status)) => {
                write!(f, "a step that is `{status}` cannot be removed")
            }
            Refusal::StepNotRemovable(NotRemovable::NeededByBranch(branch)) => {
                write!(f, "branch `{branch}` needs the step")
            }
            Refusal::StepNotRemovable(NotRemovable::NeededByStep(step)) => {
                write!(f, "step `{step}` depends on the step")
            }
            Refusal::IncompleteStepList {
                missing,
                unknown,
                doubled,
            } => write!(
                f,
                "the list is not the plan's: {} missing, {} unknown, {} more than once",
                missing.len(),
                unknown.len(),
                doubled.len()
            ),
            Refusal::ClaimSuperseded { attempt, status } => {
                write!(
                    f,
                    "another claim has the step: it is `{status}` in attempt {attempt}"
                )
            }
            Refusal::FeedbackRequired => f.write_str("`modify` needs feedback"),
            Refusal::LimitExceeded { what, limit, asked } => {
                write!(
                    f,
                    "{asked} {what} are more than the {limit} that are allowed"
                )
            }
            Refusal::Forbidden(forbidden) => fmt::Display::fmt(forbidden, f),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<IllegalStepMove> for Refusal {
    fn from(illegal: IllegalStepMove) -> Self {
        Refusal::IllegalStepMove(illegal)
    }
}

impl From<IllegalSkillMove> for Refusal {
    fn from(illegal: IllegalSkillMove) -> Self {
        Refusal::IllegalSkillMove(illegal)
    }
}

impl From<Forbidden> for Refusal {
    fn from(forbidden: Forbidden) -> Self {
        Refusal::Forbidden(forbidden)
    }
}

impl From<IllegalPlanMove> for Refusal {
    /// Whatever is asked of a plan that is over, the answer is that it is over.
    fn from(illegal: IllegalPlanMove) -> Self {
        if illegal.from.is_terminal() {
            Refusal::PlanIsTerminal(illegal.from)
        } else {
            Refusal::IllegalPlanMove(illegal)
        }
    }
}
