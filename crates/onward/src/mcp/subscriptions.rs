//! Resource subscriptions and their stream of changes.
//!
//! Changes in this process, or by another server on the same PostgreSQL database, arrive as events.
//! Another process on the same SQLite file sends no events. While subscriptions exist, the stream
//! polls the database version once per second; after a commit it compares the audit sequence of the
//! newest plans and the change counters of the newest sessions. A change may be reported twice.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_core::{PlanId, Timestamp};
use onward_engine::list::PlanQuery;
use onward_engine::{Caller, Engine, Subject};
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::{Setup, resources, wait_for_shutdown};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long before the subscription a change is still reported, in milliseconds.
const OVERLAP_MS: i64 = 1_000;
/// Plans or sessions compared per poll; more than change in one second.
const POLL_LIMIT: u32 = 100;

/// The subscriptions of one 2025-11-25 connection. They end with the connection.
#[derive(Default)]
pub(super) struct Subscriptions {
    uris: Arc<Mutex<BTreeSet<String>>>,
    notifier: Mutex<Option<AbortOnDrop>>,
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Subscriptions {
    pub(super) fn add(&self, setup: &Setup, caller: Caller, uri: String, peer: Peer<RoleServer>) {
        lock(&self.uris).insert(uri);
        let mut notifier = lock(&self.notifier);
        if notifier.is_some() {
            return;
        }
        let mut changes = ChangeStream::for_setup(setup, caller);
        let uris = Arc::clone(&self.uris);
        let task = tokio::spawn(async move {
            while let Some(changed) = changes.next().await {
                let affected: Vec<String> = lock(&uris)
                    .iter()
                    .filter(|uri| resources::is_affected(uri, &changed))
                    .cloned()
                    .collect();
                for uri in affected {
                    let updated = ResourceUpdatedNotificationParam::new(uri);
                    if peer.notify_resource_updated(updated).await.is_err() {
                        return;
                    }
                }
            }
        });
        *notifier = Some(AbortOnDrop(task.abort_handle()));
    }

    pub(super) fn remove(&self, uri: &str) {
        let mut uris = lock(&self.uris);
        uris.remove(uri);
        if uris.is_empty() {
            lock(&self.notifier).take();
        }
    }
}

/// One `subscriptions/listen` of 2026-07-28, until it is cancelled or the server shuts down.
pub(super) async fn listen(setup: &Setup, caller: Caller, context: SubscriptionContext) {
    tokio::select! {
        () = notify(ChangeStream::for_setup(setup, caller), &context) => {}
        () = context.cancelled() => {}
        () = wait_for_shutdown(setup.closing.clone()) => {}
    }
}

async fn notify(mut changes: ChangeStream, context: &SubscriptionContext) {
    let accepted = context.accepted().resource_subscriptions.clone();
    let accepted = accepted.unwrap_or_default();
    while let Some(changed) = changes.next().await {
        for uri in &accepted {
            if resources::is_affected(uri, &changed)
                && context
                    .sink()
                    .notify_resource_updated(uri.clone())
                    .await
                    .is_err()
            {
                return;
            }
        }
    }
}

/// The changed plans and sessions of one tenant.
pub(crate) struct ChangeStream {
    engine: Engine,
    caller: Caller,
    events: tokio::sync::broadcast::Receiver<onward_engine::Changed>,
    closing: watch::Receiver<bool>,
    /// Changes from this time on are reported. It precedes the subscription by [`OVERLAP_MS`], so
    /// that no change is lost between the client's last read and the subscription.
    since: Timestamp,
    /// The last audit sequence number of each polled plan.
    plan_seqs: HashMap<PlanId, u64>,
    /// The change counter of each polled session.
    session_counters: HashMap<String, u64>,
    /// Changes found by polling but not returned yet.
    pending: Vec<Subject>,
    /// The database version at the last poll.
    version: Option<i64>,
    polled_once: bool,
}

impl ChangeStream {
    fn for_setup(setup: &Setup, caller: Caller) -> Self {
        let engine = setup.tool_context.engine.clone();
        Self::new(engine, caller, setup.closing.clone())
    }

    /// The changes in the caller's tenant from now on.
    pub(crate) fn new(engine: Engine, caller: Caller, closing: watch::Receiver<bool>) -> Self {
        let now = engine.now();
        Self {
            events: engine.subscribe(),
            engine,
            caller,
            closing,
            since: Timestamp::from_millis(now.as_millis().saturating_sub(OVERLAP_MS)),
            plan_seqs: HashMap::new(),
            session_counters: HashMap::new(),
            pending: Vec::new(),
            version: None,
            polled_once: false,
        }
    }

    /// Returns `None` on shutdown.
    pub(crate) async fn next(&mut self) -> Option<Subject> {
        loop {
            if let Some(changed) = self.pending.pop() {
                return Some(changed);
            }
            if !self.polled_once {
                self.polled_once = true;
                self.poll().await;
                continue;
            }
            let event = tokio::select! {
                event = self.events.recv() => Some(event),
                () = tokio::time::sleep(POLL_INTERVAL) => None,
                () = wait_for_shutdown(self.closing.clone()) => return None,
            };
            let Some(event) = event else {
                self.poll_if_committed().await;
                continue;
            };
            match event {
                Ok(changed) if changed.tenant != self.caller.tenant => {}
                Ok(changed) => return Some(changed.what),
                Err(RecvError::Lagged(_)) => self.poll().await,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Polls if another process committed something.
    async fn poll_if_committed(&mut self) {
        match self.engine.version().await {
            // `None`: all changes arrive as events. `Err`: retry at the next interval.
            Ok(None) | Err(_) => {}
            Ok(version) if version == self.version => {}
            Ok(version) => {
                self.version = version;
                self.poll().await;
            }
        }
    }

    async fn poll(&mut self) {
        self.poll_sessions().await;
        self.poll_plans().await;
    }

    /// Finds sessions whose change counter differs.
    async fn poll_sessions(&mut self) {
        let changed = self
            .engine
            .sessions_changed(&self.caller, self.since, POLL_LIMIT);
        let Ok(changed) = changed.await else {
            return;
        };
        for (session, counter) in changed {
            let before = self.session_counters.insert(session.clone(), counter);
            if before != Some(counter) {
                self.pending.push(Subject::Session(session.into()));
            }
        }
    }

    /// Finds plans with new audit events.
    async fn poll_plans(&mut self) {
        let query = PlanQuery {
            limit: POLL_LIMIT,
            finished: true,
            ..PlanQuery::default()
        };
        // If the database is unavailable, the next interval retries.
        let Ok(page) = self.engine.list_plans(&self.caller, query).await else {
            return;
        };
        for listed in &page.plans {
            let (head, at) = (&listed.sheet.head, listed.sheet.updated_at);
            let before = self.plan_seqs.insert(head.id, head.seq);
            if before.is_some_and(|before| before != head.seq)
                || (before.is_none() && at >= self.since)
            {
                self.pending.push(Subject::Plan(head.id));
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Every critical section is one operation, so a panic cannot leave the value inconsistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
