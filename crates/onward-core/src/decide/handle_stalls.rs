//! Act on stalls, by the plan's policy. Detecting changes nothing; this is the command that does, and
//! only when somebody sends it.
//!
//! One stall (step, attempt, reference instant) marks once: a plan that was resumed is not marked
//! again for the same stall, so an agent that works on beside a dead one is not thrown back and forth.

use super::check::Check;
use super::draft::Draft;
use super::start_next::hand_back;
use crate::command::HandleStalls;
use crate::event::{Event, RequeueReason};
use crate::plan::{PlanHead, PlanStatus};
use crate::policy::{OnStall, stall_threshold};
use crate::refusal::Refusal;
use crate::stall::Stall;
use crate::step::{FailReason, Step, StepStatus};
use crate::time::Timestamp;
use crate::watcher::Watcher;

/// What must be known.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a PlanHead,
    /// Steps in progress; at least those past their threshold.
    pub in_progress: &'a [&'a Step],
    /// Who asks, where it is one that may itself have slept.
    pub watcher: Option<&'a Watcher>,
}

/// Decides what is done about the plan's stalls. Nothing, where there are none, or where the policy or
/// the plan's status says so.
pub fn decide(
    facts: &Facts<'_>,
    command: &HandleStalls,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let mut check = Check::default();
    check.threshold("thresholdMs", command.threshold);
    check.done()?;
    let status = facts.plan.status();
    let stalled: Vec<&Step> = convicts(facts, command, now).collect();
    let mut draft = Draft::of(facts.plan, now);
    match command.policy.unwrap_or(facts.plan.on_stall) {
        OnStall::Ignore => {}
        OnStall::Mark if status == PlanStatus::Executing => {
            let stalls: Vec<Stall> = stalled.iter().filter_map(|step| unmarked(step)).collect();
            if !stalls.is_empty() {
                draft.push(Event::PlanStalled { stalls })?;
            }
        }
        OnStall::Mark => {}
        OnStall::Requeue if acts_on_steps(status) => {
            for step in stalled {
                draft.push(hand_back(step, RequeueReason::Stalled)?)?;
            }
        }
        OnStall::Fail if acts_on_steps(status) => {
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
    draft.settle()
}

/// The stalls that people are told of: also those that need nothing done about them because of the
/// plan's status. None where the plan is over, or whoever made it wants nothing done about its stalls.
pub fn told(facts: &Facts<'_>, command: &HandleStalls, now: Timestamp) -> Vec<Stall> {
    let is_told = match command.policy.unwrap_or(facts.plan.on_stall) {
        OnStall::Mark | OnStall::Requeue | OnStall::Fail => true,
        OnStall::Ignore => false,
    };
    if facts.plan.status().is_terminal() || !is_told {
        return Vec::new();
    }
    convicts(facts, command, now).filter_map(stall_of).collect()
}

fn convicts<'a>(
    facts: &Facts<'a>,
    command: &HandleStalls,
    now: Timestamp,
) -> impl Iterator<Item = &'a Step> {
    let steps = facts.in_progress.iter().copied();
    steps.filter(move |step| convicted(facts, command, step, now))
}

fn convicted(facts: &Facts<'_>, command: &HandleStalls, step: &Step, now: Timestamp) -> bool {
    let threshold = stall_threshold(
        command.threshold,
        step.spec.stall_threshold,
        facts.plan.stall_threshold,
    );
    let times = step.timestamp();
    let Some(stalls_at) = times.stalls_at(threshold) else {
        return false;
    };
    let after = facts.watcher.map_or(stalls_at, |watcher| {
        watcher.convicts_after(times.reference(), stalls_at)
    });
    now > after
}

fn unmarked(step: &Step) -> Option<Stall> {
    let stall = stall_of(step)?;
    (step.work()?.stall_marked != Some(stall.since)).then_some(stall)
}

fn stall_of(step: &Step) -> Option<Stall> {
    Some(Stall {
        step: step.id(),
        attempt: step.work()?.claim.attempt,
        since: step.timestamp().reference(),
    })
}

/// A plan that was marked waits for somebody; one that is over has no stalls.
fn acts_on_steps(status: PlanStatus) -> bool {
    match status {
        PlanStatus::Executing | PlanStatus::AwaitingReview => true,
        PlanStatus::Planning | PlanStatus::Stalled | PlanStatus::Completed | PlanStatus::Failed => {
            false
        }
    }
}
