//! Tells people what was found when nobody looks: every server that has a webhook takes what is to be
//! told, one at a time, and tells it.
//!
//! It is woken by the changes of plans and looks at the tenants that they are of, at most once a second;
//! now and then it looks at all of them, since a change may have gone unheard. What is to be told is in
//! the database: nothing is lost with the process, and nothing here holds anybody up.

mod webhook;

use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use onward_core::Timestamp;
use onward_core::finding::Kind;
use onward_engine::notice::{Taken, Told, Tried};
use onward_engine::{Changed, Delivery, Engine, Error};
use tokio::sync::broadcast::{Receiver, error::TryRecvError};
use tokio::sync::watch;

use crate::config;
use crate::wire::notice::Notice;
use webhook::Webhook;

/// How often it looks whether anything changed.
const LOOK: Duration = Duration::from_secs(1);
/// How often it looks at everything, whatever it heard.
const EVERYTHING: Duration = Duration::from_secs(60);
/// How many are told at once.
const AT_ONCE: u32 = 8;

/// What came of a try.
pub(crate) struct Outcome {
    /// What was to be told.
    pub(crate) kind: Kind,
    /// How far it got.
    pub(crate) delivery: Delivery,
    /// Why not, if not.
    pub(crate) why: Option<String>,
}

/// Whoever tells people.
pub(crate) struct Notifier {
    engine: Engine,
    webhook: Webhook,
    kinds: Vec<Kind>,
    /// Where people find the dashboard, if there is one.
    base_url: Option<Arc<str>>,
    heard: Receiver<Changed>,
    version: Option<i64>,
    /// When each tenant has something to be told next, as far as that is known.
    next_at: HashMap<Arc<str>, Timestamp>,
    /// Tenants that must be looked at.
    changed: HashSet<Arc<str>>,
    /// When everything was looked at.
    looked_at: Option<tokio::time::Instant>,
}

impl Notifier {
    /// Somebody who tells, where the configuration names whom, and what it is signed with.
    pub(crate) fn of(
        notify: &config::Notify,
        engine: &Engine,
        base_url: Option<Arc<str>>,
    ) -> Result<Option<Self>, reqwest::Error> {
        let (Some(url), Some(secret)) = (&notify.webhook.value, &notify.secret.value) else {
            return Ok(None);
        };
        Ok(Some(Self {
            webhook: Webhook::new(url, secret)?,
            kinds: notify.kinds.value.clone(),
            base_url,
            heard: engine.watch(),
            engine: engine.clone(),
            version: None,
            next_at: HashMap::new(),
            changed: HashSet::new(),
            looked_at: None,
        }))
    }

    /// Tells until the end; what is being told then is told. What came of each try is told, too.
    pub(crate) async fn run(
        mut self,
        mut stop: watch::Receiver<bool>,
        mut tell: impl FnMut(&Result<Outcome, Error>),
    ) {
        let mut again = false;
        loop {
            if !again {
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
            if *stop.borrow() {
                return;
            }
            again = match self.round(&mut tell).await {
                Ok(more) => more,
                Err(why) => {
                    // The database is away: what is to be told stays there.
                    self.looked_at = None;
                    tell(&Err(why));
                    false
                }
            };
        }
    }

    /// Looks where it must, and tells what is there. True where there may be more.
    async fn round(
        &mut self,
        tell: &mut impl FnMut(&Result<Outcome, Error>),
    ) -> Result<bool, Error> {
        self.listen().await?;
        let now = self.engine.now();
        let due = self.next_at.iter().filter(|(_, at)| **at <= now);
        let due: Vec<Arc<str>> = due.map(|(tenant, _)| Arc::clone(tenant)).collect();
        self.changed.extend(due);
        let mut more = false;
        for tenant in std::mem::take(&mut self.changed) {
            let taken = self.engine.take_notices(&tenant, &self.kinds, AT_ONCE);
            let Taken { notices, next_at } = taken.await?;
            match next_at {
                Some(at) => self.next_at.insert(Arc::clone(&tenant), at),
                None => self.next_at.remove(&tenant),
            };
            let trying = notices.iter().map(|told| self.deliver(&tenant, told));
            for (told, tried) in notices.iter().zip(join_all(trying).await) {
                let why = match &tried {
                    Tried::Sent => None,
                    Tried::Failed(why) => Some(why.clone()),
                };
                let delivery = self
                    .engine
                    .notice_tried(&tenant, &told.notice, tried)
                    .await?;
                let kind = told.notice.finding.kind;
                tell(&Ok(Outcome {
                    kind,
                    delivery,
                    why,
                }));
            }
            if !notices.is_empty() {
                // What failed comes again sooner than what was said above.
                more = true;
                self.changed.insert(tenant);
            }
        }
        Ok(more)
    }

    async fn deliver(&self, tenant: &str, told: &Told) -> Tried {
        let notice = Notice::of(told, tenant, self.base_url.as_deref());
        match self.webhook.send(&notice, told.notice.tries).await {
            Ok(()) => Tried::Sent,
            Err(why) => Tried::Failed(why),
        }
    }

    /// Finds out which tenants must be looked at.
    async fn listen(&mut self) -> Result<(), Error> {
        let mut everything = self.looked_at.is_none_or(|at| at.elapsed() >= EVERYTHING);
        loop {
            match self.heard.try_recv() {
                Ok(changed) => drop(self.changed.insert(changed.tenant)),
                Err(TryRecvError::Lagged(_)) => everything = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        // Another process on the same file tells nobody.
        let version = self.engine.version().await?;
        everything |= version != self.version;
        if everything {
            let tenants = self.engine.tenants().await?;
            self.changed
                .extend(tenants.into_iter().map(|tenant| tenant.name));
            self.looked_at = Some(tokio::time::Instant::now());
            self.version = version;
        }
        Ok(())
    }
}
