//! A branch: a condition on a step's result, with an action.
//!
//! After a step is completed its branches are tried in the order in which they were made; the first
//! that is true decides, and the rest are not tried. A condition that cannot be evaluated counts as
//! false, and its verdict says why. Trying changes nothing: what the action then does is decided in
//! `decide/finish.rs`.

use std::fmt;
use std::sync::Arc;

use crate::condition::{Condition, PlanScope, Scope, StepScope, Trials};
use crate::id::{BranchId, StepId};
use crate::progress::Counts;
use crate::step::{NewStep, Step, StepResult};

/// What a branch does when its condition is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Go on as usual; later branches are not tried.
    Continue,
    /// The pending steps between become `skipped`.
    SkipTo {
        /// The step to go on with.
        target: StepId,
    },
    /// Steps are inserted right after the step.
    AddSteps {
        /// Their ids were given when the branch was made: a step is completed once, so a branch is
        /// taken at most once.
        steps: Arc<[NewStep]>,
    },
    /// The plan fails at once.
    Fail {
        /// Why.
        reason: Option<String>,
    },
}

impl Action {
    /// The word for it, on the wire and in the database.
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
    /// Which branch.
    pub id: BranchId,
    /// The step whose result it looks at.
    pub after: StepId,
    /// What must be true.
    pub condition: Condition,
    /// What happens then.
    pub action: Action,
}

impl Branch {
    /// The steps that must not be removed while the plan has this branch: the target of a `skip_to`,
    /// and what the steps of an `add_steps` depend on beside each other. The step that the branch
    /// stands after is none of them: the branch goes with it.
    pub fn references(&self) -> Vec<StepId> {
        let mut needed = self.named();
        needed.retain(|step| *step != self.after);
        needed
    }

    fn named(&self) -> Vec<StepId> {
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

/// What came of trying one branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Which branch.
    pub branch: BranchId,
    /// Its condition, as its author wrote it.
    pub condition: String,
    /// Whether it was true.
    pub matched: bool,
    /// Why it could not be evaluated, and so counted as false.
    pub error: Option<String>,
}

/// What a branch that was taken did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing special.
    Continued,
    /// Passed over these steps, each of which has an event of its own.
    Skipped {
        /// The step to go on with.
        target: StepId,
        /// What was passed over.
        steps: Vec<StepId>,
    },
    /// Inserted these steps right after the step.
    Added {
        /// What was inserted.
        steps: Arc<[NewStep]>,
    },
    /// Failed the plan, which has an event of its own.
    FailedPlan {
        /// Why.
        reason: Option<String>,
    },
    /// It should have done something, and could not.
    Nothing {
        /// Why it could not.
        why: NoEffect,
    },
}

impl Effect {
    /// The word of the action that it is the effect of.
    pub const fn action(&self) -> &'static str {
        match self {
            Effect::Continued => "continue",
            Effect::Skipped { .. } => "skip_to",
            Effect::Added { .. } => "add_steps",
            Effect::FailedPlan { .. } => "fail",
            Effect::Nothing { why } => match why {
                NoEffect::TargetGone | NoEffect::TargetNotPending | NoEffect::TargetNotAfter => {
                    "skip_to"
                }
                NoEffect::PlanFull => "add_steps",
            },
        }
    }
}

/// Why an action did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoEffect {
    /// The target of a `skip_to` was removed.
    #[error("the target step is gone")]
    TargetGone,
    /// The target of a `skip_to` was taken on, or ended, before.
    #[error("the target step is no longer pending")]
    TargetNotPending,
    /// The target of a `skip_to` was moved in front of the step.
    #[error("the target step does not come after this one any more")]
    TargetNotAfter,
    /// The plan is as large as a plan may be.
    #[error("the plan would hold more steps than a plan may")]
    PlanFull,
}

/// Tries the branches of a step that has just been completed: a verdict for each that was tried, and
/// the one that is taken.
pub fn try_branches<'b>(
    branches: &'b [Branch],
    step: &Step,
    attempt: u32,
    result: &StepResult,
    counts: &Counts,
) -> (Vec<Verdict>, Option<&'b Branch>) {
    let scope = Scope {
        confidence: result.confidence,
        result_summary: &result.summary,
        result: result.data.as_ref(),
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
    let mut trials = Trials::of(&scope);
    let mut verdicts = Vec::new();
    for branch in branches {
        let outcome = trials.try_one(&branch.condition);
        let matched = outcome == Ok(true);
        verdicts.push(Verdict {
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
