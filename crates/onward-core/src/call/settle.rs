//! Which of a session's open calls must be given up, and why: all of a batch, not only the first.
//!
//! A model's API takes no conversation in which one call of a response has a result and another none.
//! So where the owner of a call is dead, those of its batch that have no owner of their own go with it;
//! where a call is past its time, those of its batch that never began will not begin any more. A sibling
//! that runs within its own time, or waits for a person, is left alone: it may still answer.

use std::collections::BTreeMap;

use super::{Call, CallPolicy, CallStatus, Cause, Death, is_stale};
use crate::time::Timestamp;
use crate::watcher::Watcher;

/// An open call, and what is known of it beyond itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given<'a, B> {
    /// The call.
    pub call: &'a Call,
    /// Which model response it belongs to.
    pub batch: B,
    /// The proof that its owner is dead, where there is one.
    pub death: Option<Death>,
}

/// That a call is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Up {
    /// Why.
    pub cause: Cause,
    /// The proof, where it is not the clock.
    pub death: Option<Death>,
}

/// Whether the clock counts.
#[derive(Debug, Clone, Copy)]
pub enum Clock<'a> {
    /// It does not: only a dead owner does.
    Stopped,
    /// It does, for whoever knows that nobody slept.
    Running,
    /// It does for a watcher that may have slept itself.
    Watched(&'a Watcher),
}

impl Clock<'_> {
    fn is_past(self, call: &Call, now: Timestamp, policy: CallPolicy) -> bool {
        let times = call.timestamp();
        match self {
            Clock::Stopped => false,
            Clock::Running => is_stale(&times, now, policy),
            Clock::Watched(watcher) => times
                .convicted_after(policy, watcher)
                .is_some_and(|convicted_after| now > convicted_after),
        }
    }
}

/// For each call whether it is given up, in their order. What it costs grows with the calls, and not with
/// their pairs: a session may have left thousands open.
pub fn give_up<B: Ord>(
    calls: &[Given<'_, B>],
    now: Timestamp,
    policy: CallPolicy,
    clock: Clock<'_>,
) -> Vec<Option<Up>> {
    let alone: Vec<Option<Up>> = calls
        .iter()
        .map(|given| match given.death {
            Some(death) => given.call.state.cause_of_death().map(|cause| Up {
                cause,
                death: Some(death),
            }),
            None => clock.is_past(given.call, now, policy).then_some(Up {
                cause: Cause::TimedOut,
                death: None,
            }),
        })
        .collect();
    let mut batches: BTreeMap<&B, Fate> = BTreeMap::new();
    for (given, up) in calls.iter().zip(&alone) {
        let Some(up) = up else { continue };
        let fate = batches.entry(&given.batch).or_default();
        match up.death {
            Some(_) => fate.has_dead = true,
            None => fate.has_late = true,
        }
    }
    let with_batch = |given: &Given<'_, B>| {
        let fate = batches.get(&given.batch)?;
        if fate.has_dead && given.call.owner.is_none() {
            given.call.state.cause_of_death()
        } else if fate.has_late && given.call.state.status() == CallStatus::Requested {
            Some(Cause::NotStarted)
        } else {
            None
        }
    };
    let settled = calls
        .iter()
        .zip(alone)
        .map(|(given, up)| up.or_else(|| with_batch(given).map(|cause| Up { cause, death: None })));
    settled.collect()
}

/// What became of some call of a batch.
#[derive(Default)]
struct Fate {
    /// The owner of one is dead.
    has_dead: bool,
    /// One is past its time.
    has_late: bool,
}
