//! A database file that another program has locked, and a write queue that does not advance.

use std::time::Instant;

use onward_engine::next_step::NextStep;
use onward_engine::{Address, Caller, Engine};
use onward_testbed::{Backend, Rng};

use crate::agents::database::TestDatabase;
use crate::agents::plans;
use crate::{assert_unavailable, within_limit};

/// Another connection with an open write transaction.
struct WriteLock(rusqlite::Connection);

impl WriteLock {
    fn acquire(database: &TestDatabase) -> Self {
        let Address::File(path) = &database.address else {
            panic!("the database is not a file");
        };
        let other = rusqlite::Connection::open(path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(other)
    }

    fn release(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_to_a_locked_file_fail_within_the_limit_and_succeed_after_its_release() {
    let database = TestDatabase::create(Backend::Sqlite);
    let (engine, caller) = (database.open().await, Caller::local("me"));
    let command = plans::branching(&engine, &mut Rng::new(1), "locked", 20);
    let plan = engine.create_plan(&caller, command, None).await.unwrap();
    let plan = plan.created.plan;

    let lock = WriteLock::acquire(&database);
    let since = Instant::now();
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let (engine, caller) = (engine.clone(), caller.clone());
            tokio::spawn(async move { engine.next_step(&caller, plan, None, false).await })
        })
        .collect();
    within_limit(engine.status(&caller, plan, None))
        .await
        .unwrap();
    let opened = within_limit(Engine::open(&database.address, Default::default())).await;
    let other = opened.expect("engine was opened while the file is locked");
    within_limit(other.status(&caller, plan, None))
        .await
        .unwrap();
    for call in waiting {
        let result = within_limit(call).await.unwrap();
        assert_unavailable(&result.expect_err("file is locked"));
    }
    println!(
        "20 calls on a locked file failed after {:?}",
        since.elapsed()
    );
    lock.release();

    for engine in [&engine, &other] {
        let next = within_limit(engine.next_step(&caller, plan, None, false)).await;
        assert!(matches!(next.unwrap(), NextStep::Started(_)));
    }
    let checked = engine.verify(&caller).await.unwrap();
    assert_eq!(checked.inconsistencies, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_waits_for_a_short_lock() {
    let database = TestDatabase::create(Backend::Sqlite);
    let (engine, caller) = (database.open().await, Caller::local("me"));
    let command = plans::branching(&engine, &mut Rng::new(1), "locked", 20);
    let lock = WriteLock::acquire(&database);
    let mut request = Box::pin(engine.create_plan(&caller, command, None));
    let pending = tokio::time::timeout(std::time::Duration::from_millis(300), &mut request).await;
    assert!(
        pending.is_err(),
        "the call completed while the file was locked"
    );
    lock.release();
    within_limit(request).await.unwrap();
}

/// Locks the file of the write queue, as a stopped process at its head would.
fn block_write_queue(database: &TestDatabase) -> std::fs::File {
    let Address::File(path) = &database.address else {
        panic!("the database is not a file");
    };
    let mut name = path.clone().into_os_string();
    name.push("-queue");
    let queue = std::fs::File::options().append(true).open(name).unwrap();
    queue.lock().unwrap();
    queue
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_timed_out_in_a_blocked_queue_is_never_executed() {
    let database = TestDatabase::create(Backend::Sqlite);
    let (engine, caller) = (database.open().await, Caller::local("me"));
    let mut rng = Rng::new(1);
    let command = plans::branching(&engine, &mut rng, "before", 20);
    let before = engine.create_plan(&caller, command, None).await.unwrap();
    let blocked = block_write_queue(&database);
    let command = plans::branching(&engine, &mut rng, "timed out", 20);
    let timed_out = command.plan;
    let result = within_limit(engine.create_plan(&caller, command, None)).await;
    assert_unavailable(&result.expect_err("write queue is blocked"));
    within_limit(engine.status(&caller, before.created.plan, None))
        .await
        .expect("reads bypass the write queue");

    blocked.unlock().unwrap();
    let next = within_limit(engine.next_step(&caller, before.created.plan, None, false)).await;
    assert!(matches!(next.unwrap(), NextStep::Started(_)));
    let status = engine.status(&caller, timed_out, None).await;
    status.expect_err("plan was not created");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_closes_within_the_limit_while_the_write_queue_is_blocked() {
    let database = TestDatabase::create(Backend::Sqlite);
    let (engine, caller) = (database.open().await, Caller::local("me"));
    let blocked = block_write_queue(&database);
    let command = plans::branching(&engine, &mut Rng::new(1), "timed out", 20);
    let other = engine.clone();
    let request = tokio::spawn(async move { other.create_plan(&caller, command, None).await });
    within_limit(engine.close()).await;
    let result = within_limit(request).await.unwrap();
    assert_unavailable(&result.expect_err("write queue is blocked"));
    drop(blocked);
}
