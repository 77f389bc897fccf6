//! A pool of slots with fair shares: one caller holds at most a quarter of them, one tenant at most
//! three quarters, so that no caller can exclude the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::auth::Principal;

/// Slots of one caller, of one tenant and of all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) caller: usize,
    pub(super) tenant: usize,
    pub(super) all: usize,
}

impl Shares {
    pub(super) fn new(all: usize) -> Self {
        Self {
            caller: (all / 4).max(1),
            tenant: (all / 4).saturating_mul(3).max(1),
            all,
        }
    }

    /// The shares of this caller. The user of an open server has no share, only the whole.
    pub(super) fn of(self, principal: &Principal) -> Self {
        if principal.is_local_user {
            Self {
                caller: self.all,
                tenant: self.all,
                all: self.all,
            }
        } else {
            self
        }
    }
}

/// The share that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exhausted {
    Caller,
    Tenant,
    All,
}

impl Exhausted {
    /// A phrase that completes "too many … ".
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Exhausted::Caller => "of this caller",
            Exhausted::Tenant => "of this tenant",
            Exhausted::All => "on this server",
        }
    }
}

/// A pool of slots.
pub(super) struct SharedPool {
    shares: Shares,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    all: usize,
    by_caller: HashMap<u64, usize>,
    by_tenant: HashMap<Arc<str>, usize>,
}

/// A slot of a pool, until this is dropped.
pub(super) struct Slot {
    pool: Arc<SharedPool>,
    caller: u64,
    tenant: Arc<str>,
}

impl SharedPool {
    pub(super) fn new(slots: u32) -> Arc<Self> {
        Arc::new(Self {
            shares: Shares::new(usize::try_from(slots).unwrap_or(usize::MAX)),
            held: Mutex::default(),
        })
    }

    pub(super) fn acquire(self: &Arc<Self>, principal: &Principal) -> Result<Slot, Exhausted> {
        let shares = self.shares.of(principal);
        let tenant = &principal.caller.tenant;
        let mut held = self.lock();
        let of_caller = held.by_caller.get(&principal.key).copied().unwrap_or(0);
        let of_tenant = held.by_tenant.get(tenant).copied().unwrap_or(0);
        if held.all >= shares.all {
            return Err(Exhausted::All);
        }
        if of_tenant >= shares.tenant {
            return Err(Exhausted::Tenant);
        }
        if of_caller >= shares.caller {
            return Err(Exhausted::Caller);
        }
        held.all += 1;
        held.by_caller.insert(principal.key, of_caller + 1);
        held.by_tenant.insert(Arc::clone(tenant), of_tenant + 1);
        Ok(Slot {
            pool: Arc::clone(self),
            caller: principal.key,
            tenant: Arc::clone(tenant),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // A poisoned count is consistent: no operation panics in between.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut held = self.pool.lock();
        held.all = held.all.saturating_sub(1);
        release(&mut held.by_caller, &self.caller);
        release(&mut held.by_tenant, &self.tenant);
    }
}

/// Decrements a count, and removes it at zero so that the map stays small.
fn release<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    match counts.get_mut(key) {
        Some(count) if *count > 1 => *count -= 1,
        Some(_) => drop(counts.remove(key)),
        None => {}
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn no_caller_and_no_tenant_takes_all_slots() {
        let pool = SharedPool::new(8);
        let mut slots = Vec::new();
        let mut take = |tenant: &str, key: u64| {
            let slot = pool.acquire(&principal(tenant, key));
            slot.map(|slot| slots.push(slot))
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
        slots.clear();
        assert!(pool.acquire(&principal("acme", 1)).is_ok());
        assert_eq!(pool.lock().by_caller.len(), 0);
    }

    #[test]
    fn the_user_of_an_open_server_can_take_all_slots() {
        let pool = SharedPool::new(8);
        let user = Principal {
            is_local_user: true,
            ..principal("local", 1)
        };
        let slots: Vec<_> = (0..9).map(|_| pool.acquire(&user)).collect();
        assert_eq!(slots.iter().filter(|slot| slot.is_ok()).count(), 8);
    }
}
