//! The command loop for plans in memory: decide, apply, record the audit trail, and store rejected
//! results.

use std::error::Error;

use onward_core::apply::ApplyError;
use onward_core::command::{CreatePlan, KeepLateResult, LateResult};
use onward_core::id::ArtifactId;
use onward_core::{Command, Event, Plan, Refusal, Step, Timestamp, decide};

/// A plan in memory, with its audit trail and the rejected results.
pub(crate) struct PlanDriver {
    pub(crate) plan: Plan,
    pub(crate) audit_trail: Vec<Entry>,
    pub(crate) late_results: Vec<(ArtifactId, LateResult)>,
}

/// An entry of the audit trail. Its sequence number is its position, from 1.
pub(crate) struct Entry {
    pub(crate) at: Timestamp,
    pub(crate) event: Event,
    /// The step's order at that time. Later changes may shift it.
    pub(crate) order: Option<u32>,
}

impl PlanDriver {
    pub(crate) fn create(command: &CreatePlan, now: Timestamp) -> Result<Self, Box<dyn Error>> {
        let events = decide::create::decide(command)?;
        let mut driver = Self {
            plan: Plan::replay(events.iter().map(|event| (event, now)))?,
            audit_trail: Vec::new(),
            late_results: Vec::new(),
        };
        driver.record(events, now);
        Ok(driver)
    }

    /// Decides a command and applies its events. Stores the content of a rejected command.
    ///
    /// The inner error is a rejection; the outer error means an inconsistent audit trail.
    pub(crate) fn send(
        &mut self,
        command: &Command,
        now: Timestamp,
    ) -> Result<Result<Vec<Event>, Refusal>, ApplyError> {
        let decided = decide(&self.plan, command, now);
        match (&decided, command.late_result()) {
            (Ok(events), _) => self.commit(events.clone(), now)?,
            (Err(refusal), Some(late)) => {
                let artifact = ArtifactId::from_u128(self.late_results.len() as u128 + 1);
                let events = decide::keep_late_result::decide(&KeepLateResult {
                    step: late.step,
                    artifact,
                    rejection: refusal.code(),
                    attempt: None,
                });
                self.late_results.push((artifact, late));
                self.commit(events, now)?;
            }
            (Err(_), None) => {}
        }
        Ok(decided)
    }

    /// A durable program stores the events here, before it responds.
    fn commit(&mut self, events: Vec<Event>, now: Timestamp) -> Result<(), ApplyError> {
        self.plan.apply_all(&events, now)?;
        self.record(events, now);
        Ok(())
    }

    fn record(&mut self, events: Vec<Event>, at: Timestamp) {
        let plan = &self.plan;
        self.audit_trail
            .extend(events.into_iter().map(|event| Entry {
                at,
                order: event.step().and_then(|id| Some(plan.step(id)?.order)),
                event,
            }));
    }
}

/// The step that `StartNext` assigned.
pub(crate) fn assigned_step<'p>(plan: &'p Plan, events: &[Event]) -> Option<&'p Step> {
    plan.step(decide::start_next::assigned_step(events)?)
}
