//! Machines whose clocks differ, on one database: what one of them records, another judges. A file is
//! used on one machine, so this is about PostgreSQL alone.

use std::sync::Arc;
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::CallStatus;
use onward_engine::engine::Settings;
use onward_engine::ledger::Begins;
use onward_engine::world::{System, World};
use onward_engine::{Address, Caller, Engine};
use onward_testbed::Cluster;

use crate::ledger::{call, heard};

const MINUTE: i64 = 60_000;

/// A machine whose clock is ahead by so many milliseconds.
struct Ahead {
    by: i64,
    shares_time: bool,
}

impl World for Ahead {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(System.now().as_millis() + self.by)
    }

    fn dice(&self, bytes: &mut [u8]) {
        System.dice(bytes);
    }

    fn shares_time(&self) -> bool {
        self.shares_time
    }
}

async fn machine(address: &Address, by: i64, shares_time: bool) -> Engine {
    let settings = Settings {
        world: Arc::new(Ahead { by, shares_time }),
        ..Settings::default()
    };
    Engine::open(address, settings).await.unwrap()
}

#[tokio::test]
async fn a_watcher_whose_clock_differs_convicts_no_call_and_forgets_none() {
    let address = Address::parse(&Cluster::shared().database()).unwrap();
    let behind = machine(&address, -10 * MINUTE, true).await;
    let ahead = machine(&address, 10 * MINUTE, true).await;
    let me = Caller::local("me");
    for (recorder, watcher) in [(&behind, &ahead), (&ahead, &behind)] {
        let new = call("a", None);
        let recorded = recorder.record_call(&me, heard(), None, new, Begins::Running);
        let recorded = recorded.await.unwrap();
        let given_up = watcher.recover_session(&me, "one").await.unwrap();
        assert_eq!(given_up, [], "it began a moment ago");
        let mut watching = watcher.watcher();
        let round = watcher.sweep(&mut watching).await.unwrap();
        assert_eq!(round.calls.sessions, []);
        // It is looked at when its time is over by any clock, and not ten minutes later.
        let stale_at = recorded
            .started_at
            .and_then(|at| at.checked_add(Duration::from_secs(150)))
            .unwrap();
        let next_at = round.next_at.unwrap();
        assert!(next_at <= stale_at.next(), "{next_at} {stale_at}");
        assert!(stale_at.since(watcher.now()) > Duration::from_secs(90));
        assert!(stale_at.since(watcher.now()) <= Duration::from_secs(151));
        let closed = recorder.close_call(&me, recorded.key).await.unwrap();
        assert_eq!(closed.status(), CallStatus::Interrupted);
    }
    behind.close().await;
    ahead.close().await;
}

#[tokio::test]
async fn a_time_that_was_made_up_is_left_alone() {
    let address = Address::parse(&Cluster::shared().database()).unwrap();
    let engine = machine(&address, 10 * MINUTE, false).await;
    let off = engine.now().since(System.now());
    assert!(off > Duration::from_secs(9 * 60), "{off:?}");
    engine.close().await;
}
