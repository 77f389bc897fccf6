//! Wakes callers that wait for a step of a plan, so that they need not poll.
//!
//! One listener per engine receives the store's change notifications. After a change of a watched
//! plan it reads the plan's state once, however many callers wait: a changed status or number of
//! pending reviews wakes all of them, a ready step wakes one. A caller that was woken and claims no
//! step wakes the next one, and a claim is a change itself, so every ready step is offered to a
//! caller that can claim it.
//!
//! Another process on the same SQLite file sends no notifications: the listener compares the
//! database version once per second, also once for all callers. It stops with the last watch.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use onward_core::role::Permission;
use onward_core::{PlanHead, PlanId, PlanStatus};
use onward_store::{Changed, Plans, Steps, Store, Subject};
use tokio::sync::Notify;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use super::Engine;
use crate::caller::Caller;
use crate::error::Error;

/// Interval of version checks, and of retries if the database is unavailable.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

type Key = (Arc<str>, PlanId);
/// Plans to read, by tenant: one transaction reads all plans of a tenant.
type Due = HashMap<Arc<str>, BTreeSet<PlanId>>;

/// The watched plans of an engine.
#[derive(Clone, Default)]
pub(crate) struct PlanWatches(Arc<Mutex<Registry>>);

#[derive(Default)]
struct Registry {
    plans: HashMap<Key, Weak<Watched>>,
    listener: Weak<Listener>,
}

/// The running listener, until the last watch is dropped.
struct Listener(AbortHandle);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A plan that at least one caller waits for.
struct Watched {
    key: Key,
    /// Counts the changes that may concern a waiting caller.
    generation: AtomicU64,
    notify: Notify,
    /// The status and the number of pending reviews at the last read; `None` before the first one.
    status: Mutex<Option<(PlanStatus, u32)>>,
    registry: PlanWatches,
    _listener: Arc<Listener>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut registry = self.registry.lock();
        // Another caller may have watched the plan again.
        if let Entry::Occupied(entry) = registry.plans.entry(self.key.clone())
            && entry.get().strong_count() == 0
        {
            entry.remove();
        }
    }
}

/// The state of a plan that decides which callers are woken.
#[derive(Clone, Copy)]
struct State {
    /// The status and the number of pending reviews; `None` if the plan does not exist.
    status: Option<(PlanStatus, u32)>,
    has_ready_step: bool,
}

impl Watched {
    fn update(&self, state: State) {
        let before = std::mem::replace(&mut *lock(&self.status), state.status);
        if before != state.status || state.status.is_none() {
            self.generation.fetch_add(1, Ordering::SeqCst);
            self.notify.notify_waiters();
        } else if state.has_ready_step {
            self.generation.fetch_add(1, Ordering::SeqCst);
            self.notify.notify_one();
        }
    }
}

/// A caller that waits for a step of a plan.
pub struct PlanWatch {
    watched: Arc<Watched>,
    seen: u64,
    /// Whether this caller was woken and has not claimed a step.
    owes_wake: bool,
}

impl PlanWatch {
    /// Waits for a change after which a step may be available, or the reason why none is may
    /// differ. Returns immediately if there was one since the watch was created or last returned.
    pub async fn changed(&mut self) {
        self.wake_next();
        loop {
            let mut notified = std::pin::pin!(self.watched.notify.notified());
            // Registered before the generation is read: no change in between is lost.
            notified.as_mut().enable();
            let generation = self.watched.generation.load(Ordering::SeqCst);
            if generation != self.seen {
                self.seen = generation;
                self.owes_wake = true;
                return;
            }
            notified.await;
        }
    }

    /// Reports that the caller claimed a step. The claim's own change wakes the next caller.
    pub fn claimed(&mut self) {
        self.owes_wake = false;
    }

    fn wake_next(&mut self) {
        if std::mem::take(&mut self.owes_wake) {
            self.watched.notify.notify_one();
        }
    }
}

impl Drop for PlanWatch {
    fn drop(&mut self) {
        self.wake_next();
    }
}

impl Engine {
    /// Watches a plan on behalf of a caller that may claim its steps. Changes from now on count, so
    /// a caller watches first and then looks for a step.
    pub fn watch_plan(&self, caller: &Caller, plan: PlanId) -> Result<PlanWatch, Error> {
        caller.allow(Permission::Work)?;
        let key = (Arc::clone(&caller.tenant), plan);
        let watched = self.plan_watches.watch(&self.store, key);
        Ok(PlanWatch {
            seen: watched.generation.load(Ordering::SeqCst),
            watched,
            owes_wake: false,
        })
    }
}

impl PlanWatches {
    fn watch(&self, store: &Store, key: Key) -> Arc<Watched> {
        let mut registry = self.lock();
        if let Some(watched) = registry.plans.get(&key).and_then(Weak::upgrade) {
            return watched;
        }
        let listener = registry.listener.upgrade().unwrap_or_else(|| {
            // Subscribed before the caller reads the plan.
            let listen = listen(store.clone(), store.watch(), self.clone());
            let listener = Arc::new(Listener(tokio::spawn(listen).abort_handle()));
            registry.listener = Arc::downgrade(&listener);
            listener
        });
        let watched = Arc::new(Watched {
            key: key.clone(),
            generation: AtomicU64::new(0),
            notify: Notify::new(),
            status: Mutex::default(),
            registry: self.clone(),
            _listener: listener,
        });
        registry.plans.insert(key, Arc::downgrade(&watched));
        watched
    }

    fn is_watched(&self, key: &Key) -> bool {
        self.lock().plans.contains_key(key)
    }

    fn all(&self) -> Vec<Key> {
        self.lock().plans.keys().cloned().collect()
    }

    fn update(&self, key: &Key, state: State) {
        let watched = self.lock().plans.get(key).and_then(Weak::upgrade);
        if let Some(watched) = watched {
            watched.update(state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        lock(&self.0)
    }
}

/// Wakes callers until the last watch is dropped, which aborts this task.
async fn listen(store: Store, mut changes: Receiver<Changed>, watches: PlanWatches) {
    let mut version = None;
    let mut has_versions = true;
    let mut due = Due::new();
    let mut checks = tokio::time::interval(CHECK_INTERVAL);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    checks.reset();
    loop {
        let mut all = false;
        let checks_now = has_versions || !due.is_empty();
        tokio::select! {
            changed = changes.recv() => match changed {
                Ok(changed) => all |= add(&mut due, &watches, changed),
                Err(RecvError::Lagged(_)) => all = true,
                Err(RecvError::Closed) => return,
            },
            _ = checks.tick(), if checks_now => match store.version().await {
                Ok(None) => has_versions = false,
                Ok(current) => {
                    all = current != version;
                    version = current;
                }
                // Retried at the next interval.
                Err(_) => {}
            },
        }
        // Changes that were committed meanwhile need only one read.
        loop {
            match changes.try_recv() {
                Ok(changed) => all |= add(&mut due, &watches, changed),
                Err(TryRecvError::Lagged(_)) => all = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        if all {
            for (tenant, plan) in watches.all() {
                insert(&mut due, tenant, plan);
            }
        }
        for (tenant, plans) in std::mem::take(&mut due) {
            match read(&store, &tenant, plans.clone()).await {
                Ok(states) => {
                    for (plan, state) in states {
                        watches.update(&(Arc::clone(&tenant), plan), state);
                    }
                }
                // The database is unavailable: retried at the next interval.
                Err(_) => drop(due.insert(tenant, plans)),
            }
        }
    }
}

/// Adds a changed plan if it is watched. Returns whether any plan may have changed.
fn add(due: &mut Due, watches: &PlanWatches, changed: Changed) -> bool {
    match changed.what {
        Subject::Plan(plan) => {
            let key = (changed.tenant, plan);
            if watches.is_watched(&key) {
                insert(due, key.0, plan);
            }
            false
        }
        Subject::Session(_) => false,
        Subject::All => true,
    }
}

fn insert(due: &mut Due, tenant: Arc<str>, plan: PlanId) {
    due.entry(tenant).or_default().insert(plan);
}

/// Reads the states of plans in one transaction.
async fn read(
    store: &Store,
    tenant: &Arc<str>,
    plans: BTreeSet<PlanId>,
) -> Result<Vec<(PlanId, State)>, Error> {
    let states = store.read(tenant, move |tx| {
        let plans = plans.clone();
        Box::pin(async move {
            let mut states = Vec::with_capacity(plans.len());
            for plan in plans {
                let sheet = Plans(tx).sheet(plan).await?;
                let head = sheet.map(|sheet| sheet.head);
                let assigns_steps = head.as_ref().is_some_and(PlanHead::assigns_steps);
                let status = head.map(|head| (head.status(), head.counts.awaiting_input));
                let has_ready_step =
                    assigns_steps && Steps(tx).first_ready(plan, None).await?.is_some();
                let state = State {
                    status,
                    has_ready_step,
                };
                states.push((plan, state));
            }
            Ok::<_, Error>(states)
        })
    });
    states.await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every critical section leaves the value consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
