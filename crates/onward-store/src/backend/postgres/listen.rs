//! Change notifications between servers, with `LISTEN` and `NOTIFY`.
//!
//! They are not part of the transactions that make the changes: a commit with a notification holds
//! a lock on the whole database cluster until it is on disk, which would serialize all commits.
//! Instead, one task sends everything that changed since its last round, each plan and session
//! once, on a separate connection, on which it also listens. A duplicate notification is harmless:
//! subscribers read the current state. After a lost connection they read everything again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, broadcast};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::address::{Address, LongLivedConnection, random_id};
use super::{error, statistics};
use crate::change::{Changed, Subject};
use crate::error::Error;

const CHANNEL: &str = "onward_changes";

/// Maximum length of a payload; PostgreSQL requires less than 8000 bytes.
const MAX_PAYLOAD: usize = 7900;

/// Pause between two rounds; changes made meanwhile are sent together.
const INTERVAL: Duration = Duration::from_millis(25);

/// Shortest and longest pause between two attempts to connect.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Changed subjects, with their tenants.
type Pending = BTreeSet<(Arc<str>, Subject)>;

/// Prefix of a session in a payload; no plan id begins with it.
const SESSION: &str = "session ";

/// Changes that are still to be sent.
pub(super) struct Outbox {
    pending: Mutex<Pending>,
    wake: Notify,
    closed: AtomicBool,
}

impl Outbox {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            pending: Mutex::default(),
            wake: Notify::new(),
            closed: AtomicBool::new(false),
        })
    }

    /// Queues changes to be sent soon.
    pub(super) fn put(&self, changed: Vec<Changed>) {
        if changed.is_empty() {
            return;
        }
        let changed = changed
            .into_iter()
            .map(|Changed { tenant, what, .. }| (tenant, what));
        self.lock().extend(changed);
        self.wake.notify_one();
    }

    /// Ends the task once it has sent the queued changes.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn take(&self) -> Pending {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Pending> {
        // A panic while adding an entry leaves the set valid.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the task that sends and receives notifications.
pub(super) async fn start(
    address: Address,
    connection: LongLivedConnection,
    watchers: broadcast::Sender<Changed>,
) -> Result<Arc<Outbox>, Error> {
    listen(&connection.client).await?;
    let outbox = Outbox::new();
    let exchange = Exchange {
        address,
        watchers,
        outbox: Arc::clone(&outbox),
        origin: random_id(),
        sent: 0,
    };
    tokio::spawn(exchange.run(connection));
    Ok(outbox)
}

/// Subscribes. A notification that is lost in a crash does no harm, so sending one does not wait
/// for the disk.
async fn listen(client: &Client) -> Result<(), Error> {
    client
        .batch_execute(
            "SET synchronous_commit = off; SET idle_session_timeout = 0; LISTEN onward_changes",
        )
        .await
        .map_err(|why| error::of_statement(why, "LISTEN"))
}

/// The task that sends and receives notifications.
struct Exchange {
    address: Address,
    watchers: broadcast::Sender<Changed>,
    outbox: Arc<Outbox>,
    origin: String,
    /// Number of changes sent by this process, until statistics are collected.
    sent: usize,
}

impl Exchange {
    /// Reconnects whenever the connection is lost.
    async fn run(mut self, first: LongLivedConnection) {
        let mut connection = first;
        loop {
            self.on(&mut connection).await;
            let mut pause = MIN_BACKOFF;
            connection = loop {
                if self.outbox.is_closed() {
                    return;
                }
                tokio::time::sleep(pause).await;
                if let Ok(connection) = self.address.open_long_lived().await
                    && listen(&connection.client).await.is_ok()
                {
                    break connection;
                }
                pause = (pause * 2).min(MAX_BACKOFF);
            };
            // Other servers may have sent notifications meanwhile.
            drop(self.watchers.send(Changed::all()));
            // Send what was queued while there was no connection.
            self.outbox.wake.notify_one();
        }
    }

    /// Sends and receives until the connection is lost or the outbox is closed.
    async fn on(&mut self, connection: &mut LongLivedConnection) {
        loop {
            tokio::select! {
                received = connection.notifications.recv() => match received {
                    Some(received) if received.channel() == CHANNEL => self.publish(received.payload()),
                    Some(_) => {}
                    None => return,
                },
                () = self.outbox.wake.notified() => {
                    let pending = self.outbox.take();
                    for payload in payloads(&self.origin, &pending) {
                        if send(&connection.client, &payload).await.is_err() {
                            // Sent again on the next connection; duplicates are harmless.
                            self.outbox.lock().extend(pending);
                            return;
                        }
                    }
                    if self.outbox.is_closed() || self.count(&connection.client, &pending).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(INTERVAL).await;
                }
            }
        }
    }

    /// Collects planner statistics once enough has changed.
    async fn count(
        &mut self,
        client: &Client,
        sent: &Pending,
    ) -> Result<(), tokio_postgres::Error> {
        let before = self.sent;
        self.sent = before.saturating_add(sent.len());
        if before < statistics::CHANGES && self.sent >= statistics::CHANGES {
            statistics::analyze(client).await
        } else {
            Ok(())
        }
    }

    /// Publishes the changes in a notification of another server.
    fn publish(&self, payload: &str) {
        let Ok(parts) = serde_json::from_str::<Vec<String>>(payload) else {
            return;
        };
        let Some((origin, plans)) = parts.split_first() else {
            return;
        };
        if *origin == self.origin {
            return;
        }
        for pair in plans.chunks_exact(2) {
            if let Some(what) = decode(&pair[1]) {
                self.send_to_watchers(pair[0].as_str().into(), what);
            }
        }
    }

    fn send_to_watchers(&self, tenant: Arc<str>, what: Subject) {
        let seq = None;
        // There may be no subscriber.
        drop(self.watchers.send(Changed { tenant, what, seq }));
    }
}

/// Sends a notification.
async fn send(client: &Client, payload: &str) -> Result<(), tokio_postgres::Error> {
    let params: [(&(dyn ToSql + Sync), Type); 2] = [(&CHANNEL, Type::TEXT), (&payload, Type::TEXT)];
    let sent = client.execute_typed("SELECT pg_notify($1, $2)", &params);
    sent.await.map(|_| ())
}

fn encode(what: &Subject) -> String {
    match what {
        Subject::Plan(plan) => plan.to_string(),
        Subject::Session(session) => format!("{SESSION}{session}"),
        // Never sent: each server detects its own lost connection. No plan has this id.
        Subject::All => String::new(),
    }
}

fn decode(word: &str) -> Option<Subject> {
    match word.strip_prefix(SESSION) {
        Some(session) => Some(Subject::Session(session.into())),
        None => word.parse().ok().map(Subject::Plan),
    }
}

/// JSON lists of strings within the length limit: the origin, then tenants and subjects
/// alternately. A tenant whose name alone exceeds the limit is left out.
fn payloads(origin: &str, pending: &Pending) -> Vec<String> {
    let mut payloads = Vec::new();
    let mut current = String::new();
    for (tenant, what) in pending {
        let tenant = serde_json::Value::from(tenant.as_ref());
        let what = serde_json::Value::from(encode(what));
        let pair = format!(",{tenant},{what}");
        if current.len() + pair.len() > MAX_PAYLOAD {
            payloads.extend(finish(&mut current));
        }
        if current.is_empty() {
            current = format!(r#"["{origin}""#);
        }
        if current.len() + pair.len() <= MAX_PAYLOAD {
            current += &pair;
        }
    }
    payloads.extend(finish(&mut current));
    payloads
}

fn finish(current: &mut String) -> Option<String> {
    (!current.is_empty()).then(|| std::mem::take(current) + "]")
}

#[cfg(test)]
mod tests {
    use onward_core::PlanId;

    use super::*;

    #[test]
    fn splits_changes_into_short_payloads_without_loss() {
        let origin = random_id();
        let mut pending = BTreeSet::new();
        for number in 0..1000 {
            let tenant: Arc<str> = format!("a \"{}\"", number % 7).into();
            let session = format!("\"{number}\" of ours");
            pending.insert((Arc::clone(&tenant), Subject::Session(session.into())));
            pending.insert((tenant, Subject::Plan(PlanId::from_u128(number))));
        }
        let plan = Subject::Plan(PlanId::from_u128(0));
        pending.insert(("x".repeat(9000).into(), plan));
        let payloads = payloads(&origin, &pending);
        let mut found = BTreeSet::new();
        for payload in payloads {
            assert!(payload.len() < 8000);
            let parts: Vec<String> = serde_json::from_str(&payload).unwrap();
            assert_eq!(parts[0], origin);
            for pair in parts[1..].chunks_exact(2) {
                found.insert((pair[0].as_str().into(), decode(&pair[1]).unwrap()));
            }
        }
        pending.retain(|(tenant, _)| tenant.len() < 9000);
        assert_eq!(found, pending);
    }
}
