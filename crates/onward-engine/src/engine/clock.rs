//! The clock of the database, which all of its processes use, and the preparation of a database.
//! Whether steps stall by it is decided in `operate/sweep.rs`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_core::Timestamp;
use onward_store::{Hint, Store, Tenants};

use crate::caller::LOCAL;
use crate::environment::Environment;

/// Differences up to this many milliseconds between this machine and the database are ignored.
const TOLERANCE_MS: i64 = 1_000;
/// A clock that moves by more than this many milliseconds against the monotonic clock has jumped.
const JUMP_MS: i64 = 5_000;
/// A clock that has jumped is followed after this many milliseconds, if it stays there.
const SETTLE_MS: i64 = 15_000;

/// The clock of the database: on PostgreSQL that of the server, otherwise that of this machine.
///
/// It advances with the monotonic clock of this machine. A jump of the clock behind it is followed
/// only if it lasts: a clock that is wrong for a few seconds must not postpone or expire anything.
/// Clones share all state.
#[derive(Clone)]
pub(crate) struct Clock {
    environment: Arc<dyn Environment>,
    time: Arc<Mutex<SteadyTime>>,
}

/// A clock as its difference to the monotonic clock, in milliseconds.
#[derive(Debug, Default)]
struct SteadyTime {
    /// The difference that is used. `None` before the first reading.
    ahead: Option<i64>,
    /// A difference after a jump, and the monotonic time of its first reading.
    jumped: Option<(i64, i64)>,
    /// Whether the readings come from the database.
    is_shared: bool,
}

impl SteadyTime {
    /// Takes a reading of the clock at a monotonic time.
    fn read(&mut self, clock: i64, monotonic: i64) {
        let ahead = clock.saturating_sub(monotonic);
        let is_near = |other: i64| ahead.abs_diff(other) <= JUMP_MS.unsigned_abs();
        let has_settled = |since: i64| monotonic.saturating_sub(since) >= SETTLE_MS;
        self.jumped = match (self.ahead, self.jumped) {
            (Some(used), Some((jumped, since))) if !is_near(used) && is_near(jumped) => {
                (!has_settled(since)).then_some((jumped, since))
            }
            (Some(used), _) if !is_near(used) => Some((ahead, monotonic)),
            (Some(_) | None, _) => None,
        };
        if self.jumped.is_none() {
            self.ahead = Some(ahead);
        }
    }

    fn now(&self, monotonic: i64) -> i64 {
        monotonic.saturating_add(self.ahead.unwrap_or(0))
    }
}

impl Clock {
    pub(crate) fn new(environment: Arc<dyn Environment>) -> Self {
        Self {
            environment,
            time: Arc::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let (here, monotonic) = self.read_machine();
        let mut time = self.lock();
        if !time.is_shared {
            time.read(here, monotonic);
        }
        Timestamp::from_millis(time.now(monotonic))
    }

    /// Whether the clock has jumped, and it is not yet known whether it stays there.
    pub(crate) fn is_settling(&self) -> bool {
        self.lock().jumped.is_some()
    }

    /// Milliseconds by which the database's clock is ahead of the local clock.
    pub(crate) fn offset_ms(&self) -> i64 {
        let (here, monotonic) = self.read_machine();
        let time = self.lock();
        if time.is_shared {
            time.now(monotonic).saturating_sub(here)
        } else {
            0
        }
    }

    /// The wall clock and the monotonic clock of this machine.
    fn read_machine(&self) -> (i64, i64) {
        let here = self.environment.now().as_millis();
        let monotonic = self.environment.monotonic();
        let monotonic = monotonic.map(|since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        (here, monotonic.unwrap_or(here))
    }

    fn lock(&self) -> MutexGuard<'_, SteadyTime> {
        // A panic leaves at worst an old reading.
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adopts the database's clock, which was requested at a local monotonic time. Differences within
    /// the tolerance or the round-trip time are ignored.
    fn set(&self, requested_at: i64, clock: Option<Timestamp>) {
        let Some(clock) = clock.filter(|_| self.environment.is_wall_clock()) else {
            return;
        };
        let (here, monotonic) = self.read_machine();
        let half = monotonic.saturating_sub(requested_at) / 2;
        let (clock, at) = (clock.as_millis(), requested_at.saturating_add(half));
        let mut time = self.lock();
        let is_first = !time.is_shared;
        if is_first {
            *time = SteadyTime {
                ahead: Some(here.saturating_sub(monotonic)),
                jumped: None,
                is_shared: true,
            };
        }
        let difference = time.now(at).abs_diff(clock);
        let differs = difference > TOLERANCE_MS.saturating_add(half).unsigned_abs();
        if is_first && differs {
            time.ahead = None;
        }
        if differs || time.jumped.is_some() {
            time.read(clock, at);
        }
    }

    /// Reads the database's clock again: clocks may be adjusted while a server runs.
    pub(crate) async fn refresh(&self, store: &Store) -> Result<(), onward_store::Error> {
        if !self.environment.is_wall_clock() || !store.is_on_server() {
            return Ok(());
        }
        let (_, requested_at) = self.read_machine();
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
        let (_, requested_at) = self.read_machine();
        let read = store.read(&tenant, |tx| {
            Box::pin(async { Tenants(tx).own_tenant_and_clock().await })
        });
        let (current, clock) = match read.await {
            Ok(found) => found,
            Err(why) if is_of_one_node(store, &why).await => return self.refresh(store).await,
            Err(why) => return Err(why),
        };
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
    match known.await {
        Ok(Some(_)) => Ok(()),
        Err(why) if is_of_one_node(store, &why).await => Ok(()),
        Err(why) => Err(why),
        Ok(None) => Err(onward_store::Error::unavailable(
            format_args!("tenant `{tenant}` does not exist"),
            Hint::for_operator(
                "create it with `onward tenant create`, or set another one with `--tenant`",
            ),
        )),
    }
}

/// Whether a node of a distributed database does not respond although others do: then the database is
/// opened, because the tenants on the other nodes can work.
async fn is_of_one_node(store: &Store, why: &onward_store::Error) -> bool {
    matches!(why, onward_store::Error::Unavailable { .. })
        && matches!(store.partial_outage().await, Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that was read as 1,000,000 at the monotonic time 0.
    fn steady() -> SteadyTime {
        let mut time = SteadyTime::default();
        time.read(1_000_000, 0);
        time
    }

    const HOURS: i64 = 8 * 3_600_000;

    #[test]
    fn ignores_a_jump_that_does_not_last() {
        let mut time = steady();
        for monotonic in (1_000..SETTLE_MS).step_by(1_000) {
            time.read(1_000_000 + monotonic + HOURS, monotonic);
            assert_eq!(time.now(monotonic), 1_000_000 + monotonic);
            assert!(time.jumped.is_some());
        }
        time.read(1_000_000 + SETTLE_MS, SETTLE_MS);
        assert_eq!(time.now(SETTLE_MS), 1_000_000 + SETTLE_MS);
        assert!(time.jumped.is_none());
    }

    #[test]
    fn follows_a_jump_that_lasts_in_either_direction() {
        for by in [HOURS, -HOURS] {
            let mut time = steady();
            time.read(1_000_000 + by, 0);
            time.read(1_000_000 + by + SETTLE_MS, SETTLE_MS);
            assert_eq!(time.now(SETTLE_MS), 1_000_000 + by + SETTLE_MS);
            assert!(time.jumped.is_none());
        }
    }

    #[test]
    fn a_second_jump_settles_separately() {
        let mut time = steady();
        time.read(1_000_000 + HOURS, 0);
        time.read(1_000_000 - HOURS, SETTLE_MS);
        assert_eq!(time.now(SETTLE_MS), 1_000_000 + SETTLE_MS);
        assert!(time.jumped.is_some());
    }

    #[test]
    fn follows_small_adjustments() {
        let mut time = steady();
        time.read(1_000_000 + JUMP_MS, 0);
        assert_eq!(time.now(0), 1_000_000 + JUMP_MS);
        time.read(1_000_000, 0);
        assert_eq!(time.now(0), 1_000_000);
    }
}
