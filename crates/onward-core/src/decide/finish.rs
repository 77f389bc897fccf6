//! A step is completed: its branches are tried, the first that is true decides, and the plan's status
//! follows. Shared by a submitted result and an approved review.
//!
//! A `skip_to` needs one more fact, what lies between the step and its target, and only when it is
//! taken. So the decision may come back as a [`Settled::Skips`] that asks for it: nobody loads a long
//! list for a branch that is not taken.

use std::sync::Arc;

use super::draft::Draft;
use crate::branch::{Action, Branch, Effect, NoEffect, try_branches};
use crate::event::Event;
use crate::id::{BranchId, SessionId, StepId};
use crate::plan::PlanFailure;
use crate::policy::MAX_STEPS;
use crate::refusal::Refusal;
use crate::step::{SkipCause, Step, StepResult, StepStatus};

/// A decision, or all of it but what lies between a step and the target of its `skip_to`.
#[derive(Debug)]
pub enum Settled {
    /// The whole of it.
    Events(Vec<Event>),
    /// A `skip_to` was taken: look up its [`Landing`], then [`land`](Skip::land).
    Skips(Box<Skip>),
}

impl Settled {
    /// The events, with `look_up` to find the landing where one is needed.
    pub fn land(self, look_up: impl FnOnce(&Skip) -> Landing) -> Result<Vec<Event>, Refusal> {
        match self {
            Settled::Events(events) => Ok(events),
            Settled::Skips(skip) => {
                let landing = look_up(&skip);
                skip.land(landing)
            }
        }
    }
}

/// What is known of the target of a `skip_to` at the moment it is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landing {
    /// It was removed.
    Gone,
    /// It is there.
    At {
        /// Its place.
        order: u32,
        /// Where it stands.
        status: StepStatus,
        /// The pending steps strictly between, in their order.
        pending_between: Vec<StepId>,
    },
}

/// A `skip_to` that was taken, before anybody looked where it lands.
#[derive(Debug)]
pub struct Skip {
    draft: Draft,
    branch: BranchId,
    step: StepId,
    order: u32,
    target: StepId,
}

impl Skip {
    /// The step to land on.
    pub fn target(&self) -> StepId {
        self.target
    }

    /// The step whose branch it is.
    pub fn step(&self) -> StepId {
        self.step
    }

    /// The rest of the decision. A target that is gone, or no longer pending, or not behind the step
    /// any more, does nothing, and the event says so.
    pub fn land(self, landing: Landing) -> Result<Vec<Event>, Refusal> {
        let Skip {
            mut draft,
            branch,
            step,
            order,
            target,
        } = self;
        let why = match &landing {
            Landing::Gone => Some(NoEffect::TargetGone),
            Landing::At { status, .. } if *status != StepStatus::Pending => {
                Some(NoEffect::TargetNotPending)
            }
            Landing::At { order: target, .. } if *target <= order => Some(NoEffect::TargetNotAfter),
            Landing::At { .. } => None,
        };
        let between = match landing {
            Landing::At {
                pending_between, ..
            } if why.is_none() => pending_between,
            Landing::At { .. } | Landing::Gone => Vec::new(),
        };
        let effect = match why {
            Some(why) => Effect::Nothing { why },
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
        draft.settle()
    }
}

/// What is completed, and how it came out.
pub(super) struct Completion<'a> {
    pub(super) step: &'a Step,
    /// Where the step stands once the draft so far is applied.
    pub(super) from: StepStatus,
    /// The attempt that it is completed in.
    pub(super) attempt: u32,
    pub(super) result: Arc<StepResult>,
    pub(super) session: Option<SessionId>,
}

/// Completes the step and tries its branches.
pub(super) fn complete(
    mut draft: Draft,
    completion: Completion<'_>,
    branches: &[Branch],
) -> Result<Settled, Refusal> {
    let Completion {
        step,
        from,
        attempt,
        result,
        session,
    } = completion;
    // The branches see the plan as it is with this step completed.
    let mut counts = draft.head().counts;
    counts.shift(from, StepStatus::Completed);
    let (verdicts, taken) = try_branches(branches, step, attempt, &result, &counts);
    draft.push(Event::StepCompleted {
        step: step.id(),
        from,
        result,
        verdicts,
        session,
    })?;
    let Some(branch) = taken else {
        return Ok(Settled::Events(draft.settle()?));
    };
    let effect = match &branch.action {
        Action::Continue => Effect::Continued,
        Action::SkipTo { target } => {
            let (branch, order) = (branch.id, step.order);
            let skip = Skip {
                draft,
                branch,
                step: step.id(),
                order,
                target: *target,
            };
            return Ok(Settled::Skips(Box::new(skip)));
        }
        Action::AddSteps { steps } => {
            let total = usize::try_from(draft.head().counts.total()).unwrap_or(usize::MAX);
            if total.saturating_add(steps.len()) > MAX_STEPS {
                Effect::Nothing {
                    why: NoEffect::PlanFull,
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
            draft.push(Event::PlanFailed {
                reason: PlanFailure::Branch(reason.clone()),
            })?;
            return Ok(Settled::Events(draft.done()));
        }
    };
    draft.push(Event::BranchTaken {
        branch: branch.id,
        step: step.id(),
        effect,
    })?;
    Ok(Settled::Events(draft.settle()?))
}
