//! Collects the events of one command. The head is updated with each event, so that the next
//! decision is based on it.
//!
//! Every change of the plan's status is recorded with the previous and the new status: by the event
//! that changes it, or by `PlanStatusChanged` after an event that does not contain them.

use crate::budget::Limit;
use crate::event::Event;
use crate::plan::{PlanFailure, PlanHead, PlanStatus};
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// The events of one command so far, and the plan's head after them.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    head: PlanHead,
    events: Vec<Event>,
    now: Timestamp,
}

impl Draft {
    pub(super) fn new(head: &PlanHead, now: Timestamp) -> Self {
        Self {
            head: head.clone(),
            events: Vec::new(),
            now,
        }
    }

    /// The plan's head after these events.
    pub(super) fn head(&self) -> &PlanHead {
        &self.head
    }

    /// Adds an event, and the change of the plan's status if the event does not contain it. Rejects
    /// an illegal transition of the plan.
    pub(super) fn push(&mut self, event: Event) -> Result<(), Refusal> {
        let from = self.head.status();
        self.head.apply(&event, self.now)?;
        let to = self.head.status();
        let is_named = event.names_plan_status();
        self.events.push(event);
        if from != to && !is_named {
            let changed = Event::PlanStatusChanged { from, to };
            self.head.apply(&changed, self.now)?;
            self.events.push(changed);
        }
        Ok(())
    }

    /// Fails the plan.
    pub(super) fn fail_plan(&mut self, reason: PlanFailure) -> Result<(), Refusal> {
        let from = self.head.status();
        self.push(Event::PlanFailed { from, reason })
    }

    /// The events.
    pub(super) fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// Records an exhausted budget, and marks the plan if no step is in progress. A limit on steps or
    /// attempts is exhausted when a step is denied, not with the last one that is assigned.
    pub(super) fn check_budget(&mut self, is_denied: bool) -> Result<(), Refusal> {
        let Some(exhausted) = self.head.exhausted(self.now) else {
            return Ok(());
        };
        let is_stopped = self.head.stopped_by_budget(self.now).is_some();
        let is_recorded = self
            .head
            .budget
            .is_some_and(|budget| budget.exhausted.is_some());
        let is_found = is_denied || is_stopped || exhausted.limit == Limit::Duration;
        if is_found && !is_recorded && !self.head.status().is_terminal() {
            self.push(Event::BudgetExhausted { exhausted })?;
        }
        if is_stopped && self.head.status() == PlanStatus::Executing {
            self.push(Event::PlanStalled { stalls: Vec::new() })?;
        }
        Ok(())
    }

    /// The events, followed by `PlanCompleted` if every step is terminal, or by the mark of a plan
    /// whose budget is exhausted.
    pub(super) fn finish(mut self) -> Result<Vec<Event>, Refusal> {
        let finished = self.head.counts.derived_status() == PlanStatus::Completed;
        if finished && self.head.status() == PlanStatus::Executing {
            self.push(Event::PlanCompleted)?;
        }
        self.check_budget(false)?;
        Ok(self.events)
    }
}
