//! Delivers notifications: every server with a webhook leases pending notifications and sends them.
//!
//! Plan changes mark their tenant; marked tenants are checked at most once a second, and all
//! tenants once a minute in case a change was missed. Pending notifications are stored in the
//! database, so a restart loses none.

mod links;
mod message;
mod webhook;

use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use onward_core::Timestamp;
use onward_core::finding::Kind;
use onward_engine::notification::{ClaimedNotifications, DeliveryAttempt, PlanNotification};
use onward_engine::{Changed, Delivery, Engine, Error, Subject};
use tokio::sync::broadcast::{Receiver, error::TryRecvError};
use tokio::sync::watch;

use crate::config;
use crate::serving::Dashboard;
use crate::wire::notification::Notification;
use links::Links;
use webhook::Webhook;

/// Interval between checks of changed tenants.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between checks of all tenants.
const FULL_CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of concurrent deliveries per tenant.
const MAX_CONCURRENT: u32 = 8;

/// The outcome of a delivery attempt.
pub(crate) struct Outcome {
    /// The kind of the finding.
    pub(crate) kind: Kind,
    /// The delivery state after the attempt.
    pub(crate) delivery: Delivery,
    /// The error, if the attempt failed.
    pub(crate) why: Option<String>,
}

/// Sends test notifications to the configured webhook.
pub(crate) struct WebhookTest(Webhook);

impl WebhookTest {
    /// Returns `None` unless both a webhook and a secret are configured.
    pub(crate) fn new(notify: &config::Notify) -> Result<Option<Self>, reqwest::Error> {
        Ok(Webhook::new(notify)?.map(Self))
    }

    /// Sends one. The error states why it was not accepted.
    pub(crate) async fn send(&self, tenant: &str, now: Timestamp) -> Result<(), String> {
        self.0.send(&Notification::test(tenant, now), 1).await
    }
}

/// Sends notifications to the configured webhook.
pub(crate) struct Notifier {
    engine: Engine,
    webhook: Webhook,
    kinds: Vec<Kind>,
    /// Creates decision links, if they are configured.
    links: Option<Links>,
    dashboard: Dashboard,
    changes: Receiver<Changed>,
    version: Option<i64>,
    /// The next delivery time of each tenant, if there is one.
    next_at: HashMap<Arc<str>, Timestamp>,
    /// Tenants to check in the next round.
    changed: HashSet<Arc<str>>,
    /// The time of the last check of all tenants.
    full_check_at: Option<tokio::time::Instant>,
}

impl Notifier {
    /// Returns `None` unless both a webhook and a secret are configured.
    pub(crate) fn new(
        notify: &config::Notify,
        engine: &Engine,
        dashboard: Dashboard,
    ) -> Result<Option<Self>, reqwest::Error> {
        let Some(webhook) = Webhook::new(notify)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            webhook,
            kinds: notify.kinds.clone(),
            links: Links::new(notify),
            dashboard,
            changes: engine.subscribe(),
            engine: engine.clone(),
            version: None,
            next_at: HashMap::new(),
            changed: HashSet::new(),
            full_check_at: None,
        }))
    }

    /// Delivers notifications until `stop`; deliveries in flight are completed. Calls `report`
    /// after each attempt.
    pub(crate) async fn run(
        mut self,
        mut stop: watch::Receiver<bool>,
        mut report: impl FnMut(&Result<Outcome, Error>),
    ) {
        let mut again = false;
        loop {
            if !again {
                tokio::select! {
                    () = tokio::time::sleep(CHECK_INTERVAL) => {}
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
            if *stop.borrow() {
                return;
            }
            again = match self.round(&mut report).await {
                Ok(more) => more,
                Err(why) => {
                    // The database is unavailable; the notifications stay pending.
                    self.full_check_at = None;
                    report(&Err(why));
                    false
                }
            };
        }
    }

    /// Delivers the due notifications. Returns true if more may be due.
    async fn round(
        &mut self,
        report: &mut impl FnMut(&Result<Outcome, Error>),
    ) -> Result<bool, Error> {
        self.collect_changes().await?;
        let now = self.engine.now();
        let due = self.next_at.iter().filter(|(_, at)| **at <= now);
        let due: Vec<Arc<str>> = due.map(|(tenant, _)| Arc::clone(tenant)).collect();
        self.changed.extend(due);
        let (mut more, mut failed) = (false, None);
        for tenant in std::mem::take(&mut self.changed) {
            let claimed = self
                .engine
                .claim_notifications(&tenant, &self.kinds, MAX_CONCURRENT);
            let ClaimedNotifications {
                notifications,
                next_at,
            } = match claimed.await {
                Ok(claimed) => claimed,
                // Its node may not respond, in a distributed database.
                Err(why) => {
                    failed = Some(why);
                    continue;
                }
            };
            match next_at {
                Some(at) => self.next_at.insert(Arc::clone(&tenant), at),
                None => self.next_at.remove(&tenant),
            };
            let attempts = notifications
                .iter()
                .map(|pending| self.deliver(&tenant, pending));
            for (pending, attempt) in notifications.iter().zip(join_all(attempts).await) {
                let why = match &attempt {
                    DeliveryAttempt::Sent => None,
                    DeliveryAttempt::Failed(why) => Some(why.clone()),
                };
                let delivery = self
                    .engine
                    .record_delivery_attempt(&tenant, &pending.notification, attempt)
                    .await?;
                let kind = pending.notification.finding.kind;
                report(&Ok(Outcome {
                    kind,
                    delivery,
                    why,
                }));
            }
            if !notifications.is_empty() {
                // Failed deliveries may be due before `next_at`.
                more = true;
                self.changed.insert(tenant);
            }
        }
        failed.map_or(Ok(more), Err)
    }

    async fn deliver(&self, tenant: &str, pending: &PlanNotification) -> DeliveryAttempt {
        let base_url = self.dashboard.base_url();
        let base_url = base_url.as_deref();
        let mut notification = Notification::new(pending, tenant, base_url);
        if let (Some(links), Some(base)) = (&self.links, base_url) {
            links.add(&mut notification, base, pending, tenant, self.engine.now());
        }
        match self
            .webhook
            .send(&notification, pending.notification.tries)
            .await
        {
            Ok(()) => DeliveryAttempt::Sent,
            Err(why) => DeliveryAttempt::Failed(why),
        }
    }

    /// Collects the tenants to check.
    async fn collect_changes(&mut self) -> Result<(), Error> {
        let mut all = self
            .full_check_at
            .is_none_or(|at| at.elapsed() >= FULL_CHECK_INTERVAL);
        loop {
            match self.changes.try_recv() {
                Ok(changed) if changed.what == Subject::All => all = true,
                Ok(changed) => drop(self.changed.insert(changed.tenant)),
                Err(TryRecvError::Lagged(_)) => all = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        // Other processes on the same SQLite file send no change events.
        let version = self.engine.version().await?;
        all |= version != self.version;
        if all {
            let tenants = self.engine.reachable_tenants().await?;
            self.changed
                .extend(tenants.into_iter().map(|tenant| tenant.name));
            self.full_check_at = Some(tokio::time::Instant::now());
            self.version = version;
        }
        Ok(())
    }
}
