//! A PostgreSQL server that is started after Onward.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onward_engine::engine::Settings;
use onward_engine::{Caller, Engine, Error, Subject};
use onward_testbed::{Cluster, Rng};

use crate::agents::database::TestDatabase;
use crate::agents::plans;
use crate::{LIMIT, assert_unavailable, within_limit};

fn settings(tenant: &str) -> Settings {
    Settings {
        start_unavailable: Some(Arc::from(tenant)),
        ..Settings::default()
    }
}

/// Repeats a call until the server is available.
async fn until_available<T>(call: impl AsyncFn() -> Result<T, Error>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        match within_limit(call()).await {
            Ok(result) => return result,
            Err(error) => assert_unavailable(&error),
        }
        assert!(Instant::now() < deadline, "the server is available");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_opened_before_the_server_starts_works_once_it_is_available() {
    let cluster = Cluster::start();
    // The database has no schema yet.
    let database = TestDatabase::create_on(&cluster);
    cluster.stop();
    let opened = within_limit(Engine::open(&database.address, Settings::default())).await;
    assert_unavailable(&opened.err().expect("a command fails immediately"));
    let engine = within_limit(Engine::open(&database.address, settings("local"))).await;
    let engine = engine.expect("a server starts");
    let unknown = within_limit(Engine::open(&database.address, settings("absent"))).await;
    let unknown = unknown.expect("a server starts");
    let caller = Caller::local("me");
    for _ in 0..3 {
        let counted = within_limit(engine.count_plans(&caller)).await;
        assert_unavailable(&counted.expect_err("server is stopped"));
    }
    let mut changes = engine.subscribe();
    cluster.restart();
    let changed = within_limit(changes.recv()).await.unwrap();
    assert_eq!(changed.what, Subject::All, "subscribers read again");
    until_available(async || engine.count_plans(&caller).await).await;
    let command = plans::branching(&engine, &mut Rng::new(1), "later", 3);
    engine.create_plan(&caller, command, None).await.unwrap();

    let counted = within_limit(unknown.count_plans(&caller)).await;
    assert_unavailable(&counted.expect_err("the tenant does not exist"));
    engine.create_tenant("absent").await.unwrap();
    until_available(async || unknown.count_plans(&caller).await).await;
}
