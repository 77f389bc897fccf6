//! A branch: a condition on a step's result, with an action.
//!
//! After a step is completed, its branches are evaluated in creation order. The first branch whose
//! condition is true is taken; the rest are not evaluated. A condition that cannot be evaluated
//! counts as false, and its verdict contains the error. `decide/finish.rs` carries out the action.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::condition::{Condition, Evaluator, PlanScope, Scope, StepScope};
use crate::id::{BranchId, StepId};
use crate::json::Json;
use crate::progress::Counts;
use crate::step::{NewStep, Step, StepResult};

/// The action of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Continue with the next step. Later branches are not evaluated.
    Continue,
    /// Skip the pending steps before the target.
    SkipTo {
        /// The step to continue with.
        target: StepId,
    },
    /// Insert steps directly after the step.
    AddSteps {
        /// The new steps. Their ids are assigned when the branch is created: a step is completed
        /// once, so a branch is taken at most once.
        steps: Arc<[NewStep]>,
    },
    /// Fail the plan immediately.
    Fail {
        /// The reason.
        reason: Option<String>,
    },
}

impl Action {
    /// The value in the API and in the database.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Action::Continue => "continue",
            Action::SkipTo { .. } => "skip_to",
            Action::AddSteps { .. } => "add_steps",
            Action::Fail { .. } => "fail",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A branch of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The branch's id.
    pub id: BranchId,
    /// The step whose result the condition reads.
    pub after: StepId,
    /// The condition.
    pub condition: Condition,
    /// The action if the condition is true.
    pub action: Action,
}

impl Branch {
    /// The steps that cannot be removed while the plan has this branch: the target of a `skip_to`,
    /// and the dependencies of the steps of an `add_steps` outside that list. The step before the
    /// branch is not included: removing it removes the branch.
    pub fn references(&self) -> Vec<StepId> {
        let mut needed = self.referenced();
        needed.retain(|step| *step != self.after);
        needed
    }

    /// The branch with references to the successors of these steps; `None` if it refers to none of
    /// them. The steps of an `add_steps` keep their ids.
    pub fn redirected(&self, successors: &BTreeMap<StepId, StepId>) -> Option<Branch> {
        let action = match &self.action {
            Action::Continue | Action::Fail { .. } => return None,
            Action::SkipTo { target } => Action::SkipTo {
                target: *successors.get(target)?,
            },
            Action::AddSteps { steps } => {
                let mut needed = steps.iter().flat_map(|step| &step.depends_on);
                if !needed.any(|id| successors.contains_key(id)) {
                    return None;
                }
                let mut steps = steps.to_vec();
                for id in steps.iter_mut().flat_map(|step| &mut step.depends_on) {
                    *id = *successors.get(id).unwrap_or(id);
                }
                Action::AddSteps {
                    steps: steps.into(),
                }
            }
        };
        Some(Branch {
            action,
            ..self.clone()
        })
    }

    fn referenced(&self) -> Vec<StepId> {
        match &self.action {
            Action::Continue | Action::Fail { .. } => Vec::new(),
            Action::SkipTo { target } => vec![*target],
            Action::AddSteps { steps } => steps
                .iter()
                .flat_map(|step| step.depends_on.iter().copied())
                .filter(|needed| steps.iter().all(|step| step.id != *needed))
                .collect(),
        }
    }
}

/// The outcome of evaluating one branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchVerdict {
    /// The branch's id.
    pub branch: BranchId,
    /// The source of its condition.
    pub condition: String,
    /// Whether the condition was true.
    pub matched: bool,
    /// The evaluation error, if the condition counts as false because of one.
    pub error: Option<String>,
}

/// The effect of a taken branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The plan continues with the next step.
    Continued,
    /// Steps were skipped. Each has a separate event.
    Skipped {
        /// The step to continue with.
        target: StepId,
        /// The skipped steps.
        steps: Vec<StepId>,
    },
    /// Steps were inserted directly after the step.
    Added {
        /// The inserted steps.
        steps: Arc<[NewStep]>,
    },
    /// The plan failed. A separate event records it.
    FailedPlan {
        /// The reason.
        reason: Option<String>,
    },
    /// The action could not be carried out.
    Nothing {
        /// The reason.
        reason: NoEffect,
    },
}

impl Effect {
    /// The name of the action.
    pub const fn action(&self) -> &'static str {
        match self {
            Effect::Continued => "continue",
            Effect::Skipped { .. } => "skip_to",
            Effect::Added { .. } => "add_steps",
            Effect::FailedPlan { .. } => "fail",
            Effect::Nothing { reason: why } => match why {
                NoEffect::TargetMissing | NoEffect::TargetNotPending | NoEffect::TargetNotAfter => {
                    "skip_to"
                }
                NoEffect::PlanFull => "add_steps",
            },
        }
    }
}

/// Why an action had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoEffect {
    /// The target of a `skip_to` was removed.
    #[error("the target step was removed")]
    TargetMissing,
    /// The target of a `skip_to` is no longer pending.
    #[error("the target step is no longer pending")]
    TargetNotPending,
    /// The target of a `skip_to` was moved before the step.
    #[error("the target step is no longer after this step")]
    TargetNotAfter,
    /// The plan would exceed the maximum number of steps.
    #[error("the plan would exceed the maximum number of steps")]
    PlanFull,
}

/// Evaluates the branches of a completed step. Returns a verdict for each evaluated branch, and the
/// branch that is taken.
pub fn evaluate_branches<'b>(
    branches: &'b [Branch],
    step: &Step,
    attempt: u32,
    result: &StepResult,
    counts: &Counts,
) -> (Vec<BranchVerdict>, Option<&'b Branch>) {
    let data = result.data.as_ref().and_then(Json::parse);
    let scope = Scope {
        confidence: result.confidence,
        result_summary: &result.summary,
        result: data.as_ref(),
        step: StepScope {
            order: step.order,
            step_type: step.spec.step_type.as_str(),
            attempt,
        },
        plan: PlanScope {
            progress: counts.progress(),
            completed: counts.completed,
            failed: counts.failed,
            pending: counts.pending,
        },
    };
    let mut evaluator = Evaluator::new(&scope);
    let mut verdicts = Vec::new();
    for branch in branches {
        let outcome = evaluator.evaluate(&branch.condition);
        let matched = outcome == Ok(true);
        verdicts.push(BranchVerdict {
            branch: branch.id,
            condition: branch.condition.source().to_owned(),
            matched,
            error: outcome.err().map(|why| why.to_string()),
        });
        if matched {
            return (verdicts, Some(branch));
        }
    }
    (verdicts, None)
}
