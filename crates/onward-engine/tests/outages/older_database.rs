//! A database that goes back in time under running servers: a backup was restored, or a failover
//! lost commits. A server that remembers a lost version of a plan must not mistake another version
//! with the same sequence number for it.

use std::time::{Duration, Instant};

use onward_core::{Code, PlanId, PlanStatus};
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::submit::Submission;
use onward_engine::{Caller, Engine, Error};
use onward_store as store;
use onward_testbed::{Backend, Cluster, Rng, psql};

use crate::agents::database::TestDatabase;
use crate::agents::plans;
use crate::{LIMIT, within_limit};

/// A plan with two claimed steps, and the server that has worked on it.
struct Work {
    engine: Engine,
    caller: Caller,
    plan: PlanId,
    first: AssignedStep,
    second: AssignedStep,
}

impl Work {
    async fn begin(database: &TestDatabase) -> Self {
        let (engine, caller) = (database.open().await, Caller::local("me"));
        let steps = (1..=3).map(|_| plans::step(&engine, "Look.")).collect();
        let id = engine.new_plan_id();
        let command = onward_core::command::CreatePlan::new(id, "Tides", "Why?", steps);
        let created = engine.create_plan(&caller, command, None).await.unwrap();
        let plan = created.created.plan;
        let first = claim(&engine, &caller, plan).await;
        let second = claim(&engine, &caller, plan).await;
        Self {
            engine,
            caller,
            plan,
            first,
            second,
        }
    }

    /// The commit that the database loses.
    async fn submit_the_first_step(&self) {
        let submitted = submit(&self.engine, &self.caller, &self.first).await;
        submitted.expect("step is in progress");
    }

    /// Another server writes another version with the same sequence number; then this server submits
    /// a result, which must be rejected.
    async fn check(&self, database: &TestDatabase, lost: &str, seq: impl Fn() -> String) {
        let other = database.open().await;
        let abandoned = other.abandon_plan(&self.caller, self.plan, None).await;
        assert_eq!(abandoned.unwrap(), PlanStatus::Failed);
        assert_eq!(seq(), lost, "the same sequence number in both histories");
        let deadline = Instant::now() + LIMIT;
        let rejected = loop {
            match submit(&self.engine, &self.caller, &self.second).await {
                // Connections to the lost database break.
                Err(error) if error.code() == Code::Unavailable => {
                    assert!(Instant::now() < deadline, "{error}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                submitted => break submitted.expect_err("the plan has failed"),
            }
        };
        assert_eq!(rejected.code(), Code::PlanIsTerminal, "{rejected}");
        for engine in [&self.engine, &other] {
            let status = engine.status(&self.caller, self.plan, None).await.unwrap();
            assert_eq!(status.sheet.head.status(), PlanStatus::Failed);
            let verified = engine.verify(&self.caller).await.unwrap();
            assert_eq!(verified.inconsistencies, []);
        }
    }
}

async fn claim(engine: &Engine, caller: &Caller, plan: PlanId) -> AssignedStep {
    match engine.next_step(caller, plan, None, false).await.unwrap() {
        NextStep::Started(step) => *step,
        other => panic!("no step was assigned: {other:?}"),
    }
}

async fn submit(engine: &Engine, caller: &Caller, step: &AssignedStep) -> Result<(), Error> {
    let submission = Submission {
        step: step.step,
        result: plans::result(&mut Rng::new(1), "done"),
        token: Some(step.token.clone()),
        session: None,
        claim_next: false,
    };
    within_limit(engine.submit(caller, submission))
        .await
        .map(|_| ())
}

fn run(url: &str, sql: &str) -> String {
    psql(url, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The tables that a transition writes.
const TABLES: [&str; 4] = ["plans", "steps", "events", "due"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_a_result_based_on_a_commit_that_a_failover_lost() {
    let database = TestDatabase::create(Backend::Postgres);
    let url = database.address_text();
    let work = Work::begin(&database).await;
    for table in TABLES {
        run(
            &url,
            &format!("CREATE TABLE standby_{table} AS TABLE {table}"),
        );
    }
    work.submit_the_first_step().await;
    let seq = format!("SELECT seq FROM plans WHERE plan_id = '{}'", work.plan);
    let lost = run(&url, &seq);
    // The standby without the last commit takes over.
    for table in TABLES {
        let replace = format!("DELETE FROM {table}; INSERT INTO {table} TABLE standby_{table}");
        run(&url, &replace);
    }
    work.check(&database, &lost, || run(&url, &seq)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_a_result_based_on_a_commit_before_a_restore_of_a_server() {
    let cluster = Cluster::start();
    let database = TestDatabase::create_on(&cluster);
    let (url, admin) = (database.address_text(), cluster.url("postgres"));
    let name = run(&url, "SELECT current_database()");
    let work = Work::begin(&database).await;
    let disconnect = || {
        run(
            &admin,
            &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"),
        );
        let sessions = format!("SELECT pid FROM pg_stat_activity WHERE datname = '{name}'");
        let deadline = Instant::now() + LIMIT;
        while !run(&admin, &sessions).is_empty() {
            assert!(Instant::now() < deadline, "sessions remain");
            let end = format!("SELECT count(pg_terminate_backend(pid)) FROM ({sessions}) AS open");
            run(&admin, &end);
        }
    };
    disconnect();
    run(&admin, &format!("CREATE DATABASE backup TEMPLATE {name}"));
    run(
        &admin,
        &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"),
    );
    let deadline = Instant::now() + LIMIT;
    while let Err(error) = submit(&work.engine, &work.caller, &work.first).await {
        assert!(Instant::now() < deadline, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let seq = format!("SELECT seq FROM plans WHERE plan_id = '{}'", work.plan);
    let lost = run(&url, &seq);
    disconnect();
    run(&admin, &format!("DROP DATABASE {name}"));
    run(&admin, &format!("ALTER DATABASE backup RENAME TO {name}"));
    work.check(&database, &lost, || run(&url, &seq)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_a_result_based_on_a_commit_before_a_restore_of_a_file() {
    let database = TestDatabase::create(Backend::Sqlite);
    let path = std::path::PathBuf::from(database.address_text());
    let work = Work::begin(&database).await;
    let backup = path.with_extension("backup");
    work.engine.back_up(backup.clone()).await.unwrap();
    work.submit_the_first_step().await;
    let seq = || {
        let file = rusqlite::Connection::open(&path).unwrap();
        let seq = file.query_row("SELECT seq FROM plans", [], |row| row.get::<_, i64>(0));
        seq.unwrap().to_string()
    };
    let lost = seq();
    let restored = store::restore(&database.address, backup, "lost".to_owned()).await;
    restored.expect("backup was restored");
    work.check(&database, &lost, seq).await;
}
