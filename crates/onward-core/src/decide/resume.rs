//! A user resumes a stalled plan, unless its budget is exhausted. A user's modification of a stalled plan (release, fail or edit a
//! step) resumes it as well: see [`ModifyPlan::resume`](crate::command::ModifyPlan::resume).

use super::draft::Draft;
use crate::event::{Event, ResumedBy};
use crate::plan::PlanHead;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// Decides the command.
pub fn decide(plan: &PlanHead, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    if let Some(exhausted) = plan.stopped_by_budget(now) {
        return Err(Refusal::BudgetExhausted(exhausted));
    }
    let mut draft = Draft::new(plan, now);
    draft.push(Event::PlanResumed {
        by: ResumedBy::User,
    })?;
    Ok(draft.into_events())
}
