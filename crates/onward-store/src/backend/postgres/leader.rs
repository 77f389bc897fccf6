//! Leader election among servers: the leader holds a lease, a row that expires unless it is renewed.
//!
//! The database's clock decides when a lease expires. The leader also measures the time since its
//! last renewal, and considers the lease lost before another server can take it: a leader that was
//! suspended or cut off from the database stops. If a renewal that was acknowledged is lost in a
//! failover, two servers may act concurrently for a moment, which the version check at commit makes
//! harmless.
//!
//! A lease needs no session and no separate connection, so a suspended leader blocks no other
//! server, and a waiting server holds no snapshot.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::address::random_id;
use super::error;
use super::pool::Pool;
use crate::backend::Leader;
use crate::error::Error;

/// Time until a lease expires.
const DURATION: Duration = Duration::from_secs(6);
/// Interval of renewals.
const RENEWAL: Duration = Duration::from_secs(2);
/// Maximum pause between two attempts to take a lease.
const POLL: Duration = Duration::from_secs(1);

/// Remaining time of the lease in milliseconds. A row only if a server holds it.
const REMAINING: &str = "SELECT expires_at - now_ms FROM leases, \
    (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms) AS clock \
    WHERE duty = $1 AND expires_at > now_ms";

/// Takes or renews the lease, unless another server holds it.
const TAKE: &str = "INSERT INTO leases (duty, holder, expires_at) VALUES ($1, $2, \
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $3) \
    ON CONFLICT (duty) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at \
    WHERE leases.holder = excluded.holder \
        OR leases.expires_at <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint \
    RETURNING 1";

const RELEASE: &str = "DELETE FROM leases WHERE duty = $1 AND holder = $2";

/// A lease of this process.
#[derive(Clone)]
struct Lease {
    pool: Arc<Pool>,
    duty: &'static str,
    /// Identifies the holder. Not a secret.
    holder: String,
}

impl Lease {
    fn new(pool: &Arc<Pool>, duty: &'static str) -> Self {
        Self {
            pool: Arc::clone(pool),
            duty,
            holder: random_id(),
        }
    }

    /// Takes or renews the lease. Returns when it may expire; `None` if another server holds it.
    async fn take(&self) -> Result<Option<Instant>, Error> {
        let began = Instant::now();
        let duration = i64::try_from(DURATION.as_millis()).unwrap_or(i64::MAX);
        let params: [&(dyn ToSql + Sync); 3] = [&self.duty, &self.holder, &duration];
        let taken = self.run(TAKE, &params).await?;
        Ok((!taken.is_empty()).then(|| began + DURATION))
    }

    /// Remaining time of the lease of another server.
    async fn remaining(&self) -> Result<Option<Duration>, Error> {
        let rows = self.run(REMAINING, &[&self.duty]).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let left: i64 = row.try_get(0).map_err(failed)?;
        Ok(Some(Duration::from_millis(left.unsigned_abs())))
    }

    async fn release(&self) {
        // If it fails, the lease expires.
        drop(self.run(RELEASE, &[&self.duty, &self.holder]).await);
    }

    async fn run(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let checkout = self.pool.get().await?;
        let client = &checkout.client;
        let ran = async {
            let prepared = client.prepare_cached(sql).await?;
            client.query(&prepared, params).await
        };
        match timeout(RENEWAL, ran).await {
            Ok(ran) => ran.map_err(failed),
            Err(_) => {
                checkout.close();
                Err(error::timed_out(RENEWAL))
            }
        }
    }

    /// Renews the lease until it is lost or released. `valid_until` ends with the lease.
    async fn keep(self, valid_until: watch::Sender<Instant>, mut released: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                () = sleep(RENEWAL) => {}
                // The sender is never used, only dropped.
                _ = &mut released => return self.release().await,
            }
            match self.take().await {
                Ok(Some(until)) => drop(valid_until.send_replace(until)),
                Ok(None) => return,
                Err(_) if Instant::now() >= *valid_until.borrow() => return,
                Err(_) => {}
            }
        }
    }
}

fn failed(why: tokio_postgres::Error) -> Error {
    error::of_statement(why, "lease")
}

/// The held lease, released when dropped.
pub(super) struct Leadership {
    valid_until: watch::Receiver<Instant>,
    _release: oneshot::Sender<()>,
}

impl Leadership {
    /// Whether a server holds the lease.
    pub(super) async fn is_held(pool: &Arc<Pool>, duty: &'static str) -> Result<bool, Error> {
        Ok(Lease::new(pool, duty).remaining().await?.is_some())
    }

    /// Waits until no other server is the leader.
    pub(super) async fn acquire(pool: &Arc<Pool>, duty: &'static str) -> Result<Self, Error> {
        let lease = Lease::new(pool, duty);
        loop {
            if let Some(left) = lease.remaining().await? {
                sleep(left.min(POLL)).await;
            } else if let Some(until) = lease.take().await? {
                let (sender, valid_until) = watch::channel(until);
                let (release, released) = oneshot::channel();
                tokio::spawn(lease.keep(sender, released));
                return Ok(Self {
                    valid_until,
                    _release: release,
                });
            }
        }
    }
}

impl Leader for Leadership {
    fn lost(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            loop {
                let until = *self.valid_until.borrow_and_update();
                tokio::select! {
                    () = sleep_until(until) => return,
                    renewed = self.valid_until.changed() => if renewed.is_err() { return },
                }
            }
        })
    }

    fn is_lost(&self) -> bool {
        let has_ended = self.valid_until.has_changed().is_err();
        has_ended || Instant::now() >= *self.valid_until.borrow()
    }
}
