//! Clock skew between machines that share a PostgreSQL database: one machine records a tool call
//! and another decides whether it timed out. An SQLite file is used by one machine only.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::CallStatus;
use onward_engine::engine::Settings;
use onward_engine::environment::Environment;
use onward_engine::machine::SystemEnvironment;
use onward_engine::tool_calls::InitialState;
use onward_engine::{Address, Caller, Engine};
use onward_testbed::Cluster;

use crate::tool_calls::{call, source};

const MINUTE: i64 = 60_000;

/// An environment whose clock is ahead of the system clock by `by` milliseconds.
struct SkewedClock {
    by: i64,
    shares_time: bool,
}

impl Environment for SkewedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemEnvironment.now().as_millis() + self.by)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        SystemEnvironment.fill_random(bytes);
    }

    fn is_wall_clock(&self) -> bool {
        self.shares_time
    }
}

async fn open_engine(address: &Address, by: i64, shares_time: bool) -> Engine {
    let settings = Settings {
        environment: Arc::new(SkewedClock { by, shares_time }),
        ..Settings::default()
    };
    Engine::open(address, settings).await.unwrap()
}

#[tokio::test]
async fn clock_skew_neither_expires_a_running_call_early_nor_delays_its_timeout() {
    let address = Address::parse(&Cluster::shared().database()).unwrap();
    let behind = open_engine(&address, -10 * MINUTE, true).await;
    let ahead = open_engine(&address, 10 * MINUTE, true).await;
    let me = Caller::local("me");
    for (recorder, checker) in [(&behind, &ahead), (&ahead, &behind)] {
        let new = call("a", None);
        let recorded = recorder.record_call(&me, source(), None, new, InitialState::Running);
        let recorded = recorded.await.unwrap();
        let interrupted = checker.recover_session(&me, "one").await.unwrap();
        assert_eq!(interrupted, [], "the call has just started");
        let mut watcher = checker.watcher();
        let round = checker.sweep(&mut watcher).await.unwrap();
        assert_eq!(round.calls.sessions, []);
        // The next check is at the timeout by the shared clock, not ten minutes later.
        let stale_at = recorded
            .started_at
            .and_then(|at| at.checked_add(Duration::from_secs(150)))
            .unwrap();
        let next_at = round.next_at.unwrap();
        assert!(next_at <= stale_at.next(), "{next_at} {stale_at}");
        assert!(stale_at.since(checker.now()) > Duration::from_secs(90));
        assert!(stale_at.since(checker.now()) <= Duration::from_secs(151));
        let closed = recorder.interrupt_call(&me, recorded.key).await.unwrap();
        assert_eq!(closed.status(), CallStatus::Interrupted);
    }
    behind.close().await;
    ahead.close().await;
}

/// An environment whose wall clock can be set while it is used.
struct AdjustableClock(AtomicI64);

impl Environment for AdjustableClock {
    fn now(&self) -> Timestamp {
        let by = self.0.load(Ordering::SeqCst);
        Timestamp::from_millis(SystemEnvironment.now().as_millis() + by)
    }

    fn monotonic(&self) -> Option<Duration> {
        SystemEnvironment.monotonic()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        SystemEnvironment.fill_random(bytes);
    }

    fn is_wall_clock(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn the_time_of_the_server_counts_while_the_local_clock_is_wrong() {
    let address = Address::parse(&Cluster::shared().database()).unwrap();
    let environment = Arc::new(AdjustableClock(AtomicI64::new(0)));
    let settings = Settings {
        environment: Arc::clone(&environment) as Arc<dyn Environment>,
        ..Settings::default()
    };
    let engine = Engine::open(&address, settings).await.unwrap();
    let mut watcher = engine.watcher();
    for by in [480 * MINUTE, -480 * MINUTE] {
        environment.0.store(by, Ordering::SeqCst);
        engine.sweep(&mut watcher).await.unwrap();
        let error = engine.now().as_millis() - SystemEnvironment.now().as_millis();
        assert!(error.abs() < MINUTE, "{error}");
        assert!((engine.clock_offset_ms() + by).abs() < MINUTE);
    }
    engine.close().await;
}

#[tokio::test]
async fn does_not_correct_a_clock_that_is_not_shared() {
    let address = Address::parse(&Cluster::shared().database()).unwrap();
    let engine = open_engine(&address, 10 * MINUTE, false).await;
    let skew = engine.now().since(SystemEnvironment.now());
    assert!(skew > Duration::from_secs(9 * 60), "{skew:?}");
    engine.close().await;
}
