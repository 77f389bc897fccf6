//! Selects the open calls of a session that must be interrupted, with the cause.
//!
//! Model APIs reject a conversation in which only some calls of one response have a result. If the
//! owner of a call is dead, the calls of its batch without an owner are interrupted as well. If a
//! call has timed out, the calls of its batch that have not started will not start any more. Other
//! calls that are running within their timeout or await approval are left open: they may still
//! return.

use std::collections::BTreeMap;

use super::{Call, CallPolicy, CallStatus, Cause, OwnerExit, is_stale};
use crate::time::Timestamp;
use crate::watcher::Watcher;

/// An open call with its batch and the state of its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall<'a, B> {
    /// The call.
    pub call: &'a Call,
    /// The model response that requested the call.
    pub batch: B,
    /// Proof that the owner is dead, if there is any.
    pub owner_exit: Option<OwnerExit>,
}

/// The decision to interrupt a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterruptDecision {
    /// The cause.
    pub cause: Cause,
    /// Proof that the owner is dead, if that is the reason.
    pub owner_exit: Option<OwnerExit>,
}

/// Whether timeouts apply.
#[derive(Debug, Clone, Copy)]
pub enum Timeouts<'a> {
    /// No. Only dead owners count.
    Ignored,
    /// Yes, without a grace period after a sleep.
    Enforced,
    /// Yes, with a grace period after the monitor slept.
    Watched(&'a Watcher),
}

impl Timeouts<'_> {
    fn has_timed_out(self, call: &Call, now: Timestamp, policy: CallPolicy) -> bool {
        let times = call.timestamp();
        match self {
            Timeouts::Ignored => false,
            Timeouts::Enforced => is_stale(&times, now, policy),
            Timeouts::Watched(watcher) => times
                .deadline(policy, watcher)
                .is_some_and(|deadline| now > deadline),
        }
    }
}

/// The decision for each call, in input order. The cost is linear in the number of calls: a session
/// may have thousands of open calls.
pub fn calls_to_interrupt<B: Ord>(
    calls: &[OpenCall<'_, B>],
    now: Timestamp,
    policy: CallPolicy,
    clock: Timeouts<'_>,
) -> Vec<Option<InterruptDecision>> {
    let individual: Vec<Option<InterruptDecision>> = calls
        .iter()
        .map(|open| match open.owner_exit {
            Some(exit) => open
                .call
                .state
                .cause_after_owner_exit()
                .map(|cause| InterruptDecision {
                    cause,
                    owner_exit: Some(exit),
                }),
            None => clock
                .has_timed_out(open.call, now, policy)
                .then_some(InterruptDecision {
                    cause: Cause::TimedOut,
                    owner_exit: None,
                }),
        })
        .collect();
    let mut batches: BTreeMap<&B, BatchState> = BTreeMap::new();
    for (open, decision) in calls.iter().zip(&individual) {
        let Some(decision) = decision else { continue };
        let batch = batches.entry(&open.batch).or_default();
        match decision.owner_exit {
            Some(_) => batch.has_dead_owner = true,
            None => batch.has_timeout = true,
        }
    }
    let with_batch = |open: &OpenCall<'_, B>| {
        let batch = batches.get(&open.batch)?;
        if batch.has_dead_owner && open.call.owner.is_none() {
            open.call.state.cause_after_owner_exit()
        } else if batch.has_timeout && open.call.state.status() == CallStatus::Requested {
            Some(Cause::NotStarted)
        } else {
            None
        }
    };
    calls
        .iter()
        .zip(individual)
        .map(|(open, decision)| {
            decision.or_else(|| {
                with_batch(open).map(|cause| InterruptDecision {
                    cause,
                    owner_exit: None,
                })
            })
        })
        .collect()
}

/// Data shared by the interrupted calls of a batch.
#[derive(Default)]
struct BatchState {
    /// The owner of at least one call is dead.
    has_dead_owner: bool,
    /// At least one call has timed out.
    has_timeout: bool,
}
