//! Handles stalls according to the plan's policy. Detection changes nothing; only this command
//! does.
//!
//! A stall (step, attempt, reference time) marks the plan once, so that one dead agent does not
//! repeatedly stop another that is still working. The same stall marks a resumed plan again if no
//! agent works on it: every step in progress is stalled, and the plan has not changed for the
//! duration of the step's threshold.
//!
//! The next check of a plan is never later than one threshold from now: a step whose last activity is
//! in the future, written by a wrong clock, is recorded as active now.
//!
//! A captured plan has no stalls; another session can still take over its inactive steps.

use std::time::Duration;

use super::check::Check;
use super::draft::Draft;
use super::start_next::requeue_or_fail;
use crate::apply::Plan;
use crate::command::HandleStalls;
use crate::event::{Event, ProgressSource, RequeueReason};
use crate::plan::{PlanHead, PlanStatus};
use crate::policy::{OnStall, stall_threshold};
use crate::refusal::Refusal;
use crate::stall::{Stall, is_past};
use crate::step::{FailReason, Step, StepStatus};
use crate::time::Timestamp;
use crate::watcher::Watcher;

/// The required facts.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The plan.
    pub head: PlanHead,
    /// Steps in progress, at least those past their threshold.
    pub in_progress: Vec<Step>,
    /// When the plan last changed.
    pub changed_at: Timestamp,
    /// The watcher, if a grace period after a sleep applies.
    pub watcher: Option<Watcher>,
}

impl Facts {
    /// The facts of a plan in memory, without a watcher.
    pub fn from_plan(plan: &Plan) -> Self {
        Self {
            head: plan.head().clone(),
            in_progress: plan.in_progress().cloned().collect(),
            changed_at: plan.updated_at(),
            watcher: None,
        }
    }

    fn threshold(&self, command: &HandleStalls, step: &Step) -> Duration {
        stall_threshold(
            command.threshold,
            step.spec.stall_threshold,
            self.head.stall_threshold,
        )
    }

    /// The last instant at which inactivity since `reference` has no effect.
    pub(crate) fn deadline(&self, reference: Timestamp, at: Timestamp) -> Timestamp {
        self.watcher
            .as_ref()
            .map_or(at, |watcher| watcher.deadline(reference, at))
    }
}

/// Decides the command. Returns no events if there are no stalls, or if the policy or the plan's
/// status requires no action.
pub fn decide(
    facts: &Facts,
    command: &HandleStalls,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let mut check = Check::default();
    check.threshold("thresholdMs", command.threshold);
    check.finish()?;
    let status = facts.head.status();
    let stalled: Vec<&Step> = stalled_steps(facts, command, now).collect();
    let mut draft = Draft::new(&facts.head, now);
    for step in ahead_of_clock(facts, command, now) {
        draft.push(Event::StepProgressed {
            step: step.id(),
            source: ProgressSource::Seen,
            note: None,
            percent: None,
            session: None,
        })?;
    }
    match command.policy.unwrap_or(facts.head.on_stall) {
        OnStall::Ignore => {}
        OnStall::Mark if status == PlanStatus::Executing => {
            let stalls: Vec<Stall> = (stalled.iter())
                .filter(|step| !is_marked(step) || is_idle(facts, command, &stalled, step, now))
                .filter_map(|step| current_stall(step))
                .collect();
            if !stalls.is_empty() {
                draft.push(Event::PlanStalled { stalls })?;
            }
        }
        OnStall::Mark => {}
        OnStall::Requeue if allows_step_changes(status) => {
            for step in stalled {
                draft.push(requeue_or_fail(step, RequeueReason::Stalled)?)?;
            }
        }
        OnStall::Fail if allows_step_changes(status) => {
            for step in stalled {
                let (from, reason) = (StepStatus::InProgress, FailReason::Stalled);
                draft.push(Event::StepFailed {
                    step: step.id(),
                    from,
                    reason,
                })?;
            }
        }
        OnStall::Requeue | OnStall::Fail => {}
    }
    draft.finish()
}

/// The stalls that trigger notifications, including those that need no action because of the plan's
/// status. None for a terminal plan or the policy `ignore`.
pub fn notifiable_stalls(facts: &Facts, command: &HandleStalls, now: Timestamp) -> Vec<Stall> {
    let notifies = match command.policy.unwrap_or(facts.head.on_stall) {
        OnStall::Mark | OnStall::Requeue | OnStall::Fail => true,
        OnStall::Ignore => false,
    };
    if facts.head.status().is_terminal() || !notifies {
        return Vec::new();
    }
    stalled_steps(facts, command, now)
        .filter_map(current_stall)
        .collect()
}

/// Steps whose last activity is in the future, because the clock was wrong and has returned. Their
/// inactivity begins now; otherwise they could not stall before the clock has caught up.
fn ahead_of_clock<'a>(
    facts: &'a Facts,
    command: &HandleStalls,
    now: Timestamp,
) -> impl Iterator<Item = &'a Step> {
    let acts = command.policy.unwrap_or(facts.head.on_stall) != OnStall::Ignore
        && allows_step_changes(facts.head.status());
    let steps = facts.in_progress.iter().filter(move |_| acts);
    steps.filter(move |step| {
        let times = step.timestamp();
        times.status == StepStatus::InProgress && times.is_ahead_of(now)
    })
}

fn stalled_steps<'a>(
    facts: &'a Facts,
    command: &HandleStalls,
    now: Timestamp,
) -> impl Iterator<Item = &'a Step> {
    let steps = facts.in_progress.iter();
    let steps = steps.filter(|_| facts.head.origin.reports_inactivity());
    steps.filter(move |step| is_past_deadline(facts, command, step, now))
}

fn is_past_deadline(facts: &Facts, command: &HandleStalls, step: &Step, now: Timestamp) -> bool {
    let times = step.timestamp();
    let limit = step.silence_limit(command.threshold, facts.head.stall_threshold);
    let deadline = |stalls_at| facts.deadline(times.reference(), stalls_at);
    is_past(times.stalls_at(limit).map(deadline), now)
}

/// Whether the plan was marked for the step's current stall.
fn is_marked(step: &Step) -> bool {
    step.work()
        .is_some_and(|work| work.stall_marked == Some(step.timestamp().reference()))
}

/// Whether no agent has worked on the plan for the duration of the step's threshold.
fn is_idle(
    facts: &Facts,
    command: &HandleStalls,
    stalled: &[&Step],
    step: &Step,
    now: Timestamp,
) -> bool {
    let in_progress = usize::try_from(facts.head.counts.in_progress).unwrap_or(usize::MAX);
    let idle_at = facts.changed_at.checked_add(facts.threshold(command, step));
    stalled.len() == in_progress
        && idle_at.is_some_and(|idle_at| now > facts.deadline(facts.changed_at, idle_at))
}

fn current_stall(step: &Step) -> Option<Stall> {
    Some(Stall {
        step: step.id(),
        attempt: step.work()?.claim.attempt,
        since: step.timestamp().reference(),
    })
}

/// A stalled plan waits for a resume; a terminal plan has no stalls.
fn allows_step_changes(status: PlanStatus) -> bool {
    match status {
        PlanStatus::Executing | PlanStatus::AwaitingReview => true,
        PlanStatus::Planning | PlanStatus::Stalled | PlanStatus::Completed | PlanStatus::Failed => {
            false
        }
    }
}
