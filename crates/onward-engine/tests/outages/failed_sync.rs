//! A disk that fails to sync the write-ahead log (an injected `EIO`). The system may report the next
//! sync as successful although the data is not on disk, so nothing is acknowledged until the file
//! was opened again and the content of the log is in the database.

use std::path::{Path, PathBuf};
use std::process::Command;

use onward_core::PlanId;
use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine, Error, Faults, SyncMode};
use onward_testbed::{Backend, Rng};

use crate::agents::database::TestDatabase;
use crate::agents::plans;
use crate::{assert_unavailable, is_input_output_error, within_limit};

/// Upper bound of the store operations of a call.
const MAX_OPERATIONS: u32 = 20;

struct Fixture {
    database: TestDatabase,
    engine: Engine,
    faults: Faults,
    caller: Caller,
}

impl Fixture {
    async fn new(sync: SyncMode) -> Self {
        let database = TestDatabase::create(Backend::Sqlite);
        let faults = Faults::armed();
        let settings = Settings {
            faults: faults.clone(),
            sync,
            ..Settings::default()
        };
        let engine = Engine::open(&database.address, settings).await.unwrap();
        Self {
            database,
            engine,
            faults,
            caller: Caller::local("me"),
        }
    }

    fn path(&self) -> &Path {
        match &self.database.address {
            Address::File(path) => path,
            Address::Server(_) => panic!("the database is not a file"),
        }
    }

    async fn create(&self) -> Result<PlanId, Error> {
        let command = plans::branching(&self.engine, &mut Rng::new(1), "sync", 3);
        let created = self.engine.create_plan(&self.caller, command, None);
        Ok(within_limit(created).await?.created.plan)
    }

    /// Creates plans with a fault at each operation in turn, until the fault is at the sync.
    async fn fail_to_sync(&self) {
        for number in 0..MAX_OPERATIONS {
            self.faults.fail_after(number);
            let error = self.create().await.expect_err("a fault was injected");
            assert_unavailable(&error);
            let Error::Store(error) = error else {
                panic!("{error}");
            };
            if is_input_output_error(&error) {
                assert!(error.may_have_committed(), "{error}");
                return;
            }
        }
        panic!("no call reached the sync");
    }

    /// A reader in another connection, because of which the log cannot be emptied.
    fn reader(&self) -> rusqlite::Connection {
        let reader = rusqlite::Connection::open(self.path()).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        count_plans(&reader);
        reader
    }

    /// Number of plans in the database file without its log.
    fn count_without_log(&self) -> i64 {
        let copy: PathBuf = self.path().with_extension("copy");
        // Another process, because closing the file here would release the locks of the engine.
        let copied = Command::new("cp").arg(self.path()).arg(&copy).status();
        assert!(copied.unwrap().success());
        count_plans(&rusqlite::Connection::open(&copy).unwrap())
    }
}

fn count_plans(connection: &rusqlite::Connection) -> i64 {
    let counted = connection.query_row("SELECT count(*) FROM plans", [], |row| row.get(0));
    counted.unwrap()
}

async fn nothing_is_acknowledged_until_the_log_is_recovered(sync: SyncMode) {
    let fixture = Fixture::new(sync).await;
    let stored = fixture.create().await.unwrap();
    let reader = fixture.reader();
    fixture.fail_to_sync().await;
    let failed = fixture.create().await;
    assert_unavailable(&failed.expect_err("the log is in use"));
    drop(reader);

    let status = fixture.engine.status(&fixture.caller, stored, None);
    within_limit(status).await.expect("a read recovers the log");
    let recovered = fixture.count_without_log();
    assert!(recovered >= 1, "the acknowledged plan is in the database");
    fixture.create().await.unwrap();
    assert_eq!(
        fixture.count_without_log(),
        recovered,
        "a new log was begun"
    );
    let checked = fixture.engine.verify(&fixture.caller).await.unwrap();
    assert_eq!(checked.inconsistencies, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_acknowledged_after_a_failed_sync_until_the_log_is_recovered() {
    nothing_is_acknowledged_until_the_log_is_recovered(SyncMode::BeforeResponse).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_acknowledged_after_a_failed_sync_inside_the_commit() {
    nothing_is_acknowledged_until_the_log_is_recovered(SyncMode::BeforeCommit).await;
}

/// Number of plans that another connection reads after one plan was created and the sync of a second
/// plan failed.
async fn visible_plans_after_a_failed_sync(sync: SyncMode) -> i64 {
    let fixture = Fixture::new(sync).await;
    let other = rusqlite::Connection::open(fixture.path()).unwrap();
    fixture.create().await.unwrap();
    assert_eq!(count_plans(&other), 1);
    fixture.fail_to_sync().await;
    count_plans(&other)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_visible_before_its_sync_by_default() {
    assert_eq!(SyncMode::default(), SyncMode::BeforeResponse);
    let visible = visible_plans_after_a_failed_sync(SyncMode::BeforeResponse).await;
    assert_eq!(visible, 2, "the change was committed before its sync");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_is_synced_inside_its_commit_is_not_visible_if_the_sync_fails() {
    let visible = visible_plans_after_a_failed_sync(SyncMode::BeforeCommit).await;
    assert_eq!(visible, 1, "the change was rolled back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_calls_after_a_failed_sync_recover_the_log_once() {
    let fixture = Fixture::new(SyncMode::BeforeResponse).await;
    let mut acknowledged = 0;
    for _ in 0..10 {
        fixture.fail_to_sync().await;
        let created = tokio::join!(fixture.create(), fixture.create(), fixture.create());
        for created in [created.0, created.1, created.2] {
            created.expect("the log was recovered");
            acknowledged += 1;
        }
    }
    assert!(fixture.count_without_log() >= acknowledged - 3);
    let checked = fixture.engine.verify(&fixture.caller).await.unwrap();
    assert_eq!(checked.inconsistencies, []);
}
