//! A person goes on with a stalled plan. What they do next (hand a step out again, fail it, edit it)
//! resumes it by itself: see [`ModifyPlan::resume`](crate::command::ModifyPlan::resume).

use super::draft::Draft;
use crate::event::{Event, ResumedBy};
use crate::plan::PlanHead;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// Decides whether there is something to resume.
pub fn decide(plan: &PlanHead, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let mut draft = Draft::of(plan, now);
    draft.push(Event::PlanResumed {
        by: ResumedBy::Person,
    })?;
    Ok(draft.done())
}
