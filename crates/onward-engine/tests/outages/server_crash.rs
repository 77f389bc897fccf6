//! A PostgreSQL server that crashes while agents work, and restarts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use onward_core::PlanStatus;
use onward_core::policy::OnStall;
use onward_engine::{Caller, Engine};
use onward_testbed::{Cluster, psql};
use onward_testbed::{Rng, seed};
use tokio::task::JoinSet;

use crate::agents::database::TestDatabase;
use crate::agents::history::{Record, RecordKind, RecordSink, Response};
use crate::agents::random_agent::{OpenPlans, RandomAgent};
use crate::agents::{consistency, plans};
use crate::{LIMIT, assert_failures_are_unavailable, assert_unavailable, within_limit};

/// The records of all agents of this process.
#[derive(Clone, Default)]
struct History(Arc<Mutex<Vec<Record>>>);

impl History {
    fn sink(&self) -> RecordSink {
        let history = self.clone();
        Arc::new(move |record| history.lock().push(record))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for this number of further records that satisfy the predicate.
    async fn wait_for(&self, count: usize, predicate: fn(&Record) -> bool) {
        let deadline = Instant::now() + 2 * LIMIT;
        let from = self.lock().len();
        loop {
            let records = self.lock()[from..].to_vec();
            if records.iter().filter(|record| predicate(record)).count() >= count {
                return;
            }
            assert!(Instant::now() < deadline, "too few records: {records:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn is_claim_or_completion(record: &Record) -> bool {
    matches!(
        record.kind,
        RecordKind::Response(Response::Completed { .. } | Response::Claimed { .. })
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_continue_without_loss_after_the_server_restarts() {
    let cluster = Cluster::start();
    let database = TestDatabase::create_on(&cluster);
    let engine = database.open().await;
    let (end, stop) = tokio::sync::watch::channel(false);
    let sweeper = engine.clone();
    let sweeper = tokio::spawn(async move { sweeper.run_sweeper(stop).await });
    let (history, open, mut rng) = (History::default(), OpenPlans::default(), Rng::new(seed()));
    let sink = history.sink();
    let mut agents = JoinSet::new();
    for number in 0..6 {
        let rng = Rng::new(rng.next_u64());
        agents.spawn(RandomAgent::new(&engine, format!("a{number}"), rng, &sink, &open).work());
    }
    let caller = Caller::local("checker");
    for _ in 0..2 {
        history.wait_for(30, is_claim_or_completion).await;
        cluster.stop();
        let checked = within_limit(engine.verify(&caller)).await;
        assert_unavailable(&checked.expect_err("server is stopped"));
        let command = plans::branching(&engine, &mut rng, "stopped", 3);
        let new_plan = within_limit(engine.create_plan(&caller, command, None)).await;
        assert_unavailable(&new_plan.expect_err("server is stopped"));
        history.wait_for(20, Record::is_failure).await;
        cluster.restart();
        history.wait_for(30, is_claim_or_completion).await;
    }
    agents.shutdown().await;
    let records = std::mem::take(&mut *history.lock());
    for record in &records {
        assert!(Duration::from_micros(record.micros) < LIMIT, "{record:?}");
    }
    assert_failures_are_unavailable(&records);
    let summary = consistency::check(&engine, &caller, &records).await;
    let longest = records
        .iter()
        .map(|record| record.micros)
        .max()
        .unwrap_or(0);
    println!(
        "two crashes: {summary:?}, the longest call took {} ms",
        longest / 1000
    );
    wait_for_leader(&database).await;
    assert_sweeper_marks_a_stall(&engine, &caller).await;
    end.send_replace(true);
    within_limit(sweeper).await.unwrap();
}

/// Waits until a sweeper holds the lease.
async fn wait_for_leader(database: &TestDatabase) {
    let query = "select count(*) from leases where duty = 'sweep' \
        and expires_at > extract(epoch from clock_timestamp()) * 1000";
    let deadline = Instant::now() + LIMIT;
    while psql(&database.address_text(), query).as_deref() != Ok("1") {
        assert!(Instant::now() < deadline, "no sweeper became leader");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The sweeper marks a step that stalls now.
async fn assert_sweeper_marks_a_stall(engine: &Engine, caller: &Caller) {
    let mut command = plans::branching(engine, &mut Rng::new(1), "stalling", 3);
    command.stall_threshold = Some(Duration::from_millis(20));
    command.on_stall = OnStall::Mark;
    let plan = engine.create_plan(caller, command, None).await.unwrap();
    let plan = plan.created.plan;
    engine.next_step(caller, plan, None, false).await.unwrap();
    let deadline = Instant::now() + LIMIT;
    loop {
        let status = engine.status(caller, plan, None).await.unwrap();
        if status.sheet.head.status() == PlanStatus::Stalled {
            return;
        }
        assert!(Instant::now() < deadline, "not marked: {status:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_sweeper_becomes_leader_again_after_a_server_restart() {
    let cluster = Cluster::start();
    let database = TestDatabase::create_on(&cluster);
    let engine = database.open().await;
    let (end, stop) = tokio::sync::watch::channel(false);
    let sweeper = engine.clone();
    let sweeper = tokio::spawn(async move { sweeper.run_sweeper(stop).await });
    wait_for_leader(&database).await;
    cluster.restart();
    wait_for_leader(&database).await;
    assert_sweeper_marks_a_stall(&engine, &Caller::local("checker")).await;
    end.send_replace(true);
    within_limit(sweeper).await.unwrap();
}
