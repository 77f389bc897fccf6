//! Completes a step: evaluates its branches, carries out the action of the taken branch and updates
//! the plan's status. Used by submitted results and approved reviews.
//!
//! A taken `skip_to` needs the steps between the step and its target. [`Outcome::SkipTo`] requests
//! them only in that case, so that callers do not load a long list for a branch that is not taken.

use std::sync::Arc;

use super::draft::Draft;
use crate::branch::{Action, Branch, Effect, NoEffect, evaluate_branches};
use crate::event::Event;
use crate::id::{BranchId, SessionId, StepId};
use crate::plan::PlanFailure;
use crate::policy::MAX_STEPS;
use crate::refusal::Refusal;
use crate::step::{SkipCause, Step, StepResult, StepStatus};

/// The events of a decision, or a `skip_to` that needs its target first.
#[derive(Debug)]
pub enum Outcome {
    /// The complete decision.
    Events(Vec<Event>),
    /// A `skip_to` was taken: look up its [`SkipTarget`], then call [`PendingSkip::resolve`].
    SkipTo(Box<PendingSkip>),
}

impl Outcome {
    /// The events. `look_up` is called only for a taken `skip_to`.
    pub fn resolve(
        self,
        look_up: impl FnOnce(&PendingSkip) -> SkipTarget,
    ) -> Result<Vec<Event>, Refusal> {
        match self {
            Outcome::Events(events) => Ok(events),
            Outcome::SkipTo(skip) => {
                let skip_target = look_up(&skip);
                skip.resolve(skip_target)
            }
        }
    }
}

/// The target of a taken `skip_to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipTarget {
    /// The step was removed.
    Missing,
    /// The step exists.
    Found {
        /// The target's order.
        order: u32,
        /// The target's status.
        status: StepStatus,
        /// The pending steps between the step and the target, sorted by order.
        pending_between: Vec<StepId>,
    },
}

/// A taken `skip_to` whose target is not looked up yet.
#[derive(Debug)]
pub struct PendingSkip {
    draft: Draft,
    branch: BranchId,
    step: StepId,
    order: u32,
    target: StepId,
}

impl PendingSkip {
    /// The target step.
    pub fn target(&self) -> StepId {
        self.target
    }

    /// The completed step whose branch was taken.
    pub fn step(&self) -> StepId {
        self.step
    }

    /// Completes the decision. If the target was removed, is not pending or is not after the step
    /// any more, the branch has no effect, and the event contains the reason.
    pub fn resolve(self, skip_target: SkipTarget) -> Result<Vec<Event>, Refusal> {
        let PendingSkip {
            mut draft,
            branch,
            step,
            order,
            target,
        } = self;
        let why = match &skip_target {
            SkipTarget::Missing => Some(NoEffect::TargetMissing),
            SkipTarget::Found { status, .. } if *status != StepStatus::Pending => {
                Some(NoEffect::TargetNotPending)
            }
            SkipTarget::Found { order: target, .. } if *target <= order => {
                Some(NoEffect::TargetNotAfter)
            }
            SkipTarget::Found { .. } => None,
        };
        let between = match skip_target {
            SkipTarget::Found {
                pending_between, ..
            } if why.is_none() => pending_between,
            SkipTarget::Found { .. } | SkipTarget::Missing => Vec::new(),
        };
        let effect = match why {
            Some(why) => Effect::Nothing { reason: why },
            None => Effect::Skipped {
                target,
                steps: between.clone(),
            },
        };
        let by = SkipCause::Branch(branch);
        draft.push(Event::BranchTaken {
            branch,
            step,
            effect,
        })?;
        for step in between {
            draft.push(Event::StepSkipped {
                step,
                from: StepStatus::Pending,
                by,
            })?;
        }
        draft.finish()
    }
}

/// A step to complete, with its result.
pub(super) struct Completion<'a> {
    pub(super) step: &'a Step,
    /// The step's status after the events in the draft.
    pub(super) from: StepStatus,
    /// The attempt number of the result.
    pub(super) attempt: u32,
    pub(super) result: Arc<StepResult>,
    pub(super) session: Option<SessionId>,
}

/// Completes the step and evaluates its branches.
pub(super) fn complete(
    mut draft: Draft,
    completion: Completion<'_>,
    branches: &[Branch],
) -> Result<Outcome, Refusal> {
    let Completion {
        step,
        from,
        attempt,
        result,
        session,
    } = completion;
    // Conditions see the counts after this step is completed.
    let mut counts = draft.head().counts;
    counts.shift(from, StepStatus::Completed);
    let (verdicts, taken) = evaluate_branches(branches, step, attempt, &result, &counts);
    draft.push(Event::StepCompleted {
        step: step.id(),
        from,
        result,
        verdicts,
        session,
    })?;
    let Some(branch) = taken else {
        return Ok(Outcome::Events(draft.finish()?));
    };
    let effect = match &branch.action {
        Action::Continue => Effect::Continued,
        Action::SkipTo { target } => {
            let (branch, order) = (branch.id, step.order);
            let skip = PendingSkip {
                draft,
                branch,
                step: step.id(),
                order,
                target: *target,
            };
            return Ok(Outcome::SkipTo(Box::new(skip)));
        }
        Action::AddSteps { steps } => {
            let total = usize::try_from(draft.head().counts.last_order()).unwrap_or(usize::MAX);
            if total.saturating_add(steps.len()) > MAX_STEPS {
                Effect::Nothing {
                    reason: NoEffect::PlanFull,
                }
            } else {
                Effect::Added {
                    steps: Arc::clone(steps),
                }
            }
        }
        Action::Fail { reason } => {
            let effect = Effect::FailedPlan {
                reason: reason.clone(),
            };
            draft.push(Event::BranchTaken {
                branch: branch.id,
                step: step.id(),
                effect,
            })?;
            draft.fail_plan(PlanFailure::Branch(reason.clone()))?;
            return Ok(Outcome::Events(draft.into_events()));
        }
    };
    draft.push(Event::BranchTaken {
        branch: branch.id,
        step: step.id(),
        effect,
    })?;
    Ok(Outcome::Events(draft.finish()?))
}
