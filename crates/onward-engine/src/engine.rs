//! The engine: a store, a world, and what they need beside each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onward_core::Timestamp;
use onward_store::{Address, Changed, Faults, Options, Store};
use tokio::sync::broadcast;

use crate::caller::LOCAL;
use crate::calls::CallLog;
use crate::embed::Meaning;
use crate::error::Error;
use crate::sweep::Alarm;
use crate::world::{Fresh, System, World};

/// By how much a clock may differ from the database's, in milliseconds, before that matters.
const TOLERATED: i64 = 1_000;

/// How to open a database.
#[derive(Clone)]
pub struct Settings {
    /// Where time and chance come from.
    pub world: Arc<dyn World>,
    /// Faults on purpose, for tests.
    pub faults: Faults,
    /// Refuse a database whose schema is older, instead of bringing it up to date.
    pub keep_schema: bool,
    /// Write to a file where one is asked to, without a thread for it: for a process that asks once,
    /// and has somebody who ends it where a turn to write never comes.
    pub in_place: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            world: Arc::new(System),
            faults: Faults::default(),
            keep_schema: false,
            in_place: false,
        }
    }
}

/// Onward on one database. A handle: clones share everything.
#[derive(Clone)]
pub struct Engine {
    pub(crate) store: Store,
    pub(crate) fresh: Fresh,
    /// By how much the database's clock is ahead of the world's, in milliseconds.
    ahead: Arc<AtomicI64>,
    pub(crate) alarm: Arc<Alarm>,
    pub(crate) calls: CallLog,
    /// What says what texts mean; nothing where only words are searched.
    pub(crate) meaning: Option<Arc<Meaning>>,
}

impl Engine {
    /// Opens a database. A file is made where there is none; the tenant `local` is there afterwards.
    pub async fn open(address: &Address, settings: Settings) -> Result<Self, Error> {
        let Settings {
            world,
            faults,
            keep_schema,
            in_place,
        } = settings;
        let options = Options {
            faults,
            keep_schema,
            in_place,
            tenant: Some(Arc::from(LOCAL)),
        };
        let store = Store::open(address, options).await?;
        let knows = store.knows();
        let engine = Self {
            calls: CallLog::start(store.clone()),
            store,
            fresh: Fresh::of(world),
            ahead: Arc::default(),
            alarm: Arc::default(),
            meaning: None,
        };
        if !knows {
            engine.make_local_tenant().await?;
        }
        Ok(engine)
    }

    /// The instant that it is: for all who use one database the same, however their clocks differ. What
    /// one of them wrote down is judged by another, and must not be younger or older for that.
    pub fn now(&self) -> Timestamp {
        let now = self.fresh.world.now().as_millis();
        Timestamp::from_millis(now.saturating_add(self.ahead.load(Ordering::Relaxed)))
    }

    /// How many milliseconds the database's clock is ahead of this machine's, which is made up for.
    pub fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Takes over the time of the database, which was asked for at `asked_at` by the world's clock. A
    /// difference that is small, or that asking itself may have made, is none.
    fn set_clock(&self, asked_at: Timestamp, clock: Option<Timestamp>) {
        let Some(clock) = clock.filter(|_| self.fresh.world.shares_time()) else {
            return;
        };
        let took = self.fresh.world.now().since(asked_at).as_millis();
        let half = i64::try_from(took / 2).unwrap_or(i64::MAX);
        let here = asked_at.as_millis().saturating_add(half);
        let ahead = clock.as_millis().saturating_sub(here);
        let known = self.ahead.load(Ordering::Relaxed);
        if ahead.abs_diff(known) > TOLERATED.saturating_add(half).unsigned_abs() {
            self.ahead.store(ahead, Ordering::Relaxed);
        }
    }

    /// Looks again what time the database has: clocks are set while a server runs.
    pub(crate) async fn look_at_clock(&self) -> Result<(), Error> {
        if !self.fresh.world.shares_time() {
            return Ok(());
        }
        let asked_at = self.fresh.world.now();
        let nobody = Arc::from("");
        let clock = self
            .store
            .read(&nobody, |tx| Box::pin(async { tx.clock().await }));
        self.set_clock(asked_at, clock.await?);
        Ok(())
    }

    /// Hears of every plan that changes from now on.
    pub fn watch(&self) -> broadcast::Receiver<Changed> {
        self.store.watch()
    }

    /// A number that is another one whenever somebody has changed the database, also another process on
    /// the same file. None where [`Self::watch`] hears of everything.
    pub async fn version(&self) -> Result<Option<i64>, Error> {
        Ok(self.store.version().await?)
    }

    /// Copies an SQLite database to a file that does not exist yet, while it is in use.
    pub async fn back_up(&self, to: std::path::PathBuf) -> Result<(), Error> {
        Ok(self.store.back_up(to).await?)
    }

    /// Writes what is still to be written, and closes the database. What was answered is on disk
    /// already.
    pub async fn close(self) {
        let Self { store, calls, .. } = self;
        calls.close().await;
        store.close().await;
    }

    async fn make_local_tenant(&self) -> Result<(), Error> {
        let tenant = Arc::from(LOCAL);
        let asked_at = self.fresh.world.now();
        let (known, clock) = self
            .store
            .read(&tenant, |tx| {
                Box::pin(async { tx.own_tenant_and_clock().await })
            })
            .await?;
        self.set_clock(asked_at, clock);
        if known.is_some() {
            return Ok(());
        }
        let now = self.now();
        let made = self.store.write(&tenant, move |tx| {
            Box::pin(async move {
                tx.make_tenant(true, now);
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(made.await?)
    }
}
