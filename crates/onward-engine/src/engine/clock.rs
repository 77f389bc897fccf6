//! The clock of the database, which all of its processes use, and the preparation of a database.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onward_core::Timestamp;
use onward_store::{Store, Tenants};

use crate::caller::LOCAL;
use crate::environment::Environment;

/// Clock differences up to this many milliseconds are ignored.
const CLOCK_TOLERANCE_MS: i64 = 1_000;

/// This machine's clock, corrected to the clock of the database. Clones share the correction.
#[derive(Clone)]
pub(crate) struct Clock {
    environment: Arc<dyn Environment>,
    /// Milliseconds by which the database's clock is ahead of the local clock.
    offset_ms: Arc<AtomicI64>,
}

impl Clock {
    pub(crate) fn new(environment: Arc<dyn Environment>) -> Self {
        Self {
            environment,
            offset_ms: Arc::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let now = self.environment.now().as_millis();
        Timestamp::from_millis(now.saturating_add(self.offset_ms()))
    }

    pub(crate) fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Relaxed)
    }

    /// Adopts the database's clock, which was requested at `requested_at` local time. Differences
    /// within the tolerance or the round-trip time are ignored.
    fn set(&self, requested_at: Timestamp, clock: Option<Timestamp>) {
        let Some(clock) = clock.filter(|_| self.environment.is_wall_clock()) else {
            return;
        };
        let round_trip = self.environment.now().since(requested_at).as_millis();
        let half = i64::try_from(round_trip / 2).unwrap_or(i64::MAX);
        let here = requested_at.as_millis().saturating_add(half);
        let ahead = clock.as_millis().saturating_sub(here);
        if ahead.abs_diff(self.offset_ms()) > CLOCK_TOLERANCE_MS.saturating_add(half).unsigned_abs()
        {
            self.offset_ms.store(ahead, Ordering::Relaxed);
        }
    }

    /// Reads the database's clock again: clocks may be adjusted while a server runs.
    pub(crate) async fn refresh(&self, store: &Store) -> Result<(), onward_store::Error> {
        if !self.environment.is_wall_clock() {
            return Ok(());
        }
        let requested_at = self.environment.now();
        let no_tenant = Arc::from("");
        let clock = store.read(&no_tenant, |tx| {
            Box::pin(async { Tenants(tx).clock().await })
        });
        self.set(requested_at, clock.await?);
        Ok(())
    }

    /// Prepares a database that was just opened: adopts its clock, and creates the tenant `local`
    /// if it does not exist.
    pub(super) async fn prepare(&self, store: &Store) -> Result<(), onward_store::Error> {
        let tenant = Arc::from(LOCAL);
        let requested_at = self.environment.now();
        let (current, clock) = store
            .read(&tenant, |tx| {
                Box::pin(async { Tenants(tx).own_tenant_and_clock().await })
            })
            .await?;
        self.set(requested_at, clock);
        if current.is_some() {
            return Ok(());
        }
        let now = self.now();
        let made = store.write(&tenant, move |tx| {
            Box::pin(async move {
                Tenants(tx).make_tenant(true, now);
                Ok::<(), onward_store::Error>(())
            })
        });
        made.await
    }
}

/// Fails if a tenant does not exist.
pub(super) async fn require_tenant(
    store: &Store,
    tenant: Arc<str>,
) -> Result<(), onward_store::Error> {
    let known = store.read(&tenant, |tx| {
        Box::pin(async { Tenants(tx).own_tenant().await })
    });
    match known.await? {
        Some(_) => Ok(()),
        None => Err(onward_store::Error::unavailable(
            format_args!("tenant `{tenant}` does not exist"),
            "create it with `onward tenant create`, or set another one with `--tenant`",
        )),
    }
}
