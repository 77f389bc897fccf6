//! The sweep. The model checks every plan each time, while the engine checks only plans that are
//! due. It may check a plan early, but not late, so the results must be equal. Exception: after the
//! clock was set back, the engine may wait until the clock has caught up.

use std::time::Duration;

use onward_core::event::Decision;
use onward_core::policy::OnStall;
use onward_core::step::{FailReason, OnDeadline};
use onward_core::{PlanStatus, StepStatus, Timestamp};

use super::{Context, Model, Plan};
use crate::response::{PlanKey, Response};

/// Delays up to this length do not count as a system sleep.
const TOLERANCE: Duration = Duration::from_secs(30);
/// Time for activity after a system sleep before steps count as stalled.
pub(crate) const GRACE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
pub(crate) struct WatcherState {
    /// Last resume from a system sleep. Steps inactive since before it have a grace period.
    pub(crate) woke_at: Timestamp,
    due_at: Timestamp,
    /// Time until which the engine may wait after the clock was set back.
    pub(crate) catches_up_at: Timestamp,
}

impl Default for WatcherState {
    fn default() -> Self {
        Self {
            woke_at: Timestamp::MIN,
            due_at: Timestamp::MIN,
            catches_up_at: Timestamp::MIN,
        }
    }
}

fn add(at: Timestamp, span: Duration) -> Timestamp {
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

impl WatcherState {
    pub(crate) fn start(&mut self, now: Timestamp) {
        self.woke_at = now;
        self.due_at = now;
    }

    /// The clock is about to be set back from this time.
    pub(crate) fn set_back(&mut self, from: Timestamp) {
        self.catches_up_at = self.catches_up_at.max(add(from, GRACE));
    }

    fn wake(&mut self, now: Timestamp) {
        if now > add(self.due_at, TOLERANCE) || now < self.woke_at {
            self.woke_at = now;
        }
        self.due_at = now;
    }
}

impl Model {
    pub(crate) fn sweep(&mut self, new_watcher: bool, ctx: &Context<'_>) -> Response {
        if new_watcher {
            self.watcher.start(ctx.now);
        }
        self.watcher.wake(ctx.now);
        let watcher = self.watcher;
        let actual = match ctx.actual {
            Some(Response::Swept { acted_on, next_at }) => Some((acted_on, *next_at)),
            _ => None,
        };
        let mut acted_on = Vec::new();
        for (key, plan) in &mut self.plans {
            let ctx = &Context {
                author: "sweep",
                session: None,
                ..*ctx
            };
            let mut after = plan.clone();
            after.begin_command();
            after.act_on_deadlines(ctx);
            after.act_on_stalls(&watcher, ctx);
            let may_wait = ctx.now <= watcher.catches_up_at
                && actual.is_some_and(|(acted_on, _)| !acted_on.contains(key));
            if after.audit_trail.len() > plan.audit_trail.len() && !may_wait {
                acted_on.push(key.clone());
                *plan = after;
            }
        }
        let next_at = actual.and_then(|(_, next_at)| next_at);
        if actual.is_some() {
            self.watcher.due_at = next_at.unwrap_or(Timestamp::MAX);
        }
        Response::Swept { acted_on, next_at }
    }

    /// The earliest stall deadline and its plan: the last instant before the sweep acts.
    pub(crate) fn first_stall(&self) -> Option<(Timestamp, PlanKey)> {
        let all = self.plans.iter().flat_map(|(key, plan)| {
            let deadlines = plan.deadlines(&self.watcher).into_iter();
            deadlines.map(|(_, deadline)| (deadline, key.clone()))
        });
        all.min()
    }

    /// The earliest deadline of a review and its plan: the last instant before the sweep decides.
    pub(crate) fn first_decision(&self) -> Option<(Timestamp, PlanKey)> {
        let all = self.plans.iter().flat_map(|(key, plan)| {
            let decisions = plan.decisions_by_policy().into_iter();
            let before = |at: Timestamp| Timestamp::from_millis(at.as_millis() - 1);
            decisions.map(move |(_, at, _)| (before(at), key.clone()))
        });
        all.min()
    }
}

impl Plan {
    /// The steps to which the stall policy applies, with the last instant before it acts.
    fn deadlines(&self, watcher: &WatcherState) -> Vec<(usize, Timestamp)> {
        let acts = match self.on_stall {
            OnStall::Ignore => false,
            OnStall::Mark => self.status == PlanStatus::Executing,
            OnStall::Requeue | OnStall::Fail => matches!(
                self.status,
                PlanStatus::Executing | PlanStatus::AwaitingReview
            ),
        };
        let (mut found, mut idle) = (Vec::new(), Vec::new());
        let mut last_stall = Timestamp::MIN;
        for (index, step) in self.steps.iter().enumerate() {
            if !acts || step.status != StepStatus::InProgress {
                continue;
            }
            let claim = step.current_claim().expect("step in progress has a claim");
            let since = claim.inactive_since();
            let already_marked =
                self.on_stall == OnStall::Mark && claim.stall_marked == Some(since);
            let spared = |since: Timestamp, deadline: Timestamp| {
                if since < watcher.woke_at {
                    deadline.max(add(watcher.woke_at, GRACE))
                } else {
                    deadline
                }
            };
            let deadline = step.active_until(self.threshold);
            let deadline = deadline.map(|deadline| spared(since, deadline));
            last_stall = last_stall.max(deadline.unwrap_or(Timestamp::MAX));
            match deadline {
                Some(deadline) if !already_marked => found.push((index, deadline)),
                // Marked again if no agent works on the plan.
                Some(_) => {
                    let changed_at = self.changed_at();
                    let idle_at = add(changed_at, step.threshold(self.threshold));
                    idle.push((index, spared(changed_at, idle_at)));
                }
                None => {}
            }
        }
        // All steps in progress must be stalled.
        found.extend(
            idle.into_iter()
                .map(|(index, at)| (index, at.max(last_stall))),
        );
        found
    }

    /// The steps whose reviews are decided at their deadlines.
    fn decisions_by_policy(&self) -> Vec<(usize, Timestamp, Decision)> {
        let steps = self.steps.iter().enumerate();
        let steps = steps.filter(|(_, step)| step.status == StepStatus::AwaitingInput);
        let decisions = steps.filter_map(|(index, step)| {
            let deadline = step.review.as_ref()?.options.deadline?;
            let decision = match deadline.action {
                OnDeadline::Remind => return None,
                OnDeadline::Approve => Decision::Approve,
                OnDeadline::Skip => Decision::Skip,
                OnDeadline::Reject => Decision::Reject,
            };
            Some((index, deadline.at, decision))
        });
        decisions.filter(|_| !self.has_ended()).collect()
    }

    fn act_on_deadlines(&mut self, ctx: &Context<'_>) {
        while let Some((index, _, decision)) = self
            .decisions_by_policy()
            .into_iter()
            .find(|(_, at, _)| *at <= ctx.now)
        {
            let decided = self.decide(index, decision, None, false, ctx);
            decided.expect("a review can be decided at its deadline");
        }
    }

    fn act_on_stalls(&mut self, watcher: &WatcherState, ctx: &Context<'_>) {
        let mut overdue = self.deadlines(watcher);
        overdue.retain(|(_, deadline)| ctx.now > *deadline);
        if !overdue.is_empty() && self.on_stall == OnStall::Mark {
            self.status = PlanStatus::Stalled;
            self.marked_at = Some(ctx.now);
            self.record("plan_stalled", None, None, ctx);
        }
        for (index, _) in overdue {
            match self.on_stall {
                OnStall::Ignore => {}
                OnStall::Mark => {
                    let claim = self.steps[index].current_claim_mut();
                    claim.stall_marked = Some(claim.inactive_since());
                }
                OnStall::Requeue => self.requeue(index, "stalled", ctx),
                OnStall::Fail => self.fail_step(index, FailReason::Stalled, ctx),
            }
        }
        self.complete_if_done(ctx);
    }
}
