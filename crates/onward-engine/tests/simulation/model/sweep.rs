//! The sweep, by the model: it looks at every plan every time.
//!
//! The engine looks only at what is due. A plan may be looked at too early, never too late, so the
//! two must do the same; but while a clock that was set back has not caught up, the engine may wait
//! for it to.

use std::time::Duration;

use onward_core::policy::OnStall;
use onward_core::step::FailReason;
use onward_core::{PlanStatus, StepStatus, Timestamp};

use super::{Model, Moment, Plan};
use crate::said::{Key, Said};

/// Waking up later than meant by up to this much is ordinary.
const TOLERANCE: Duration = Duration::from_secs(30);
/// How long those who slept beside the watcher have to show a sign of life.
pub(crate) const GRACE: Duration = Duration::from_secs(60);

/// What the watcher remembers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch {
    /// Nobody is convicted before one grace period after this, who was silent before it.
    pub(crate) woke_at: Timestamp,
    due_at: Timestamp,
    /// Until when the engine may wait for a clock that was set back.
    pub(crate) catches_up_at: Timestamp,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            woke_at: Timestamp::MIN,
            due_at: Timestamp::MIN,
            catches_up_at: Timestamp::MIN,
        }
    }
}

fn later(at: Timestamp, span: Duration) -> Timestamp {
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

impl Watch {
    /// One begins to watch.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.woke_at = now;
        self.due_at = now;
    }

    /// The clock is set back from here.
    pub(crate) fn set_back(&mut self, from: Timestamp) {
        self.catches_up_at = self.catches_up_at.max(later(from, GRACE));
    }

    fn wake(&mut self, now: Timestamp) {
        if now > later(self.due_at, TOLERANCE) || now < self.woke_at {
            self.woke_at = now;
        }
        self.due_at = now;
    }
}

impl Model {
    pub(crate) fn sweep(&mut self, fresh: bool, at: &Moment<'_>) -> Said {
        if fresh {
            self.watch.begin(at.now);
        }
        self.watch.wake(at.now);
        let watch = self.watch;
        let heard = match at.heard {
            Some(Said::Swept { acted_on, next_at }) => Some((acted_on, *next_at)),
            _ => None,
        };
        let mut acted_on = Vec::new();
        for (key, plan) in &mut self.plans {
            let at = &Moment {
                who: "sweep",
                session: None,
                ..*at
            };
            let mut after = plan.clone();
            after.begin_command();
            after.act_on_stalls(&watch, at);
            let waits = at.now <= watch.catches_up_at
                && heard.is_some_and(|(acted_on, _)| !acted_on.contains(key));
            if after.trail.len() > plan.trail.len() && !waits {
                acted_on.push(key.clone());
                *plan = after;
            }
        }
        let next_at = heard.and_then(|(_, next_at)| next_at);
        if heard.is_some() {
            self.watch.due_at = next_at.unwrap_or(Timestamp::MAX);
        }
        Said::Swept { acted_on, next_at }
    }

    /// The first instant at which a sweep would do something, if nothing happened until then, and
    /// the plan in which.
    pub(crate) fn first_conviction(&self) -> Option<(Timestamp, Key)> {
        let all = self.plans.iter().flat_map(|(key, plan)| {
            let at = plan.convictions(&self.watch);
            at.into_iter().map(|(_, at)| (at, key.clone()))
        });
        all.min()
    }
}

impl Plan {
    /// Each step that the policy is about, with the last instant at which it is let alone.
    fn convictions(&self, watch: &Watch) -> Vec<(usize, Timestamp)> {
        let acts = match self.on_stall {
            OnStall::Ignore => false,
            OnStall::Mark => self.status == PlanStatus::Executing,
            OnStall::Requeue | OnStall::Fail => matches!(
                self.status,
                PlanStatus::Executing | PlanStatus::AwaitingReview
            ),
        };
        let mut found = Vec::new();
        for (place, step) in self.steps.iter().enumerate() {
            if !acts || step.status != StepStatus::InProgress {
                continue;
            }
            let held = step.held().expect("somebody works on it");
            let since = held.silent_since();
            let once = self.on_stall == OnStall::Mark && held.marked == Some(since);
            if let (Some(mut until), false) = (step.alive_until(self.threshold), once) {
                if since < watch.woke_at {
                    until = until.max(later(watch.woke_at, GRACE));
                }
                found.push((place, until));
            }
        }
        found
    }

    fn act_on_stalls(&mut self, watch: &Watch, at: &Moment<'_>) {
        let mut convicted = self.convictions(watch);
        convicted.retain(|(_, until)| at.now > *until);
        if convicted.is_empty() {
            return;
        }
        if self.on_stall == OnStall::Mark {
            self.status = PlanStatus::Stalled;
            self.marked_at = Some(at.now);
            self.note("plan_stalled", None, None, at);
        }
        for (place, _) in convicted {
            match self.on_stall {
                OnStall::Ignore => {}
                OnStall::Mark => {
                    let held = self.steps[place].held_mut();
                    held.marked = Some(held.silent_since());
                }
                OnStall::Requeue => self.hand_back(place, "stalled", at),
                OnStall::Fail => self.fail_step(place, FailReason::Stalled, at),
            }
        }
        self.settle(at);
    }
}
