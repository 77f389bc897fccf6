//! Clock skew between machines that share a PostgreSQL database: one machine records a tool call
//! and another decides whether it timed out. An SQLite file is used by one machine only.

use std::sync::Arc;
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

#[tokio::test]
async fn does_not_correct_a_clock_that_is_not_shared() {
    let address = Address::parse(&Cluster::shared().database()).unwrap();
    let engine = open_engine(&address, 10 * MINUTE, false).await;
    let skew = engine.now().since(SystemEnvironment.now());
    assert!(skew > Duration::from_secs(9 * 60), "{skew:?}");
    engine.close().await;
}
