//! Several processes with several agents on one plan, one project or one file. No step is claimed twice, no
//! result is applied twice, the plan completes, and no call fails. The checks use the recorded
//! history of every agent, not only the final state.
//!
//! Latencies are printed but not checked.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "tests report failures by panicking and have no documented API; each test crate uses \
              only a part of `agents`"
)]

#[path = "../agents/agents.rs"]
mod agents;
mod history_checks;
mod racer;
mod worker;

use std::time::{Duration, Instant};

use onward_core::budget::Budget;
use onward_core::{PlanId, PlanStatus};
use onward_engine::{Caller, Engine};
use onward_testbed::{Backend, Cluster, Rng, seed};

use agents::database::TestDatabase;
use agents::history::Record;
use agents::process::{Process, WorkerConfig};
use agents::{audit_trails, consistency, plans};

/// Time limit of a race.
const LIMIT: Duration = Duration::from_secs(120);

/// The task of agents that work on all plans of this project.
const PROJECT: &str = "race";

/// Each process is polled for this long before the next one.
const POLL: Duration = Duration::from_millis(20);

#[test]
fn four_processes_with_eight_agents_each_share_a_plan_on_sqlite() {
    share_one_plan(&TestDatabase::create(Backend::Sqlite), "SQLite");
}

#[test]
fn four_processes_with_eight_agents_each_share_a_plan_on_postgres() {
    on_postgres(|database| share_one_plan(database, "PostgreSQL"));
}

#[test]
fn four_processes_with_eight_agents_each_share_a_project_on_sqlite() {
    share_a_project(&TestDatabase::create(Backend::Sqlite), "SQLite");
}

#[test]
fn four_processes_with_eight_agents_each_share_a_project_on_postgres() {
    on_postgres(|database| share_a_project(database, "PostgreSQL"));
}

#[test]
fn four_processes_with_eight_agents_each_stay_within_a_budget_on_sqlite() {
    share_a_budget(&TestDatabase::create(Backend::Sqlite));
}

#[test]
fn four_processes_with_eight_agents_each_stay_within_a_budget_on_postgres() {
    on_postgres(share_a_budget);
}

#[test]
fn concurrent_requests_with_one_key_cause_no_errors_on_the_server() {
    on_postgres(create_with_one_key);
}

fn create_with_one_key(database: &TestDatabase) {
    block_on(async {
        let caller = Caller::local("creator");
        let engines = [database.open().await, database.open().await];
        for key in 0..10 {
            let calls = (0..16).map(|number| {
                let (engine, caller) = (engines[number % 2].clone(), caller.clone());
                let command = plans::branching(&engine, &mut Rng::new(key), "keyed", 3);
                let key = Some(format!("key {key}"));
                tokio::spawn(async move { engine.create_plan(&caller, command, key).await })
            });
            let mut created = Vec::new();
            for call in calls.collect::<Vec<_>>() {
                created.push(call.await.unwrap().unwrap().created.plan);
            }
            created.dedup();
            assert_eq!(created.len(), 1);
        }
    });
}

/// Runs a race on the distributed database, if there is one, otherwise on a private server, whose log
/// is checked. A distributed database reports a lost race as an error.
fn on_postgres(race: impl FnOnce(&TestDatabase)) {
    if Cluster::distributed().is_some() {
        return race(&TestDatabase::create(Backend::Postgres));
    }
    let cluster = Cluster::start();
    race(&TestDatabase::create_on(&cluster));
    assert_no_server_errors(&cluster);
}

/// Lost races are expected, so the server must not report them as errors.
fn assert_no_server_errors(cluster: &Cluster) {
    let log = cluster.log();
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("ERROR:")).collect();
    assert!(
        errors.is_empty(),
        "{} errors: {:#?}",
        errors.len(),
        errors.first()
    );
}

#[test]
fn eight_processes_with_separate_plans_share_a_file_without_errors() {
    let database = TestDatabase::create(Backend::Sqlite);
    let records = run_workers(&database, 8, 1, "");
    block_on(async {
        let (engine, caller) = (database.open().await, Caller::local("checker"));
        let summary = consistency::check(&engine, &caller, &records).await;
        assert_eq!((summary.plans, summary.unacknowledged), (8, 0));
        history_checks::assert_no_failures(&records);
        for plan in audit_trails::read(&engine, &caller).await.into_keys() {
            assert_completed(&engine, &caller, plan).await;
        }
    });
    history_checks::print_latencies("eight processes, one plan each", &records);
}

fn share_one_plan(database: &TestDatabase, name: &str) {
    let mut rng = Rng::new(seed());
    let plan = block_on(async {
        let (engine, caller) = (database.open().await, Caller::local("creator"));
        let command = plans::branching(&engine, &mut rng, "shared", 300);
        let new_plan = engine.create_plan(&caller, command, None);
        new_plan.await.unwrap().created.plan
    });
    let records = run_workers(database, 4, 8, &plan.to_string());
    block_on(async {
        let (engine, caller) = (database.open().await, Caller::local("checker"));
        let summary = consistency::check(&engine, &caller, &records).await;
        assert_eq!(summary.unacknowledged, 0, "every call got a response");
        let audit_trails = audit_trails::read(&engine, &caller).await;
        history_checks::assert_no_failures(&records);
        history_checks::assert_matches_audit_trail(&records, &audit_trails[&plan]);
        assert_completed(&engine, &caller, plan).await;
    });
    history_checks::print_latencies(&format!("{name}, four processes on one plan"), &records);
}

/// The agents stop when the budget is exhausted. Every claim is within it, and all are used.
fn share_a_budget(database: &TestDatabase) {
    const CLAIMS: u64 = 60;
    let mut rng = Rng::new(seed());
    let plan = block_on(async {
        let (engine, caller) = (database.open().await, Caller::local("creator"));
        let mut command = plans::branching(&engine, &mut rng, "limited", 200);
        command.budget = Some(Budget {
            max_attempts: Some(CLAIMS),
            ..Budget::default()
        });
        let new_plan = engine.create_plan(&caller, command, None);
        new_plan.await.unwrap().created.plan
    });
    let records = run_workers(database, 4, 8, &plan.to_string());
    block_on(async {
        let (engine, caller) = (database.open().await, Caller::local("checker"));
        let summary = consistency::check(&engine, &caller, &records).await;
        assert_eq!(summary.unacknowledged, 0, "every call got a response");
        history_checks::assert_no_failures(&records);
        let trail = &audit_trails::read(&engine, &caller).await[&plan];
        history_checks::assert_matches_audit_trail(&records, trail);
        let count = |name| {
            trail
                .iter()
                .filter(|entry| entry.event.name() == name)
                .count()
        };
        assert_eq!(count("step_started") as u64, CLAIMS);
        assert_eq!(count("budget_exhausted"), 1);
        let status = engine.status(&caller, plan, None).await.unwrap();
        assert_eq!(status.sheet.head.status(), PlanStatus::Stalled);
    });
}

/// The agents know only the project. Every plan of it completes, whichever agents found it.
fn share_a_project(database: &TestDatabase, name: &str) {
    let mut rng = Rng::new(seed());
    let plans = block_on(async {
        let (engine, caller) = (database.open().await, Caller::local("creator"));
        let mut plans = Vec::new();
        for number in 0..8_u8 {
            let mut command = plans::branching(&engine, &mut rng, "shared", 30);
            command.routing.project_key = Some(PROJECT.to_owned());
            command.routing.priority = number % 3;
            let new_plan = engine.create_plan(&caller, command, None);
            plans.push(new_plan.await.unwrap().created.plan);
        }
        plans
    });
    let records = run_workers(database, 4, 8, PROJECT);
    block_on(async {
        let (engine, caller) = (database.open().await, Caller::local("checker"));
        let summary = consistency::check(&engine, &caller, &records).await;
        assert_eq!(summary.unacknowledged, 0, "every call got a response");
        history_checks::assert_no_failures(&records);
        let audit_trails = audit_trails::read(&engine, &caller).await;
        for plan in plans {
            let records = history_checks::of_plan(&records, plan);
            history_checks::assert_matches_audit_trail(&records, &audit_trails[&plan]);
            assert_completed(&engine, &caller, plan).await;
        }
    });
    history_checks::print_latencies(&format!("{name}, four processes on a project"), &records);
}

/// Runs worker processes until all of them have exited.
fn run_workers(database: &TestDatabase, workers: u64, agents: u64, task: &str) -> Vec<Record> {
    let seed = seed();
    println!("ONWARD_SEED={seed}");
    let mut rng = Rng::new(seed);
    let configs = (0..workers).map(|number| WorkerConfig {
        name: format!("w{number}"),
        database: database.address_text(),
        seed: rng.next_u64(),
        agents,
        task: task.to_owned(),
    });
    let mut running: Vec<_> = configs.map(|config| Process::start(&config)).collect();
    let (mut records, deadline) = (Vec::new(), Instant::now() + LIMIT);
    while let Some(mut process) = running.pop() {
        // An agent whose call failed keeps its step, and the others would wait for it forever.
        if process.wait_until(POLL, history_checks::has_failure) || Instant::now() > deadline {
            history_checks::assert_no_failures(process.records());
            panic!("the workers did not exit within {LIMIT:?}");
        }
        if process.has_exited() {
            let output = process.wait_for_exit(LIMIT);
            let (status, stderr) = (output.status, &output.stderr);
            assert!(status.success(), "{status}\n{stderr}");
            records.extend(output.records);
        } else {
            running.insert(0, process);
        }
    }
    records
}

/// The plan is completed, all steps have ended, and their orders are consecutive.
async fn assert_completed(engine: &Engine, caller: &Caller, plan: PlanId) {
    let status = engine.status(caller, plan, None).await.unwrap();
    assert_eq!(status.sheet.head.status(), PlanStatus::Completed);
    let page = engine
        .list_steps(caller, plan, None, 0, 100_000)
        .await
        .unwrap();
    let orders: Vec<u32> = page.steps.iter().map(|step| step.order).collect();
    let consecutive: Vec<u32> = (1..).take(orders.len()).collect();
    assert_eq!(orders, consecutive);
    assert!(page.steps.iter().all(|step| step.status.is_terminal()));
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}
