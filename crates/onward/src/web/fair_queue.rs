//! A pool of units with fair shares (`shares.rs`) and a fair queue: tenants take turns, and within a
//! tenant its callers. A caller that queues many requests delays another one by the requests that
//! run, not by those that wait.
//!
//! The units are slots, reads or kilobytes. A request takes free ones
//! ([`FairQueue::try_acquire`]), or waits for them ([`FairQueue::acquire`]).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::auth::Principal;
use super::shares::{Exhausted, Shares};

/// A pool of units.
pub(super) struct FairQueue {
    shares: Shares,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: Held,
    waiting: Vec<Waiter>,
    /// The last turn of each tenant and caller, while requests wait.
    turns: Turns,
}

#[derive(Default)]
struct Turns {
    last: u64,
    of_tenant: HashMap<Arc<str>, u64>,
    of_caller: HashMap<u64, u64>,
}

#[derive(Default)]
struct Held {
    all: usize,
    by_caller: HashMap<u64, usize>,
    by_tenant: HashMap<Arc<str>, usize>,
}

/// The caller of a request.
#[derive(Clone)]
struct Holder {
    tenant: Arc<str>,
    caller: u64,
    shares: Shares,
}

/// A request that waits.
struct Waiter {
    holder: Holder,
    units: usize,
    grant: oneshot::Sender<Permit>,
}

/// Units of a pool, until this is dropped.
pub(super) struct Permit {
    queue: Arc<FairQueue>,
    holder: Holder,
    units: usize,
}

impl FairQueue {
    pub(super) fn new(shares: Shares) -> Arc<Self> {
        Arc::new(Self {
            shares,
            state: Mutex::default(),
        })
    }

    fn holder(&self, principal: &Principal) -> Holder {
        Holder {
            tenant: Arc::clone(&principal.caller.tenant),
            caller: principal.key,
            shares: self.shares.of(principal),
        }
    }

    /// Takes units that are free.
    pub(super) fn try_acquire(
        self: &Arc<Self>,
        principal: &Principal,
        units: usize,
    ) -> Result<Permit, Exhausted> {
        let holder = self.holder(principal);
        self.lock().held.take(&holder, units)?;
        Ok(self.permit(holder, units))
    }

    /// Waits for units. More than the share of the caller count as its share.
    pub(super) async fn acquire(self: &Arc<Self>, principal: &Principal, units: usize) -> Permit {
        let holder = self.holder(principal);
        let Shares { caller, tenant, .. } = holder.shares;
        let units = units.min(caller).min(tenant);
        let (grant, granted) = oneshot::channel();
        self.lock().waiting.push(Waiter {
            holder: holder.clone(),
            units,
            grant,
        });
        self.dispatch();
        // Only a queue that is dropped drops its waiters.
        granted.await.unwrap_or_else(|_| self.permit(holder, 0))
    }

    fn permit(self: &Arc<Self>, holder: Holder, units: usize) -> Permit {
        let queue = Arc::clone(self);
        Permit {
            queue,
            holder,
            units,
        }
    }

    /// Grants units to the next waiters.
    fn dispatch(self: &Arc<Self>) {
        loop {
            let Some(waiter) = self.lock().next() else {
                return;
            };
            let permit = self.permit(waiter.holder, waiter.units);
            // If the request has just been dropped, so is the permit, outside of the lock.
            drop(waiter.grant.send(permit));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned count is consistent: no operation panics in between.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The next waiter, after its units are taken: of the tenant, then of the caller, whose last turn
    /// is longest ago. Skips those whose share is used up. A waiter for which the pool is too full
    /// keeps its turn, so that smaller ones cannot pass it forever.
    fn next(&mut self) -> Option<Waiter> {
        self.waiting.retain(|waiter| !waiter.grant.is_closed());
        let turns = &self.turns;
        let mut order: Vec<usize> = (0..self.waiting.len()).collect();
        order.sort_by_key(|index| {
            let holder = self.waiting.get(*index).map(|waiter| &waiter.holder);
            let turn = holder.map(|holder| turns.of(holder));
            (turn, *index)
        });
        for index in order {
            let waiter = self.waiting.get(index)?;
            match self.held.take(&waiter.holder, waiter.units) {
                Ok(()) => {
                    let waiter = self.waiting.remove(index);
                    self.turns.record(&waiter.holder);
                    if self.waiting.is_empty() {
                        self.turns = Turns::default();
                    }
                    return Some(waiter);
                }
                Err(Exhausted::All) => return None,
                Err(Exhausted::Caller | Exhausted::Tenant) => {}
            }
        }
        None
    }
}

impl Turns {
    fn of(&self, holder: &Holder) -> (u64, u64) {
        let of_tenant = self.of_tenant.get(&holder.tenant).copied();
        let of_caller = self.of_caller.get(&holder.caller).copied();
        (of_tenant.unwrap_or(0), of_caller.unwrap_or(0))
    }

    fn record(&mut self, holder: &Holder) {
        self.last += 1;
        self.of_tenant.insert(Arc::clone(&holder.tenant), self.last);
        self.of_caller.insert(holder.caller, self.last);
    }
}

impl Held {
    /// Counts units, unless they exceed a share.
    fn take(&mut self, holder: &Holder, units: usize) -> Result<(), Exhausted> {
        let Holder {
            tenant,
            caller,
            shares,
        } = holder;
        let all = self.all.saturating_add(units);
        let of_tenant = units.saturating_add(self.by_tenant.get(tenant).copied().unwrap_or(0));
        let of_caller = units.saturating_add(self.by_caller.get(caller).copied().unwrap_or(0));
        let has_shares = shares.caller < shares.all;
        if has_shares && of_caller > shares.caller {
            return Err(Exhausted::Caller);
        }
        if has_shares && of_tenant > shares.tenant {
            return Err(Exhausted::Tenant);
        }
        if all > shares.all {
            return Err(Exhausted::All);
        }
        self.all = all;
        self.by_tenant.insert(Arc::clone(tenant), of_tenant);
        self.by_caller.insert(*caller, of_caller);
        Ok(())
    }

    fn release(&mut self, holder: &Holder, units: usize) {
        self.all = self.all.saturating_sub(units);
        release(&mut self.by_tenant, &holder.tenant, units);
        release(&mut self.by_caller, &holder.caller, units);
    }
}

/// Subtracts from a count, and removes it at zero so that the map stays small.
fn release<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K, units: usize) {
    match counts.get_mut(key) {
        Some(count) if *count > units => *count -= units,
        Some(_) => drop(counts.remove(key)),
        None => {}
    }
}

impl Permit {
    pub(super) fn units(&self) -> usize {
        self.units
    }

    /// Takes further units that are free.
    pub(super) fn try_grow(&mut self, units: usize) -> Result<(), Exhausted> {
        self.queue.lock().held.take(&self.holder, units)?;
        self.units += units;
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.lock().held.release(&self.holder, self.units);
        self.queue.dispatch();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;
    use onward_engine::Caller;

    use super::*;

    fn principal(tenant: &str, key: u64) -> Principal {
        let caller = Caller {
            tenant: Arc::from(tenant),
            ..Caller::local("a")
        };
        Principal {
            caller,
            key,
            is_local_user: false,
        }
    }

    fn queue(caller: usize, tenant: usize, all: usize) -> Arc<FairQueue> {
        FairQueue::new(Shares {
            caller,
            tenant,
            all,
        })
    }

    /// A request that waits.
    fn wait(
        queue: &Arc<FairQueue>,
        tenant: &str,
        key: u64,
        units: usize,
    ) -> BoxFuture<'static, Permit> {
        let (queue, principal) = (Arc::clone(queue), principal(tenant, key));
        let mut waiting = async move { queue.acquire(&principal, units).await }.boxed();
        assert!((&mut waiting).now_or_never().is_none(), "units are free");
        waiting
    }

    /// The order in which requests get their turn, one after the other.
    fn order(mut waiting: Vec<BoxFuture<'static, Permit>>, first: Permit) -> Vec<usize> {
        let mut permit = Some(first);
        let mut order = Vec::new();
        while permit.take().is_some() {
            let next = waiting.iter_mut().enumerate();
            let next = next.filter(|(index, _)| !order.contains(index));
            let next: Vec<_> = next
                .filter_map(|(index, waiting)| Some((index, waiting.now_or_never()?)))
                .collect();
            assert!(next.len() <= 1, "one unit is granted at a time");
            for (index, granted) in next {
                order.push(index);
                permit = Some(granted);
            }
        }
        order
    }

    #[test]
    fn no_caller_and_no_tenant_takes_all_units() {
        let queue = FairQueue::new(Shares::new(8));
        let mut permits = Vec::new();
        let mut take = |tenant: &str, key: u64| {
            let permit = queue.try_acquire(&principal(tenant, key), 1);
            permit.map(|permit| permits.push(permit))
        };
        for _ in 0..2 {
            assert_eq!(take("acme", 1), Ok(()));
        }
        assert_eq!(take("acme", 1), Err(Exhausted::Caller));
        for key in [2, 2, 3, 3] {
            assert_eq!(take("acme", key), Ok(()));
        }
        assert_eq!(take("acme", 4), Err(Exhausted::Tenant));
        for _ in 0..2 {
            assert_eq!(take("globex", 5), Ok(()));
        }
        assert_eq!(take("globex", 6), Err(Exhausted::All));
        permits.clear();
        assert!(queue.try_acquire(&principal("acme", 1), 1).is_ok());
        assert_eq!(queue.lock().held.by_caller.len(), 0);
    }

    #[test]
    fn the_user_of_an_open_server_can_take_all_units() {
        let queue = FairQueue::new(Shares::new(8));
        let user = Principal {
            is_local_user: true,
            ..principal("local", 1)
        };
        let permits: Vec<_> = (0..9).map(|_| queue.try_acquire(&user, 1)).collect();
        assert_eq!(permits.iter().filter(|permit| permit.is_ok()).count(), 8);
        assert_eq!(permits[8].as_ref().err(), Some(&Exhausted::All));
    }

    #[test]
    fn a_permit_grows_up_to_the_share() {
        let queue = queue(3, 4, 8);
        let mut permit = queue.try_acquire(&principal("acme", 1), 1).ok().unwrap();
        assert_eq!(permit.try_grow(2), Ok(()));
        assert_eq!(permit.try_grow(1), Err(Exhausted::Caller));
        let mut other = queue.try_acquire(&principal("acme", 2), 1).ok().unwrap();
        assert_eq!(other.try_grow(1), Err(Exhausted::Tenant));
        drop(permit);
        assert_eq!(other.try_grow(1), Ok(()));
    }

    #[test]
    fn tenants_take_turns_and_their_callers_within_them() {
        let queue = queue(1, 1, 1);
        let first = queue.try_acquire(&principal("acme", 1), 1).ok().unwrap();
        let waiting = vec![
            wait(&queue, "acme", 1, 1),
            wait(&queue, "acme", 1, 1),
            wait(&queue, "acme", 1, 1),
            wait(&queue, "acme", 2, 1),
            wait(&queue, "globex", 3, 1),
            wait(&queue, "globex", 3, 1),
        ];
        assert_eq!(order(waiting, first), [0, 4, 3, 5, 1, 2]);
    }

    #[test]
    fn a_share_that_is_used_up_blocks_its_holder_only() {
        let queue = queue(1, 2, 4);
        let held = queue.try_acquire(&principal("acme", 1), 1).ok().unwrap();
        let _second = wait(&queue, "acme", 1, 1);
        let other = queue.acquire(&principal("acme", 2), 1).now_or_never();
        assert!(other.is_some());
        let other = queue.acquire(&principal("globex", 3), 1).now_or_never();
        assert!(other.is_some());
        drop(held);
    }

    #[test]
    fn small_requests_do_not_pass_a_large_one_forever() {
        let queue = queue(8, 8, 8);
        let held = queue.try_acquire(&principal("acme", 1), 4).ok().unwrap();
        let mut large = wait(&queue, "globex", 2, 8);
        let mut small = wait(&queue, "initech", 3, 1);
        drop(held);
        let permit = (&mut large).now_or_never();
        assert!(permit.is_some() && (&mut small).now_or_never().is_none());
        drop(permit);
        assert!((&mut small).now_or_never().is_some());
    }

    #[test]
    fn a_request_that_is_dropped_holds_nothing() {
        let queue = queue(1, 1, 1);
        let held = queue.try_acquire(&principal("acme", 1), 1).ok().unwrap();
        let dropped = wait(&queue, "acme", 1, 1);
        let granted = wait(&queue, "acme", 1, 1);
        let mut last = wait(&queue, "acme", 1, 1);
        drop(dropped);
        drop(held);
        // It has its turn, but is dropped before it is polled.
        drop(granted);
        assert!((&mut last).now_or_never().is_some());
        assert_eq!(queue.lock().held.all, 0);
    }
}
