//! The effect of a command's events on the part of a plan that was loaded for it.
//!
//! A program that stores plans writes exactly this: the head, the changed steps, the time of the
//! next check and the change to the queue of the project. [`Plan::apply`](crate::Plan::apply) is the
//! counterpart for a plan in memory. Changes to the lists of steps and branches are in the events
//! themselves.

mod queue;

use std::collections::HashMap;
use std::time::Duration;

use crate::apply::{ApplyError, StepApplyError, StepChange, changes_many};
use crate::event::Event;
use crate::id::{ArtifactId, StepId};
use crate::next_check::{self, Due};
use crate::plan::PlanHead;
use crate::step::{Step, StepState, Work};
use crate::time::Timestamp;

pub use queue::QueueChange;

/// The loaded part of a plan, with the events applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The head.
    pub head: PlanHead,
    /// The steps that the events changed.
    pub changed: Vec<StepAfter>,
    /// The other loaded steps.
    pub unchanged: Vec<Step>,
    /// When the sweep must check the plan.
    pub due: Due,
    /// The change to the queue of the plan's project.
    pub queue: QueueChange,
    /// Whether the plan's budget or its use has changed.
    pub budget_changed: bool,
    /// The kept input of the changed steps that is no longer needed.
    pub superseded: Vec<ArtifactId>,
}

/// A changed step, with the events applied.
#[derive(Debug, Clone, PartialEq)]
pub struct StepAfter {
    /// The step.
    pub step: Step,
    /// The last time at which the step is not yet stalled, if it is in progress.
    pub stalls_at: Option<Timestamp>,
    /// Whether its definition changed.
    pub redefined: bool,
    /// Whether it was only claimed or completed: before and after, it has no progress report, stall
    /// mark, undelivered feedback, review, skip, failure or evidence, and it was not requeued.
    pub advanced: bool,
}

impl Transition {
    /// Applies the events to the head and to the loaded steps. An event about another step changes
    /// only the head. `no_agent_after` is the time after which a plan counts as having no agent.
    pub fn new(
        mut head: PlanHead,
        steps: Vec<Step>,
        events: &[Event],
        now: Timestamp,
        no_agent_after: Duration,
    ) -> Result<Self, ApplyError> {
        let budget = head.budget;
        for event in events {
            let applied = head.apply(event, now);
            applied.map_err(|why| ApplyError::new(event, why))?;
        }
        let mut changes = Changes::new(steps);
        for event in events {
            let applied = changes.apply(event, now);
            applied.map_err(|why| ApplyError::new(event, why))?;
        }
        let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
        let mut superseded = Vec::new();
        for StepChanges {
            step,
            kept,
            was_plain,
            requeued,
            change,
        } in changes.steps
        {
            if change == StepChange::None {
                unchanged.push(step);
                continue;
            }
            superseded.extend(kept.and_then(|kept| superseded_input(kept, &step)));
            changed.push(StepAfter {
                stalls_at: step.stalls_at(head.stall_threshold),
                redefined: change == StepChange::Definition,
                advanced: was_plain && is_plain(&step) && step.superseded.len() == requeued,
                step,
            });
        }
        let steps = changed.iter().map(|after| &after.step);
        let due = next_check::after_commit(&head, steps, events, now, no_agent_after);
        let queue = QueueChange::after_events(&head, events);
        Ok(Self {
            budget_changed: head.budget != budget,
            head,
            changed,
            unchanged,
            due,
            queue,
            superseded,
        })
    }
}

/// The loaded steps, while the events are applied.
struct Changes {
    steps: Vec<StepChanges>,
    /// Where a step is in the list: a command may skip thousands of steps with an event each.
    places: HashMap<StepId, usize>,
}

/// A step, and what was known about it before the first event.
struct StepChanges {
    step: Step,
    kept: Option<(u32, ArtifactId)>,
    was_plain: bool,
    requeued: usize,
    change: StepChange,
}

impl Changes {
    fn new(steps: Vec<Step>) -> Self {
        let places = steps.iter().map(Step::id).zip(0..).collect();
        let steps = steps.into_iter().map(|step| StepChanges {
            kept: kept_input(&step),
            was_plain: is_plain(&step),
            requeued: step.superseded.len(),
            change: StepChange::None,
            step,
        });
        Self {
            steps: steps.collect(),
            places,
        }
    }

    fn apply(&mut self, event: &Event, now: Timestamp) -> Result<(), StepApplyError> {
        if changes_many(event) {
            return self
                .steps
                .iter_mut()
                .try_for_each(|step| step.apply(event, now));
        }
        let place = event.step().and_then(|step| self.places.get(&step));
        match place.and_then(|place| self.steps.get_mut(*place)) {
            Some(step) => step.apply(event, now),
            None => Ok(()),
        }
    }
}

impl StepChanges {
    fn apply(&mut self, event: &Event, now: Timestamp) -> Result<(), StepApplyError> {
        self.change = self.change.max(self.step.apply(event, now)?);
        Ok(())
    }
}

/// The attempt of a claimed step, and the invalid result that its holder has submitted.
fn kept_input(step: &Step) -> Option<(u32, ArtifactId)> {
    Some((step.attempt(), step.claimed_work()?.kept?))
}

/// The input of `before`, if the step is completed or the same attempt has replaced it. After a
/// takeover, the input of the previous holder stays.
fn superseded_input(before: (u32, ArtifactId), step: &Step) -> Option<ArtifactId> {
    let (attempt, input) = before;
    let is_superseded = match &step.state {
        StepState::Completed { .. } => true,
        StepState::InProgress(_) | StepState::AwaitingInput { .. } => {
            step.attempt() == attempt && kept_input(step) != Some(before)
        }
        StepState::Pending { .. } | StepState::Skipped { .. } | StepState::Failed { .. } => false,
    };
    is_superseded.then_some(input)
}

/// Whether the step has only a claim and a result.
fn is_plain(step: &Step) -> bool {
    match &step.state {
        StepState::Pending { .. } => true,
        StepState::Completed { result, .. } => result.evidence.is_empty(),
        StepState::InProgress(work) => {
            let Work {
                last_progress_at,
                stall_marked,
                orphaned_at,
                undelivered,
                kept,
                ..
            } = work;
            last_progress_at.is_none()
                && stall_marked.is_none()
                && orphaned_at.is_none()
                && undelivered.is_none()
                && kept.is_none()
        }
        StepState::AwaitingInput { .. } | StepState::Skipped { .. } | StepState::Failed { .. } => {
            false
        }
    }
}
