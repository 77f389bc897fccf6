//! Leader election: one of several processes on a database sweeps; when it exits, another takes
//! over.

use std::future::Future;
use std::time::Duration;

use onward_store::{Lead, Options, Store};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::harness::Harness;
use crate::on_both_databases;

/// Longer than any event here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

async fn within_timeout<T>(future: impl Future<Output = T>) -> T {
    timeout(TIMEOUT, future).await.expect("finished in time")
}

/// A process that sweeps when no other one does.
struct Sweeper {
    /// Number of its sweeps.
    rounds: watch::Receiver<u64>,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Sweeper {
    async fn start(harness: &Harness) -> Self {
        let engine = harness.another_engine().await;
        let (stop, stopped) = watch::channel(false);
        let (count, rounds) = watch::channel(0);
        let task = tokio::spawn(async move {
            let on_round = |_: &_| count.send_modify(|count| *count += 1);
            engine.run_sweeper_with(stopped, on_round).await;
        });
        Self { rounds, stop, task }
    }

    /// Waits until this process sweeps.
    async fn wait_for_sweep(&mut self) {
        let swept = self.rounds.wait_for(|count| *count > 0);
        within_timeout(swept).await.expect("the process runs");
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
    let mut first = Sweeper::start(harness).await;
    first.wait_for_sweep().await;
    let mut second = Sweeper::start(harness).await;
    wait_for_marked_plan(harness).await;
    assert_eq!(*second.rounds.borrow(), 0, "the follower does not sweep");
    first.stop.send(true).unwrap();
    within_timeout(first.task).await.unwrap();
    second.wait_for_sweep().await;
    wait_for_marked_plan(harness).await;
    second.stop.send(true).unwrap();
    within_timeout(second.task).await.unwrap();
}

async fn leadership_passes_on_when_the_leader_is_aborted(harness: &Harness) {
    let mut first = Sweeper::start(harness).await;
    first.wait_for_sweep().await;
    let mut second = Sweeper::start(harness).await;
    first.task.abort();
    assert!(within_timeout(first.task).await.is_err());
    second.wait_for_sweep().await;
    second.stop.send(true).unwrap();
    within_timeout(second.task).await.unwrap();
}

async fn a_follower_can_be_stopped(harness: &Harness) {
    let mut first = Sweeper::start(harness).await;
    first.wait_for_sweep().await;
    let second = Sweeper::start(harness).await;
    second.stop.send(true).unwrap();
    within_timeout(second.task).await.unwrap();
    first.stop.send(true).unwrap();
    within_timeout(first.task).await.unwrap();
    let mut third = Sweeper::start(harness).await;
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
