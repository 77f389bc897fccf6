//! Who subscribed to what, and the way from a change to a notification.
//!
//! A change in this process, or of another server on the same PostgreSQL, is heard at once. Another
//! process on the same SQLite file tells nobody, so while there are subscriptions the file is asked once
//! a second whether anything was committed; then the newest plans and sessions are looked at, and what
//! has new entries in its trail, or was touched more often, has changed. So a change may be told twice, which harms nobody.

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

use super::{Setup, closed, resources};

/// How often the newest plans are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long before a subscription a change may lie that is told of, in milliseconds.
const BEFORE: i64 = 1_000;
/// How many of them: more than change in a second.
const NEWEST: u32 = 100;

/// The subscriptions of one connection of 2025-11-25. They end with it.
#[derive(Default)]
pub(super) struct Subscribed {
    uris: Arc<Mutex<BTreeSet<String>>>,
    watching: Mutex<Option<Watching>>,
}

/// Ends the task when it is dropped.
struct Watching(tokio::task::AbortHandle);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Subscribed {
    pub(super) fn add(&self, setup: &Setup, caller: Caller, uri: String, peer: Peer<RoleServer>) {
        lock(&self.uris).insert(uri);
        let mut watching = lock(&self.watching);
        if watching.is_some() {
            return;
        }
        let mut changes = Changes::of(setup, caller);
        let uris = Arc::clone(&self.uris);
        let task = tokio::spawn(async move {
            while let Some(changed) = changes.next().await {
                let about: Vec<String> = lock(&uris)
                    .iter()
                    .filter(|uri| resources::is_about(uri, &changed))
                    .cloned()
                    .collect();
                for uri in about {
                    let told = ResourceUpdatedNotificationParam::new(uri);
                    if peer.notify_resource_updated(told).await.is_err() {
                        return;
                    }
                }
            }
        });
        *watching = Some(Watching(task.abort_handle()));
    }

    pub(super) fn remove(&self, uri: &str) {
        let mut uris = lock(&self.uris);
        uris.remove(uri);
        if uris.is_empty() {
            lock(&self.watching).take();
        }
    }
}

/// One `subscriptions/listen` of 2026-07-28, until it is cancelled or the server ends.
pub(super) async fn listen(setup: &Setup, caller: Caller, context: SubscriptionContext) {
    // The end comes first: what is being told then finds nobody who would take it on.
    tokio::select! {
        () = tell(Changes::of(setup, caller), &context) => {}
        () = context.cancelled() => {}
        () = closed(setup.closing.clone()) => {}
    }
}

async fn tell(mut changes: Changes, context: &SubscriptionContext) {
    let accepted = context.accepted().resource_subscriptions.clone();
    let accepted = accepted.unwrap_or_default();
    while let Some(changed) = changes.next().await {
        for uri in &accepted {
            if resources::is_about(uri, &changed)
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

/// The plans and sessions of one tenant that change, one by one.
pub(crate) struct Changes {
    engine: Engine,
    caller: Caller,
    heard: tokio::sync::broadcast::Receiver<onward_engine::Changed>,
    closing: watch::Receiver<bool>,
    /// Plans that changed from here on have changed. A little before the subscription: what was told
    /// once too often harms nobody, and between asking and being watched nothing must get lost.
    since: Timestamp,
    /// How long the trail of each of the newest plans is.
    known: HashMap<PlanId, u64>,
    /// How often each of the newest sessions has changed.
    known_sessions: HashMap<String, u64>,
    /// What has changed and was not told yet.
    ready: Vec<Subject>,
    /// The version of the database when the plans were looked at.
    version: Option<i64>,
    looked: bool,
}

impl Changes {
    fn of(setup: &Setup, caller: Caller) -> Self {
        let engine = setup.desk.engine.clone();
        Self::new(engine, caller, setup.closing.clone())
    }

    /// Those of the caller's tenant, from now on, until the server ends.
    pub(crate) fn new(engine: Engine, caller: Caller, closing: watch::Receiver<bool>) -> Self {
        let now = engine.now();
        Self {
            heard: engine.watch(),
            engine,
            caller,
            closing,
            since: Timestamp::from_millis(now.as_millis().saturating_sub(BEFORE)),
            known: HashMap::new(),
            known_sessions: HashMap::new(),
            ready: Vec::new(),
            version: None,
            looked: false,
        }
    }

    /// None once the server ends.
    pub(crate) async fn next(&mut self) -> Option<Subject> {
        loop {
            if let Some(changed) = self.ready.pop() {
                return Some(changed);
            }
            if !self.looked {
                self.looked = true;
                self.look().await;
                continue;
            }
            let heard = tokio::select! {
                heard = self.heard.recv() => Some(heard),
                () = tokio::time::sleep(LOOK) => None,
                () = closed(self.closing.clone()) => return None,
            };
            let Some(heard) = heard else {
                self.look_if_changed().await;
                continue;
            };
            match heard {
                Ok(changed) if changed.tenant != self.caller.tenant => {}
                Ok(changed) => return Some(changed.what),
                Err(RecvError::Lagged(_)) => self.look().await,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Looks where there may be something that nobody told of.
    async fn look_if_changed(&mut self) {
        match self.engine.version().await {
            // Whatever changes is heard, or a database that is away is asked again in a second.
            Ok(None) | Err(_) => {}
            Ok(version) if version == self.version => {}
            Ok(version) => {
                self.version = version;
                self.look().await;
            }
        }
    }

    async fn look(&mut self) {
        self.look_at_sessions().await;
        self.look_at_plans().await;
    }

    /// Looks at the sessions that changed last.
    async fn look_at_sessions(&mut self) {
        let changed = self
            .engine
            .sessions_changed(&self.caller, self.since, NEWEST);
        let Ok(changed) = changed.await else {
            return;
        };
        for (session, changes) in changed {
            let before = self.known_sessions.insert(session.clone(), changes);
            if before != Some(changes) {
                self.ready.push(Subject::Session(session.into()));
            }
        }
    }

    /// Looks at the newest plans; those with new entries in their trail have changed.
    async fn look_at_plans(&mut self) {
        let query = PlanQuery {
            limit: NEWEST,
            finished: true,
            ..PlanQuery::default()
        };
        // A database that is away is looked at again in a second.
        let Ok(page) = self.engine.list_plans(&self.caller, query).await else {
            return;
        };
        for listed in &page.plans {
            let (head, at) = (&listed.sheet.head, listed.sheet.updated_at);
            let before = self.known.insert(head.id, head.seq);
            if before.is_some_and(|before| before != head.seq)
                || (before.is_none() && at >= self.since)
            {
                self.ready.push(Subject::Plan(head.id));
            }
        }
    }
}

fn lock<T>(held: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Whoever panicked while holding it left it whole: every use is one operation.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
