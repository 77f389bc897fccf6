//! Time of the sweep's next check of a plan, after a commit and after a check.
//!
//! A check that is too early has no effect. A late check delays the report of a stall.

use std::time::Duration;

use crate::attention::no_agent_at;
use crate::decide::handle_stalls::Facts;
use crate::event::{Event, ReviewAction};
use crate::plan::{PlanHead, PlanStatus};
use crate::policy::{OnStall, stall_threshold};
use crate::step::Step;
use crate::time::Timestamp;

/// When the sweep must check a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Keep the stored due time.
    Unchanged,
    /// At this instant, or at the stored due time if that is earlier.
    By(Timestamp),
    /// At this instant, replacing the stored due time.
    At(Timestamp),
    /// Never.
    Never,
}

/// The next check after a commit with these events. A plan that returns to a state in which it can
/// stall is due immediately. A captured plan is checked only for its reviews and its budget.
pub(crate) fn after_commit<'s>(
    head: &PlanHead,
    changed: impl Iterator<Item = &'s Step> + Clone,
    events: &[Event],
    now: Timestamp,
    no_agent_after: Duration,
) -> Due {
    if events.is_empty() {
        return Due::Unchanged;
    }
    if head.status().is_terminal() {
        return Due::Never;
    }
    let reopens = |event: &Event| {
        matches!(
            event,
            Event::PlanResumed { .. }
                | Event::UserReviewed {
                    action: ReviewAction::Decided { .. },
                    ..
                }
        )
    };
    if events.iter().any(reopens) {
        return Due::By(now);
    }
    let stalls = changed.clone();
    let stalls = stalls.filter(|_| head.origin.reports_inactivity());
    let stalls = stalls.filter_map(|step| step.stalls_at(head.stall_threshold));
    let deadlines = changed.filter_map(Step::deadline);
    let budget = head.budget.and_then(|budget| budget.ends_at());
    let first = stalls
        .map(Timestamp::next)
        .chain(deadlines)
        .chain(budget)
        .min();
    // The sweep reports a plan that no agent continues.
    let no_agent = || no_agent_at(head, now, no_agent_after).map(Timestamp::next);
    first.or_else(no_agent).map_or(Due::Unchanged, Due::By)
}

/// The next check of the stalls of a plan that the sweep has just checked, if nothing happens to
/// it. A commit that changes this schedules an earlier check. `next_stall_at` is the earliest
/// [`stalls_at`](Step::stalls_at) of its steps that is not before `now`.
pub fn after_check(
    facts: &Facts,
    next_stall_at: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    let head = &facts.head;
    if head.status().is_terminal() {
        return None;
    }
    let in_grace_period = facts.in_progress.iter().filter_map(|step| {
        let stalls_at = step.stalls_at(head.stall_threshold)?;
        let grace_ends_at = facts.deadline(step.timestamp().reference(), stalls_at);
        (grace_ends_at >= now).then_some(grace_ends_at)
    });
    let stalls = in_grace_period
        .chain(next_stall_at)
        .chain(idle_at(facts, now))
        .filter(|_| head.origin.reports_inactivity());
    let budget = head.budget.and_then(|budget| budget.ends_at());
    stalls.map(Timestamp::next).chain(budget).min()
}

/// The last time at which a resumed plan whose steps are stalled has not been idle for long enough
/// to be marked again. While another agent works on it, it is checked once per threshold.
fn idle_at(facts: &Facts, now: Timestamp) -> Option<Timestamp> {
    let head = &facts.head;
    if head.status() != PlanStatus::Executing || head.on_stall != OnStall::Mark {
        return None;
    }
    // A step in its grace period is checked at the end of it.
    let claimed = facts.in_progress.iter().filter(|step| {
        let stalls_at = step.stalls_at(head.stall_threshold);
        stalls_at.is_some_and(|at| facts.deadline(step.timestamp().reference(), at) < now)
    });
    let thresholds =
        claimed.map(|step| stall_threshold(None, step.spec.stall_threshold, head.stall_threshold));
    let threshold = thresholds.min()?;
    let idle_at = facts.changed_at.checked_add(threshold);
    idle_at
        .filter(|idle_at| *idle_at >= now)
        .or_else(|| now.checked_add(threshold))
}
