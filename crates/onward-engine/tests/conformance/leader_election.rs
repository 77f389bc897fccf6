//! Leader election: one of several processes on a database sweeps; when it exits, another takes
//! over.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onward_core::Timestamp;
use onward_engine::Engine;
use onward_engine::engine::Settings;
use onward_engine::environment::Environment;
use onward_store::{Lead, Options, Store};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::environment::SimulatedEnvironment;
use crate::harness::Harness;
use crate::on_both_databases;

/// Longer than any event here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

async fn within_timeout<T>(future: impl Future<Output = T>) -> T {
    timeout(TIMEOUT, future).await.expect("finished in time")
}

/// Counts reads of the clock: the leader reads it, a follower does not.
struct CountingClock {
    inner: Arc<SimulatedEnvironment>,
    reads: AtomicU64,
    was_read: Notify,
}

impl Environment for CountingClock {
    fn now(&self) -> Timestamp {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.was_read.notify_one();
        self.inner.now()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.inner.fill_random(bytes);
    }
}

struct Sweeper {
    clock: Arc<CountingClock>,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Sweeper {
    async fn start(harness: &Harness) -> Self {
        let clock = Arc::new(CountingClock {
            inner: Arc::clone(&harness.environment),
            reads: AtomicU64::new(0),
            was_read: Notify::new(),
        });
        let settings = Settings {
            environment: Arc::<CountingClock>::clone(&clock),
            ..Settings::default()
        };
        let engine = Engine::open(&harness.database.address(), settings)
            .await
            .unwrap();
        clock.reads.store(0, Ordering::SeqCst);
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(async move { engine.run_sweeper(stopped).await });
        Self { clock, stop, task }
    }

    fn clock_reads(&self) -> u64 {
        self.clock.reads.load(Ordering::SeqCst)
    }

    /// Waits until this process sweeps.
    async fn wait_for_sweep(&self) {
        within_timeout(async {
            while self.clock_reads() == 0 {
                self.clock.was_read.notified().await;
            }
        })
        .await;
    }
}

/// Creates a plan with a stalled step and waits until a sweep has marked the plan.
async fn wait_for_marked_plan(harness: &Harness) {
    let mut draft = harness.draft(1);
    draft.stall_threshold = Some(Duration::from_millis(500));
    let plan = harness.create(draft).await;
    harness.claim(plan.id).await;
    harness.advance(Duration::from_millis(501));
    let mut changes = harness.engine.subscribe();
    within_timeout(async {
        while harness.plan_status(plan.id).await.as_str() != "stalled" {
            // On SQLite the feed does not report changes of another engine, so poll.
            drop(timeout(Duration::from_millis(20), changes.recv()).await);
        }
    })
    .await;
    let events = harness.audit_trail(plan.id).await;
    assert_eq!(
        events.iter().filter(|name| *name == "plan_stalled").count(),
        1
    );
}

async fn a_second_process_sweeps_after_the_first_stops(harness: &Harness) {
    let first = Sweeper::start(harness).await;
    first.wait_for_sweep().await;
    let second = Sweeper::start(harness).await;
    wait_for_marked_plan(harness).await;
    assert_eq!(second.clock_reads(), 0, "the follower does not sweep");
    first.stop.send(true).unwrap();
    within_timeout(first.task).await.unwrap();
    second.wait_for_sweep().await;
    wait_for_marked_plan(harness).await;
    second.stop.send(true).unwrap();
    within_timeout(second.task).await.unwrap();
}

async fn leadership_passes_on_when_the_leader_is_aborted(harness: &Harness) {
    let first = Sweeper::start(harness).await;
    first.wait_for_sweep().await;
    let second = Sweeper::start(harness).await;
    first.task.abort();
    assert!(within_timeout(first.task).await.is_err());
    second.wait_for_sweep().await;
    second.stop.send(true).unwrap();
    within_timeout(second.task).await.unwrap();
}

async fn a_follower_can_be_stopped(harness: &Harness) {
    let first = Sweeper::start(harness).await;
    first.wait_for_sweep().await;
    let second = Sweeper::start(harness).await;
    second.stop.send(true).unwrap();
    within_timeout(second.task).await.unwrap();
    first.stop.send(true).unwrap();
    within_timeout(first.task).await.unwrap();
    let third = Sweeper::start(harness).await;
    third.wait_for_sweep().await;
    third.stop.send(true).unwrap();
    within_timeout(third.task).await.unwrap();
}

async fn only_one_store_holds_the_leader_lock(harness: &Harness) {
    let open = async || {
        let opened = Store::open(&harness.database.address(), Options::default()).await;
        opened.expect("store was opened")
    };
    let (one, other) = (open().await, open().await);
    let held = within_timeout(one.lead(Lead::Sweep)).await.unwrap();
    assert!(!held.is_lost());
    let waiting = tokio::spawn(async move { other.lead(Lead::Sweep).await.map(drop) });
    harness.plan(1).await;
    assert!(!waiting.is_finished());
    drop(held);
    within_timeout(waiting).await.unwrap().unwrap();
}

on_both_databases![exclusive:
    a_second_process_sweeps_after_the_first_stops,
    leadership_passes_on_when_the_leader_is_aborted,
    a_follower_can_be_stopped,
    only_one_store_holds_the_leader_lock,
];
