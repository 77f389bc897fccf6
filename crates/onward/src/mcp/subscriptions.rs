//! Resource subscriptions and their stream of changes.
//!
//! Changes in this process, or by another server on the same PostgreSQL database, arrive as events.
//! Another process on the same SQLite file sends no events. While subscriptions exist, the stream
//! polls the database version once per second; after a commit it compares the audit sequence of the
//! newest plans and the change counters of the newest sessions. Events and polls share these
//! numbers, so each change is reported once. If events were missed, everything counts as changed.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_core::{PlanId, Timestamp};
use onward_engine::list::PlanQuery;
use onward_engine::{Caller, Engine, Error, Subject};
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::{Setup, resources};
use crate::tools::wait_for_shutdown;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long before the stream a change is still reported, in milliseconds.
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
    /// Adds a subscription. Changes before it are not reported.
    pub(super) async fn add(
        &self,
        setup: &Setup,
        caller: Caller,
        uri: String,
        peer: Peer<RoleServer>,
    ) {
        lock(&self.uris).insert(uri);
        if lock(&self.notifier).is_some() {
            return;
        }
        let mut changes = ChangeStream::for_setup(setup, caller);
        changes.skip_earlier_changes().await;
        let mut notifier = lock(&self.notifier);
        if notifier.is_some() {
            return;
        }
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
        () = wait_for_shutdown(setup.tool_context.closing.clone()) => {}
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
    /// Changes from this time on are reported. It precedes the stream by [`OVERLAP_MS`], so that no
    /// change is lost between the client's last read and the first poll.
    since: Timestamp,
    /// The last reported audit sequence number of each plan.
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
        Self::new(engine, caller, setup.tool_context.closing.clone())
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

    /// Polls for the first time without reporting the changes so far. Changes from now on are not
    /// lost: they arrive as events or differ at the next poll.
    async fn skip_earlier_changes(&mut self) {
        if self.poll().await.is_ok() {
            self.polled_once = true;
            self.pending.clear();
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
                // If the database is unavailable, the next interval retries.
                drop(self.poll().await);
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
                Err(RecvError::Lagged(_)) => return Some(Subject::All),
                Ok(changed) if changed.what == Subject::All => return Some(Subject::All),
                Ok(changed) if changed.tenant != self.caller.tenant => {}
                Ok(changed) => match (changed.what, changed.seq) {
                    (Subject::Plan(plan), Some(seq)) => self.advance(plan, seq),
                    (what @ (Subject::Plan(_) | Subject::All), _) => return Some(what),
                    (Subject::Session(_), _) => drop(self.poll_sessions().await),
                },
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
                if self.poll().await.is_ok() {
                    self.version = version;
                }
            }
        }
    }

    /// Reports a plan whose audit trail now ends with `seq`, unless it was reported already.
    fn advance(&mut self, plan: PlanId, seq: u64) {
        let before = self.plan_seqs.entry(plan).or_default();
        if *before < seq {
            *before = seq;
            self.pending.push(Subject::Plan(plan));
        }
    }

    async fn poll(&mut self) -> Result<(), Error> {
        self.poll_sessions().await?;
        self.poll_plans().await
    }

    /// Finds sessions whose change counter differs.
    async fn poll_sessions(&mut self) -> Result<(), Error> {
        let changed = self
            .engine
            .sessions_changed(&self.caller, self.since, POLL_LIMIT);
        for (session, counter) in changed.await? {
            let before = self.session_counters.insert(session.clone(), counter);
            if before != Some(counter) {
                self.pending.push(Subject::Session(session.into()));
            }
        }
        Ok(())
    }

    /// Finds plans with new audit events.
    async fn poll_plans(&mut self) -> Result<(), Error> {
        let query = PlanQuery {
            limit: POLL_LIMIT,
            finished: true,
            ..PlanQuery::default()
        };
        let page = self.engine.list_plans(&self.caller, query).await?;
        for listed in &page.plans {
            let (head, at) = (&listed.sheet.head, listed.sheet.updated_at);
            if at < self.since {
                self.plan_seqs.entry(head.id).or_insert(head.seq);
            }
            self.advance(head.id, head.seq);
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Every critical section is one operation, so a panic cannot leave the value inconsistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
