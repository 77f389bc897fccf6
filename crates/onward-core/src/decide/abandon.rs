//! Abandons a plan. Its steps do not change; a later result is stored as an artifact.

use super::check::Check;
use super::draft::Draft;
use crate::command::AbandonPlan;
use crate::event::Event;
use crate::plan::{PlanFailure, PlanHead};
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// Decides the command.
pub fn decide(
    plan: &PlanHead,
    command: &AbandonPlan,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let mut check = Check::default();
    check.remark("reason", command.reason.as_deref());
    check.finish()?;
    let mut draft = Draft::new(plan, now);
    draft.fail_plan(PlanFailure::Abandoned(command.reason.clone()))?;
    Ok(draft.into_events())
}
