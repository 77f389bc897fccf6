//! The sweep with more work than it can do in time, and with a plan that it cannot reach.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use onward_core::policy::OnStall;
use onward_core::watcher::{Watcher, WatcherPolicy};
use onward_core::{PlanId, PlanStatus};
use onward_engine::{Caller, Engine};
use onward_testbed::{Backend, Rng, psql, psql_each};

use crate::agents::database::TestDatabase;
use crate::agents::plans;
use crate::exhausted_pool::{HOLD, HOLDERS, RELEASE, wait_for_one};
use crate::{LIMIT, within_limit};

const THRESHOLD: Duration = Duration::from_secs(1);

/// Plans whose only claimed step is silent from now on.
async fn silent_plans(engine: &Engine, caller: &Caller, count: u64) -> Vec<PlanId> {
    let mut silent = Vec::new();
    for number in 0..count {
        let mut command = plans::branching(engine, &mut Rng::new(number), "silent", 1);
        command.stall_threshold = Some(THRESHOLD);
        command.on_stall = OnStall::Mark;
        let created = engine.create_plan(caller, command, None).await.unwrap();
        let plan = created.created.plan;
        engine.next_step(caller, plan, None, false).await.unwrap();
        silent.push(plan);
    }
    silent
}

async fn count_stalled(engine: &Engine, caller: &Caller, plans: &[PlanId]) -> usize {
    let mut stalled = 0;
    for plan in plans {
        let status = engine.status(caller, *plan, None).await.unwrap();
        stalled += usize::from(status.sheet.head.status() == PlanStatus::Stalled);
    }
    stalled
}

/// Sweeps, with a watcher that takes a short pause for a sleep, until all of these plans are marked.
async fn marks_all(database: &TestDatabase, plans: u64) {
    let (engine, caller) = (database.open().await, Caller::local("me"));
    let silent = silent_plans(&engine, &caller, plans).await;
    tokio::time::sleep(THRESHOLD).await;
    let policy = WatcherPolicy {
        tolerance: Duration::from_millis(300),
        grace: Duration::from_millis(100),
    };
    let mut watcher = Watcher::begin(policy, engine.now());
    let deadline = Instant::now() + LIMIT;
    let mut changed = HashSet::new();
    while changed.len() < silent.len() {
        assert!(Instant::now() < deadline, "rounds never act");
        let round = within_limit(engine.sweep(&mut watcher)).await.unwrap();
        assert_eq!(round.failed, []);
        changed.extend(round.changed.into_iter().map(|(_, plan)| plan));
    }
    assert_eq!(count_stalled(&engine, &caller, &silent).await, silent.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_that_is_longer_than_the_grace_period_acts_on_sqlite() {
    marks_all(&TestDatabase::create(Backend::Sqlite), 300).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_that_is_longer_than_the_grace_period_acts_on_postgres() {
    marks_all(&TestDatabase::create(Backend::Postgres), 300).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_plan_does_not_delay_the_others() {
    let database = TestDatabase::create(Backend::Postgres);
    let (engine, caller) = (database.open().await, Caller::local("me"));
    let silent = silent_plans(&engine, &caller, 6).await;
    let url = database.address_text();
    let lock = {
        let (url, plan) = (url.clone(), silent[0]);
        let lock = format!("begin; select 1 from plans where plan_id = '{plan}' for update");
        std::thread::spawn(move || psql_each(&url, &[&lock, HOLD]))
    };
    wait_for_one(&url, HOLDERS).await;
    let policy = WatcherPolicy {
        grace: Duration::ZERO,
        ..WatcherPolicy::default()
    };
    let mut watcher = Watcher::begin(policy, engine.now());
    let deadline = Instant::now() + LIMIT;
    let mut failed = Vec::new();
    while count_stalled(&engine, &caller, &silent[1..]).await < 5 {
        assert!(Instant::now() < deadline, "the others wait");
        let round = within_limit(engine.sweep(&mut watcher)).await.unwrap();
        failed.extend(round.failed.into_iter().map(|(_, plan, _)| plan));
    }
    failed.dedup();
    assert_eq!(failed, [silent[0]], "the report names the plan");
    psql(&url, RELEASE).unwrap();
    lock.join()
        .unwrap()
        .expect_err("the session was terminated");
    while count_stalled(&engine, &caller, &silent[..1]).await < 1 {
        assert!(Instant::now() < deadline, "it is never checked again");
        within_limit(engine.sweep(&mut watcher)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
