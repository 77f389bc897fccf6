//! A person gives the plan up. Its steps stay as they are; a result that comes later is kept.

use super::check::Check;
use super::draft::Draft;
use crate::command::AbandonPlan;
use crate::event::Event;
use crate::plan::{PlanFailure, PlanHead};
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// Decides whether there is something to give up.
pub fn decide(
    plan: &PlanHead,
    command: &AbandonPlan,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let mut check = Check::default();
    check.remark("reason", command.reason.as_deref());
    check.done()?;
    let mut draft = Draft::of(plan, now);
    draft.push(Event::PlanFailed {
        reason: PlanFailure::Abandoned(command.reason.clone()),
    })?;
    Ok(draft.done())
}
