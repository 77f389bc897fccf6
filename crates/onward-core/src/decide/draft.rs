//! Events in the making: the head follows each one, so that what comes after is decided on what is
//! true by then.

use crate::event::Event;
use crate::plan::{PlanHead, PlanStatus};
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
    pub(super) fn of(head: &PlanHead, now: Timestamp) -> Self {
        Self {
            head: head.clone(),
            events: Vec::new(),
            now,
        }
    }

    /// The plan's head after what was drafted.
    pub(super) fn head(&self) -> &PlanHead {
        &self.head
    }

    /// One more event. A move that the law of the plans does not know is refused here.
    pub(super) fn push(&mut self, event: Event) -> Result<(), Refusal> {
        self.head.apply(&event, self.now)?;
        self.events.push(event);
        Ok(())
    }

    /// The events as they are.
    pub(super) fn done(self) -> Vec<Event> {
        self.events
    }

    /// The events, and the plan's end where every step is terminal by now.
    pub(super) fn settle(mut self) -> Result<Vec<Event>, Refusal> {
        let finished = self.head.counts.derived_status() == PlanStatus::Completed;
        if finished && self.head.status() == PlanStatus::Executing {
            self.push(Event::PlanCompleted)?;
        }
        Ok(self.events)
    }
}
