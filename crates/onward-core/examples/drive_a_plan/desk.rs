//! What a program that keeps its plans itself needs beside the core: the loop that sends a command,
//! makes the change, writes the trail, and throws no work away.

use std::error::Error;

use onward_core::apply::Inapplicable;
use onward_core::command::{CreatePlan, KeepLateResult, LateResult};
use onward_core::id::ArtifactId;
use onward_core::{Command, Event, Plan, Refusal, Step, Timestamp, decide};

/// A plan in memory, the trail of everything that happened to it, and the work that came too late.
pub(crate) struct Desk {
    pub(crate) plan: Plan,
    pub(crate) trail: Vec<Entry>,
    pub(crate) kept: Vec<(ArtifactId, LateResult)>,
}

/// One line of the trail. Its sequence number is its place, from 1.
pub(crate) struct Entry {
    pub(crate) at: Timestamp,
    pub(crate) event: Event,
    /// The order that the step had then: a later change of the list may shift it.
    pub(crate) order: Option<u32>,
}

impl Desk {
    pub(crate) fn open(command: &CreatePlan, now: Timestamp) -> Result<Self, Box<dyn Error>> {
        let events = decide::create::decide(command)?;
        let mut desk = Self {
            plan: Plan::replay(events.iter().map(|event| (event, now)))?,
            trail: Vec::new(),
            kept: Vec::new(),
        };
        desk.record(events, now);
        Ok(desk)
    }

    /// Decides, and makes the change. What is refused, and holds somebody's work, is kept.
    ///
    /// The inner error is an answer; the outer one would be a broken trail.
    pub(crate) fn send(
        &mut self,
        command: &Command,
        now: Timestamp,
    ) -> Result<Result<Vec<Event>, Refusal>, Inapplicable> {
        let decided = decide(&self.plan, command, now);
        match (&decided, command.late_result()) {
            (Ok(events), _) => self.commit(events.clone(), now)?,
            (Err(refusal), Some(late)) => {
                let artifact = ArtifactId::from_u128(self.kept.len() as u128 + 1);
                let noted = decide::keep_late_result::decide(&KeepLateResult {
                    step: late.step,
                    artifact,
                    refused: refusal.code(),
                });
                self.kept.push((artifact, late));
                self.commit(noted, now)?;
            }
            (Err(_), None) => {}
        }
        Ok(decided)
    }

    /// A program that must not forget writes the events down here, before it answers anybody.
    fn commit(&mut self, events: Vec<Event>, now: Timestamp) -> Result<(), Inapplicable> {
        self.plan.apply_all(&events, now)?;
        self.record(events, now);
        Ok(())
    }

    fn record(&mut self, events: Vec<Event>, at: Timestamp) {
        let plan = &self.plan;
        self.trail.extend(events.into_iter().map(|event| Entry {
            at,
            order: event.step().and_then(|id| Some(plan.step(id)?.order)),
            event,
        }));
    }
}

/// What `StartNext` handed out.
pub(crate) fn handed_out<'p>(plan: &'p Plan, events: &[Event]) -> Option<&'p Step> {
    plan.step(decide::start_next::handed_out(events)?)
}
