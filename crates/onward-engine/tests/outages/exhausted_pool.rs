//! A PostgreSQL pool whose connections are all in use.

use std::time::{Duration, Instant};

use onward_core::Code;
use onward_engine::engine::Settings;
use onward_engine::{Caller, Engine};
use onward_testbed::{Backend, psql, psql_each};

use crate::agents::database::TestDatabase;
use crate::{LIMIT, within_limit};

pub const HOLD: &str = "select pg_sleep(60)";
pub const RELEASE: &str = "select pg_terminate_backend(pid) from pg_stat_activity \
    where datname = current_database() and query = 'select pg_sleep(60)'";
pub const HOLDERS: &str = "select count(*) from pg_stat_activity \
    where datname = current_database() and query = 'select pg_sleep(60)'";
const BLOCKED: &str = "select count(*) from pg_stat_activity \
    where datname = current_database() and wait_event_type = 'Lock'";

/// Waits until the query returns `1`.
pub async fn wait_for_one(url: &str, query: &str) {
    let deadline = Instant::now() + LIMIT;
    while psql(url, query).as_deref() != Ok("1") {
        assert!(Instant::now() < deadline, "{query}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exhausted_pool_is_reported_as_rate_limited() {
    let database = TestDatabase::create(Backend::Postgres);
    let url = database.address_text();
    let settings = Settings {
        connections: Some(1),
        ..Settings::default()
    };
    let engine = Engine::open(&database.address, settings).await.unwrap();
    let caller = Caller::local("me");
    let lock = {
        let url = url.clone();
        let lock = "begin; lock table plans in access exclusive mode";
        std::thread::spawn(move || psql_each(&url, &[lock, HOLD]))
    };
    wait_for_one(&url, HOLDERS).await;
    let waiting = {
        let (engine, caller) = (engine.clone(), caller.clone());
        tokio::spawn(async move { engine.count_plans(&caller).await })
    };
    wait_for_one(&url, BLOCKED).await;
    let rejected = within_limit(engine.count_plans(&caller)).await;
    let rejected = rejected.expect_err("the only connection is in use");
    assert_eq!(rejected.code(), Code::RateLimited, "{rejected}");
    psql(&url, RELEASE).unwrap();
    lock.join()
        .unwrap()
        .expect_err("the session was terminated");
    within_limit(waiting).await.unwrap().unwrap();
    within_limit(engine.count_plans(&caller)).await.unwrap();
}
