//! Sets, changes or removes the budget of the plan. An agent may set or lower it; only a person may
//! raise or remove it. A plan that waits for a higher budget continues.

use super::super::check::Check;
use super::facts::Facts;
use crate::budget::{Budget, BudgetState};
use crate::event::{Change, Event, ResumedBy};
use crate::plan::PlanStatus;
use crate::refusal::Refusal;
use crate::time::Timestamp;

pub(super) fn decide(
    facts: &Facts,
    budget: Option<&Budget>,
    by_person: bool,
    now: Timestamp,
) -> Result<(Change, Option<Event>), Refusal> {
    let mut check = Check::default();
    check.budget(budget);
    check.finish()?;
    let head = &facts.head;
    let old = head.budget.as_ref().map(|budget| &budget.limits);
    if !by_person && old.is_some_and(|old| old.is_raised_by(budget)) {
        return Err(Refusal::BudgetRaised);
    }
    let new = budget.map(|limits| BudgetState {
        limits: *limits,
        used: facts.used,
        exhausted: None,
    });
    let waited = head.status() == PlanStatus::Stalled && head.stopped_by_budget(now).is_some();
    let continues = waited && new.is_none_or(|new| new.exhausted(now).is_none());
    let resumed = Event::PlanResumed {
        by: ResumedBy::Budget,
    };
    let change = Change::BudgetSet {
        budget: budget.copied(),
        used: facts.used,
    };
    Ok((change, continues.then_some(resumed)))
}
