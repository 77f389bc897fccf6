//! Changes, from server to server: each tells the others what it has changed.
//!
//! This is not done inside of the transactions that change them: a commit with a notification in it
//! takes a lock of the whole database cluster until it is on disk, so that all commits would queue up
//! behind each other. One task tells, on a connection of its own, everything that came up since it
//! last did, each plan and session once; and the same connection listens. A change that is told twice or not at
//! all, because a connection broke, does no harm: whoever watches reads again, and looks from time to
//! time anyway.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, broadcast};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::address::{Address, Standing};
use super::{count, error};
use crate::error::Error;
use crate::tx::{Changed, Subject};

const CHANNEL: &str = "onward_changes";

/// A payload must be shorter than 8000 bytes.
const ROOM: usize = 7900;

/// Between two tellings: what comes up meanwhile is told together.
const PAUSE: Duration = Duration::from_millis(25);

/// Between two tries to connect, the first and the longest.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// What has changed, and whose it is.
type Waiting = BTreeSet<(Arc<str>, Subject)>;

/// How a session is told from a plan: no id of a plan begins like this.
const SESSION: &str = "session ";

/// What is still to be told, and to whom.
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    wake: Notify,
    closed: AtomicBool,
}

impl Outbox {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            wake: Notify::new(),
            closed: AtomicBool::new(false),
        })
    }

    /// Has it told, soon.
    pub(super) fn put(&self, changed: Vec<Changed>) {
        if changed.is_empty() {
            return;
        }
        let changed = changed
            .into_iter()
            .map(|Changed { tenant, what }| (tenant, what));
        self.lock().extend(changed);
        self.wake.notify_one();
    }

    /// Ends the task, once it has told what is left.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn take(&self) -> Waiting {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        // Whoever panicked was adding to the set: it is whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts telling and listening.
pub(super) async fn start(
    address: Address,
    standing: Standing,
    watchers: broadcast::Sender<Changed>,
) -> Result<Arc<Outbox>, Error> {
    listen(&standing.client).await?;
    let outbox = Outbox::new();
    let exchange = Exchange {
        address,
        watchers,
        outbox: Arc::clone(&outbox),
        origin: origin(),
        told: 0,
    };
    tokio::spawn(exchange.run(standing));
    Ok(outbox)
}

/// Tells this process's notifications from those of others.
fn origin() -> String {
    use std::hash::{BuildHasher, RandomState};
    // Seeded by the system, differently each time; this is no secret.
    let half = || u128::from(RandomState::new().hash_one(std::process::id()));
    Uuid::from_u128(half() << 64 | half()).to_string()
}

/// A change that is lost in a crash is one of which nobody was told, which is allowed: so telling
/// waits for no disk.
async fn listen(client: &Client) -> Result<(), Error> {
    client
        .batch_execute(
            "SET synchronous_commit = off; SET idle_session_timeout = 0; LISTEN onward_changes",
        )
        .await
        .map_err(|why| error::doing(&why, "LISTEN"))
}

struct Exchange {
    address: Address,
    watchers: broadcast::Sender<Changed>,
    outbox: Arc<Outbox>,
    origin: String,
    /// How many changes of this process, until the rows are counted.
    told: usize,
}

impl Exchange {
    /// Goes on over as many connections as it takes.
    async fn run(mut self, first: Standing) {
        let mut standing = first;
        loop {
            self.on(&mut standing).await;
            let mut pause = SHORTEST;
            standing = loop {
                if self.outbox.is_closed() {
                    return;
                }
                tokio::time::sleep(pause).await;
                if let Ok(standing) = self.address.stand().await
                    && listen(&standing.client).await.is_ok()
                {
                    break standing;
                }
                pause = (pause * 2).min(LONGEST);
            };
            // What was put aside while there was no connection.
            self.outbox.wake.notify_one();
        }
    }

    /// Tells and listens, until the connection is lost or nobody is left.
    async fn on(&mut self, standing: &mut Standing) {
        loop {
            tokio::select! {
                heard = standing.heard.recv() => match heard {
                    Some(heard) if heard.channel() == CHANNEL => self.hear(heard.payload()),
                    Some(_) => {}
                    None => return,
                },
                () = self.outbox.wake.notified() => {
                    let waiting = self.outbox.take();
                    for payload in payloads(&self.origin, &waiting) {
                        if tell(&standing.client, &payload).await.is_err() {
                            // Told again on the next connection; twice does no harm.
                            self.outbox.lock().extend(waiting);
                            return;
                        }
                    }
                    if self.outbox.is_closed() || self.count(&standing.client, &waiting).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Has the server count its rows, once enough was changed.
    async fn count(
        &mut self,
        client: &Client,
        told: &Waiting,
    ) -> Result<(), tokio_postgres::Error> {
        let before = self.told;
        self.told = before.saturating_add(told.len());
        match before < count::CHANGES && self.told >= count::CHANGES {
            true => count::count(client).await,
            false => Ok(()),
        }
    }

    fn hear(&self, payload: &str) {
        let Ok(words) = serde_json::from_str::<Vec<String>>(payload) else {
            return;
        };
        let Some((origin, plans)) = words.split_first() else {
            return;
        };
        if *origin == self.origin {
            return;
        }
        for pair in plans.chunks_exact(2) {
            if let Some(what) = subject(&pair[1]) {
                let tenant = pair[0].as_str().into();
                // Nobody may be watching.
                drop(self.watchers.send(Changed { tenant, what }));
            }
        }
    }
}

async fn tell(client: &Client, payload: &str) -> Result<(), tokio_postgres::Error> {
    let params: [(&(dyn ToSql + Sync), Type); 2] = [(&CHANNEL, Type::TEXT), (&payload, Type::TEXT)];
    let told = client.execute_typed("SELECT pg_notify($1, $2)", &params);
    told.await.map(|_| ())
}

fn word(what: &Subject) -> String {
    match what {
        Subject::Plan(plan) => plan.to_string(),
        Subject::Session(session) => format!("{SESSION}{session}"),
    }
}

fn subject(word: &str) -> Option<Subject> {
    match word.strip_prefix(SESSION) {
        Some(session) => Some(Subject::Session(session.into())),
        None => word.parse().ok().map(Subject::Plan),
    }
}

/// Lists of texts in JSON, each short enough: who tells, then tenant and what by turns. A tenant whose
/// name alone does not fit is left out.
fn payloads(origin: &str, waiting: &Waiting) -> Vec<String> {
    let mut payloads = Vec::new();
    let mut current = String::new();
    for (tenant, what) in waiting {
        let tenant = serde_json::Value::from(tenant.as_ref());
        let what = serde_json::Value::from(word(what));
        let pair = format!(",{tenant},{what}");
        if current.len() + pair.len() > ROOM {
            payloads.extend(finished(&mut current));
        }
        if current.is_empty() {
            current = format!(r#"["{origin}""#);
        }
        if current.len() + pair.len() <= ROOM {
            current += &pair;
        }
    }
    payloads.extend(finished(&mut current));
    payloads
}

fn finished(current: &mut String) -> Option<String> {
    (!current.is_empty()).then(|| std::mem::take(current) + "]")
}

#[cfg(test)]
mod tests {
    use onward_core::PlanId;

    use super::*;

    #[test]
    fn payloads_are_short_and_lose_nothing() {
        let origin = origin();
        let mut waiting = BTreeSet::new();
        for number in 0..1000 {
            let tenant: Arc<str> = format!("a \"{}\"", number % 7).into();
            let session = format!("\"{number}\" of ours");
            waiting.insert((Arc::clone(&tenant), Subject::Session(session.into())));
            waiting.insert((tenant, Subject::Plan(PlanId::from_u128(number))));
        }
        let plan = Subject::Plan(PlanId::from_u128(0));
        waiting.insert(("x".repeat(9000).into(), plan));
        let payloads = payloads(&origin, &waiting);
        let mut found = BTreeSet::new();
        for payload in payloads {
            assert!(payload.len() < 8000);
            let words: Vec<String> = serde_json::from_str(&payload).unwrap();
            assert_eq!(words[0], origin);
            for pair in words[1..].chunks_exact(2) {
                found.insert((pair[0].as_str().into(), subject(&pair[1]).unwrap()));
            }
        }
        waiting.retain(|(tenant, _)| tenant.len() < 9000);
        assert_eq!(found, waiting);
    }
}
