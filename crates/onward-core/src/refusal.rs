//! Reasons for rejecting a command, each with a stable code and a hint.
//!
//! A rejected command changes nothing. Technical errors (storage, network) are defined in other
//! crates, which share the list of [`Code`]s. A hint never names a destructive command.

use std::fmt;

use crate::budget::Exhausted;
use crate::condition::InvalidCondition;
use crate::id::{BranchId, ReviewId, StepId, StepRef};
use crate::plan::{IllegalPlanTransition, PlanStatus};
use crate::role::{Forbidden, Permission};
use crate::skill::IllegalSkillTransition;
use crate::step::{IllegalStepTransition, ReviewBy, StepStatus};

/// A stable error code, the same in every interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants of `Refusal` document the codes")]
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
    DependenciesOpen,
    FeedbackRequired,
    LimitExceeded,
    BudgetExhausted,
    Unauthorized,
    Forbidden,
    RateLimited,
    Conflict,
    Unavailable,
    NotConfigured,
}

impl Code {
    /// All codes.
    pub const ALL: [Code; 22] = [
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
        Code::DependenciesOpen,
        Code::FeedbackRequired,
        Code::LimitExceeded,
        Code::BudgetExhausted,
        Code::Unauthorized,
        Code::Forbidden,
        Code::RateLimited,
        Code::Conflict,
        Code::Unavailable,
        Code::NotConfigured,
    ];

    /// The value in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::InvalidInput => "invalid_input",
            Code::InvalidCondition => "invalid_condition",
            Code::InvalidDependency => "invalid_dependency",
            // Upper case for compatibility.
            Code::InvalidStepReference => "INVALID_STEP_REFERENCE",
            Code::PlanNotFound => "plan_not_found",
            Code::StepNotFound => "step_not_found",
            Code::IllegalTransition => "illegal_transition",
            Code::PlanNotModifiable => "plan_not_modifiable",
            Code::PlanIsTerminal => "plan_is_terminal",
            Code::StepNotRemovable => "step_not_removable",
            Code::IncompleteStepList => "incomplete_step_list",
            Code::ClaimSuperseded => "claim_superseded",
            Code::DependenciesOpen => "dependencies_open",
            Code::FeedbackRequired => "feedback_required",
            Code::LimitExceeded => "limit_exceeded",
            Code::BudgetExhausted => "budget_exhausted",
            Code::Unauthorized => "unauthorized",
            Code::Forbidden => "forbidden",
            Code::RateLimited => "rate_limited",
            Code::Conflict => "conflict",
            Code::Unavailable => "unavailable",
            Code::NotConfigured => "not_configured",
        }
    }

    /// Whether the state of the plan, or of another object, rejects a valid call.
    pub const fn is_conflict(self) -> bool {
        matches!(
            self,
            Code::IllegalTransition
                | Code::PlanNotModifiable
                | Code::PlanIsTerminal
                | Code::StepNotRemovable
                | Code::ClaimSuperseded
                | Code::DependenciesOpen
                | Code::BudgetExhausted
                | Code::Conflict
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An invalid input field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// The path of the field, such as `steps[2].instructions`.
    pub path: String,
    /// The problem and the expected value.
    pub message: String,
}

/// An invalid dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadDependency {
    /// The referenced step does not exist.
    Unknown {
        /// The order of the dependent step.
        step: u32,
        /// The reference.
        needed: StepRef,
    },
    /// The orders along a dependency cycle. The first order is repeated at the end.
    Cycle(Vec<u32>),
}

/// Why a step cannot be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRemovable {
    /// The step is not pending.
    NotPending(StepStatus),
    /// A branch refers to the step.
    NeededByBranch(BranchId),
    /// Another step depends on the step.
    NeededByStep(StepId),
    /// The plan has no other step.
    OnlyStep,
    /// The step supersedes this one.
    Supersedes(StepId),
}

/// Why a step cannot be redone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRedoable {
    /// The step has not ended.
    NotEnded(StepStatus),
    /// This step already supersedes it.
    Superseded(StepId),
}

/// The unmet dependencies of a pending step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenDependencies {
    /// How many there are.
    pub total: u32,
    /// The id and order of the first [`MAX_NAMED`] of them.
    pub first: Vec<(StepId, u32)>,
}

/// The maximum number of steps that a rejection names.
pub const MAX_NAMED: usize = 50;

/// Why a command was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The input is invalid.
    InvalidInput(Vec<Issue>),
    /// A condition cannot be parsed or exceeds a limit.
    InvalidCondition {
        /// The path of the field.
        path: String,
        /// The parse error.
        error: InvalidCondition,
    },
    /// A dependency is invalid.
    InvalidDependency(BadDependency),
    /// A branch or an insertion refers to an invalid order or step.
    InvalidStepReference {
        /// The path of the field.
        path: String,
        /// The invalid reference.
        actual: String,
        /// The expected value.
        expected: String,
    },
    /// The plan has no step with this id.
    StepNotFound(StepId),
    /// The step's status does not allow the transition.
    IllegalStepTransition(IllegalStepTransition),
    /// Progress was reported for a step that is not in progress.
    StepNotInProgress(StepStatus),
    /// The definition of a step can be changed only while the step is pending.
    StepNotPending(StepStatus),
    /// A branch was added to a terminal step.
    StepIsTerminal(StepStatus),
    /// The plan's status does not allow the transition.
    IllegalPlanTransition(IllegalPlanTransition),
    /// The status of the skill execution does not allow the transition.
    IllegalSkillTransition(IllegalSkillTransition),
    /// Only a plan that is `planning` or `executing` can be modified.
    PlanNotModifiable(PlanStatus),
    /// The plan is terminal.
    PlanIsTerminal(PlanStatus),
    /// The step cannot be removed.
    StepNotRemovable(NotRemovable),
    /// The step cannot be redone.
    StepNotRedoable(NotRedoable),
    /// A reordering does not contain every step exactly once.
    IncompleteStepList {
        /// Steps of the plan that are missing in the list.
        missing: Vec<StepId>,
        /// Ids in the list that are not steps of the plan.
        unknown: Vec<StepId>,
        /// Ids that occur more than once in the list.
        duplicates: Vec<StepId>,
    },
    /// Another claim holds the step or has ended it.
    ClaimSuperseded {
        /// The step's current attempt number.
        attempt: u32,
        /// The step's status.
        status: StepStatus,
    },
    /// The token was never issued for this step.
    ClaimNotIssued,
    /// A result was submitted for a pending step with unmet dependencies.
    DependenciesOpen(OpenDependencies),
    /// `modify` was sent without feedback.
    FeedbackRequired,
    /// A limit is exceeded.
    LimitExceeded {
        /// The limited quantity, in the plural.
        what: &'static str,
        /// The limit.
        limit: usize,
        /// The requested number.
        actual: usize,
    },
    /// The budget of the plan is exhausted, and no step is assigned.
    BudgetExhausted(Exhausted),
    /// An agent may not raise or remove the budget.
    BudgetRaised,
    /// The role does not have the permission.
    Forbidden(Forbidden),
    /// An agent may not decide the review of this gate.
    NotReviewer(ReviewBy),
    /// The named review is not the pending review of the step.
    ReviewNotPending(ReviewId),
}

impl Refusal {
    /// The stable error code.
    pub fn code(&self) -> Code {
        match self {
            Refusal::InvalidInput(_) => Code::InvalidInput,
            Refusal::InvalidCondition { .. } => Code::InvalidCondition,
            Refusal::InvalidDependency(_) => Code::InvalidDependency,
            Refusal::InvalidStepReference { .. } => Code::InvalidStepReference,
            Refusal::StepNotFound(_) => Code::StepNotFound,
            Refusal::IllegalStepTransition(_)
            | Refusal::StepNotInProgress(_)
            | Refusal::StepNotPending(_)
            | Refusal::StepIsTerminal(_)
            | Refusal::IllegalPlanTransition(_)
            | Refusal::IllegalSkillTransition(_)
            | Refusal::StepNotRedoable(_)
            | Refusal::ReviewNotPending(_) => Code::IllegalTransition,
            Refusal::PlanNotModifiable(_) => Code::PlanNotModifiable,
            Refusal::PlanIsTerminal(_) => Code::PlanIsTerminal,
            Refusal::StepNotRemovable(_) => Code::StepNotRemovable,
            Refusal::IncompleteStepList { .. } => Code::IncompleteStepList,
            Refusal::ClaimSuperseded { .. } | Refusal::ClaimNotIssued => Code::ClaimSuperseded,
            Refusal::DependenciesOpen(_) => Code::DependenciesOpen,
            Refusal::FeedbackRequired => Code::FeedbackRequired,
            Refusal::LimitExceeded { .. } => Code::LimitExceeded,
            Refusal::BudgetExhausted(_) => Code::BudgetExhausted,
            Refusal::BudgetRaised | Refusal::Forbidden(_) | Refusal::NotReviewer(_) => {
                Code::Forbidden
            }
        }
    }

    /// The next action for the caller, with the names of use cases in braces: `{get_next_step}`. Each
    /// interface replaces them with the tool, route or command that it offers.
    pub fn hint(&self) -> &'static str {
        match self {
            Refusal::InvalidInput(_) => "correct the fields listed in `issues` and retry",
            Refusal::InvalidCondition { .. } => {
                "write the condition in CEL, such as `confidence >= 0.8` or `result.sources.size() < 3`"
            }
            Refusal::InvalidDependency(_) => {
                "use orders or ids of existing steps in `dependsOn` and remove cycles"
            }
            // A plan that does not exist yet has orders, but no step ids.
            Refusal::InvalidStepReference { path, .. }
                if path.starts_with("branchingConditions") =>
            {
                "use the order of an entry in `steps`; the first entry has order 1"
            }
            Refusal::InvalidStepReference { .. } | Refusal::StepNotFound(_) => {
                "get the ids and orders of the steps from {list_plan_steps}"
            }
            Refusal::IllegalStepTransition(_) | Refusal::StepIsTerminal(_) => {
                "see {get_plan_status}"
            }
            Refusal::StepNotInProgress(_) => "claim a step with {get_next_step}",
            Refusal::StepNotPending(_) => {
                "change only pending steps; `instructions` alone can be changed in any status"
            }
            Refusal::IllegalPlanTransition(IllegalPlanTransition { from, .. }) => match from {
                PlanStatus::Stalled => {
                    "resume the plan with {get_next_step} or {report_step_progress}"
                }
                PlanStatus::AwaitingReview => AWAIT_DECISION,
                PlanStatus::Planning
                | PlanStatus::Executing
                | PlanStatus::Completed
                | PlanStatus::Failed => "get the status of the plan from {get_plan_status}",
            },
            Refusal::IllegalSkillTransition(_) => "omit `executionId` to start a new execution",
            Refusal::PlanNotModifiable(status) => match status {
                PlanStatus::Stalled => "resume the plan with {get_next_step}, then modify it",
                PlanStatus::AwaitingReview => AWAIT_DECISION,
                PlanStatus::Planning
                | PlanStatus::Executing
                | PlanStatus::Completed
                | PlanStatus::Failed => {
                    "create a new plan, or fork this one, with {create_research_plan}"
                }
            },
            Refusal::PlanIsTerminal(_) => "see how the plan ended with {get_plan_status}",
            Refusal::StepNotRemovable(NotRemovable::NotPending(_)) => {
                "remove only pending steps, see {get_plan_status}"
            }
            Refusal::StepNotRemovable(
                NotRemovable::NeededByBranch(_) | NotRemovable::NeededByStep(_),
            ) => "change the step instead: {modify_plan} with `update_step_instructions`",
            Refusal::StepNotRemovable(NotRemovable::OnlyStep) => {
                "add a replacement step first: {modify_plan} with `add_steps`"
            }
            Refusal::StepNotRemovable(NotRemovable::Supersedes(_)) => {
                "fail the step instead: {modify_plan} with `fail_step`"
            }
            Refusal::StepNotRedoable(NotRedoable::NotEnded(_)) => {
                "redo only completed, failed or skipped steps, see {get_plan_status}"
            }
            Refusal::StepNotRedoable(NotRedoable::Superseded(_)) => "redo its successor instead",
            Refusal::IncompleteStepList { .. } => {
                "get all step ids from {list_plan_steps} and send each exactly once"
            }
            Refusal::ClaimSuperseded { .. } => "claim another step with {get_next_step}",
            Refusal::ClaimNotIssued => {
                "send `stepId` and `claimToken` from the same response of {get_next_step}"
            }
            Refusal::DependenciesOpen(_) => {
                "claim a step that is ready with {get_next_step}; redo a failed one with {modify_plan}"
            }
            Refusal::FeedbackRequired => "describe the requested changes in `feedback`",
            Refusal::LimitExceeded { .. } => {
                "stay within the limit, or split the work into several plans"
            }
            Refusal::BudgetExhausted(_) | Refusal::BudgetRaised => {
                "ask the user to raise the budget: {set_budget}"
            }
            Refusal::Forbidden(Forbidden { permission, .. }) => who_may(*permission),
            Refusal::NotReviewer(ReviewBy::Person) => who_may(Permission::DecideReview),
            Refusal::NotReviewer(ReviewBy::OtherSession) => {
                "let another session decide with its `sessionId`, or ask the user: {review}"
            }
            Refusal::ReviewNotPending(_) => "get the pending review from {get_plan_status}",
        }
    }
}

const AWAIT_DECISION: &str = "wait for the user's decision: {review}";

/// The hint for a caller without the permission: which roles have it. A test compares it with the
/// roles.
fn who_may(permission: Permission) -> &'static str {
    match permission {
        Permission::DecideReview => "ask the user to decide the review: {review}",
        Permission::Read | Permission::CreatePlan | Permission::Work | Permission::Record => {
            "only an owner, admin, member or agent of the tenant can do this"
        }
        Permission::Intervene | Permission::AbandonPlan => {
            "ask an owner, admin or member of the tenant to do it"
        }
        Permission::ManageTokens | Permission::ManageMembers => {
            "ask an owner or admin of the tenant to do it"
        }
        Permission::DeletePlan | Permission::ManageTenant => "ask an owner of the tenant to do it",
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::InvalidInput(issues) => match issues.as_slice() {
                [only] => write!(f, "invalid `{}`: {}", only.path, only.message),
                several => write!(f, "{} invalid fields", several.len()),
            },
            Refusal::InvalidCondition { path, error } => write!(f, "invalid `{path}`: {error}"),
            Refusal::InvalidDependency(BadDependency::Unknown { step, needed }) => match needed {
                StepRef::Order(needed) => write!(
                    f,
                    "step {step} depends on step {needed}, which does not exist"
                ),
                StepRef::Id(needed) => write!(
                    f,
                    "step {step} depends on step `{needed}`, which is not in this plan"
                ),
            },
            Refusal::InvalidDependency(BadDependency::Cycle(orders)) => {
                let chain: Vec<String> = orders.iter().map(u32::to_string).collect();
                write!(f, "dependency cycle: {}", chain.join(" → "))
            }
            Refusal::InvalidStepReference {
                path,
                actual,
                expected,
            } => {
                write!(f, "invalid `{path}`: got {actual}, expected {expected}")
            }
            Refusal::StepNotFound(step) => write!(f, "step `{step}` not found"),
            Refusal::IllegalStepTransition(illegal) => fmt::Display::fmt(illegal, f),
            Refusal::StepNotInProgress(status) => {
                write!(f, "cannot report progress: the step is `{status}`")
            }
            Refusal::StepNotPending(status) => {
                write!(f, "cannot change the step: it is `{status}`")
            }
            Refusal::StepIsTerminal(status) => {
                write!(f, "cannot add a branch: the step is `{status}`")
            }
            Refusal::IllegalPlanTransition(illegal) => fmt::Display::fmt(illegal, f),
            Refusal::IllegalSkillTransition(illegal) => fmt::Display::fmt(illegal, f),
            Refusal::PlanNotModifiable(status) => {
                write!(f, "cannot modify the plan: it is `{status}`")
            }
            Refusal::PlanIsTerminal(status) => {
                write!(f, "the plan is `{status}` and cannot be changed")
            }
            Refusal::StepNotRemovable(NotRemovable::NotPending(status)) => {
                write!(f, "cannot remove the step: it is `{status}`")
            }
            Refusal::StepNotRemovable(NotRemovable::NeededByBranch(branch)) => {
                write!(f, "cannot remove the step: branch `{branch}` refers to it")
            }
            Refusal::StepNotRemovable(NotRemovable::NeededByStep(step)) => {
                write!(f, "cannot remove the step: step `{step}` depends on it")
            }
            Refusal::StepNotRemovable(NotRemovable::OnlyStep) => {
                f.write_str("cannot remove the step: it is the only step of the plan")
            }
            Refusal::StepNotRemovable(NotRemovable::Supersedes(step)) => {
                write!(f, "cannot remove the step: it supersedes step `{step}`")
            }
            Refusal::StepNotRedoable(NotRedoable::NotEnded(status)) => {
                write!(f, "cannot redo the step: it is `{status}`")
            }
            Refusal::StepNotRedoable(NotRedoable::Superseded(step)) => {
                write!(f, "cannot redo the step: step `{step}` supersedes it")
            }
            Refusal::IncompleteStepList {
                missing,
                unknown,
                duplicates,
            } => {
                f.write_str("invalid step list")?;
                let mut separator = ":";
                for (what, ids) in [
                    ("unknown", unknown),
                    ("missing", missing),
                    ("duplicated", duplicates),
                ] {
                    if let Some(first) = ids.first() {
                        write!(f, "{separator} {} {what}, first `{first}`", ids.len())?;
                        separator = ";";
                    }
                }
                Ok(())
            }
            Refusal::ClaimSuperseded { attempt, status } => {
                write!(
                    f,
                    "claim superseded: the step is `{status}` in attempt {attempt}"
                )
            }
            Refusal::ClaimNotIssued => f.write_str("the claim token was not issued for this step"),
            Refusal::DependenciesOpen(open) => match open.first.as_slice() {
                [(_, order)] => write!(
                    f,
                    "cannot submit a result: the step depends on step {order}, which is not finished"
                ),
                _ => write!(
                    f,
                    "cannot submit a result: the step depends on {} steps that are not finished",
                    open.total
                ),
            },
            Refusal::FeedbackRequired => f.write_str("`modify` requires feedback"),
            Refusal::LimitExceeded {
                what,
                limit,
                actual,
            } => {
                write!(f, "too many {what}: {actual}, at most {limit} are allowed")
            }
            Refusal::BudgetExhausted(exhausted) => {
                write!(f, "the budget of the plan is exhausted: {exhausted}")
            }
            Refusal::BudgetRaised => f.write_str("an agent cannot raise or remove the budget"),
            Refusal::Forbidden(forbidden) => fmt::Display::fmt(forbidden, f),
            Refusal::NotReviewer(ReviewBy::Person) => {
                f.write_str("an agent cannot decide this review: the step requires a person")
            }
            Refusal::NotReviewer(ReviewBy::OtherSession) => f.write_str(
                "cannot decide this review: the step requires another session than the one that \
                 did the work",
            ),
            Refusal::ReviewNotPending(review) => write!(f, "review `{review}` is not pending"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<IllegalStepTransition> for Refusal {
    fn from(illegal: IllegalStepTransition) -> Self {
        Refusal::IllegalStepTransition(illegal)
    }
}

impl From<IllegalSkillTransition> for Refusal {
    fn from(illegal: IllegalSkillTransition) -> Self {
        Refusal::IllegalSkillTransition(illegal)
    }
}

impl From<Forbidden> for Refusal {
    fn from(forbidden: Forbidden) -> Self {
        Refusal::Forbidden(forbidden)
    }
}

impl From<IllegalPlanTransition> for Refusal {
    /// Every transition of a terminal plan is reported as [`Refusal::PlanIsTerminal`].
    fn from(illegal: IllegalPlanTransition) -> Self {
        if illegal.from.is_terminal() {
            Refusal::PlanIsTerminal(illegal.from)
        } else {
            Refusal::IllegalPlanTransition(illegal)
        }
    }
}
