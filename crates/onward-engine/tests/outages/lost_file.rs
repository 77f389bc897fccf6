//! A database file that is deleted, moved, replaced or overwritten while it is open. No call on the
//! lost file is acknowledged, no file is created in its place, and calls succeed once there is a
//! database at the path again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onward_core::{PlanId, Timestamp};
use onward_engine::next_step::NextStep;
use onward_engine::{Address, Caller, Engine, Error, restore, store};
use onward_testbed::{Rng, TestDir};

use crate::agents::plans;
use crate::{assert_unavailable, within_limit};

/// An engine on a file with one plan.
struct Fixture {
    dir: TestDir,
    path: PathBuf,
    engine: Engine,
    caller: Caller,
    plan: PlanId,
}

impl Fixture {
    async fn new() -> Self {
        let dir = TestDir::new("lost");
        let path = dir.join("onward.db");
        let engine = open(&path).await;
        let caller = Caller::local("me");
        let plan = create(&engine, "first").await.unwrap();
        Self {
            dir,
            path,
            engine,
            caller,
            plan,
        }
    }

    async fn read(&self) -> Result<(), Error> {
        let status = within_limit(self.engine.status(&self.caller, self.plan, None)).await;
        status.map(|_| ())
    }

    /// A short write, which runs on the calling thread.
    async fn claim(&self) -> Result<NextStep, Error> {
        within_limit(self.engine.next_step(&self.caller, self.plan, None, false)).await
    }

    /// All kinds of calls fail, and no database is created at the path.
    async fn assert_lost(&self) {
        for _ in 0..2 {
            assert_unavailable(&self.claim().await.expect_err("the file is lost"));
            assert_unavailable(&self.read().await.expect_err("the file is lost"));
            let created = create(&self.engine, "lost").await;
            assert_unavailable(&created.expect_err("the file is lost"));
            let version = within_limit(self.engine.version()).await;
            assert_unavailable(&version.expect_err("the file is lost"));
        }
    }

    /// Both kinds of calls succeed, at the latest with the second attempt.
    async fn assert_works(&self) {
        drop(self.read().await);
        self.read().await.expect("the database is back");
        let claimed = self.claim().await.expect("the database is back");
        assert!(matches!(claimed, NextStep::Started(_)), "{claimed:?}");
        let plan = create(&self.engine, "later").await.unwrap();
        let checked = self.engine.verify(&self.caller).await.unwrap();
        assert_eq!(checked.inconsistencies, []);
        let other = open(&self.path).await;
        other
            .status(&self.caller, plan, None)
            .await
            .expect("another process finds the plan");
    }

    async fn back_up(&self) -> PathBuf {
        let copy = self.dir.join("copy.db");
        self.engine.back_up(copy.clone()).await.unwrap();
        copy
    }
}

async fn open(path: &Path) -> Engine {
    let address = Address::File(path.to_owned());
    let opened = within_limit(Engine::open(&address, Default::default())).await;
    opened.unwrap()
}

async fn create(engine: &Engine, name: &str) -> Result<PlanId, Error> {
    let command = plans::branching(engine, &mut Rng::new(1), name, 20);
    let created = within_limit(engine.create_plan(&Caller::local("me"), command, None)).await;
    Ok(created?.created.plan)
}

fn companion(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_file_is_not_created_again_and_calls_fail() {
    let fixture = Fixture::new().await;
    let copy = fixture.back_up().await;
    for suffix in ["", "-wal", "-shm", "-queue"] {
        fs::remove_file(companion(&fixture.path, suffix)).unwrap();
    }
    fixture.assert_lost().await;
    assert!(!fixture.path.exists());
    let address = Address::File(fixture.path.clone());
    let previous = restore(&address, copy, "1".to_owned()).await.unwrap();
    assert_eq!(previous, None);
    fixture.assert_works().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_succeed_after_a_moved_file_is_put_back() {
    let fixture = Fixture::new().await;
    let elsewhere = fixture.dir.join("elsewhere.db");
    fs::rename(&fixture.path, &elsewhere).unwrap();
    fixture.assert_lost().await;
    assert!(!fixture.path.exists());
    fs::rename(&elsewhere, &fixture.path).unwrap();
    fixture.assert_works().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_file_in_place_of_the_database_is_rejected() {
    let fixture = Fixture::new().await;
    fs::remove_file(&fixture.path).unwrap();
    fs::write(&fixture.path, "").unwrap();
    assert_unavailable(&fixture.claim().await.expect_err("the file was replaced"));
    for _ in 0..2 {
        let error = fixture.claim().await.expect_err("the file is empty");
        let rejected = matches!(error, Error::Store(store::Error::Address { .. }));
        assert!(rejected, "{error}");
        fixture.read().await.expect_err("the file is empty");
    }
    assert_eq!(fs::metadata(&fixture.path).unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_call_after_a_replacement_fails_and_the_next_one_uses_the_new_file() {
    for writes in [false, true] {
        let fixture = Fixture::new().await;
        let copy = fixture.back_up().await;
        let after = create(&fixture.engine, "after the backup").await.unwrap();
        let address = Address::File(fixture.path.clone());
        let previous = restore(&address, copy, "1".to_owned()).await.unwrap();
        let failed = if writes {
            fixture.claim().await.map(|_| ())
        } else {
            fixture.read().await
        };
        assert_unavailable(&failed.expect_err("the file was replaced"));
        fixture.assert_works().await;
        let missing = fixture.engine.status(&fixture.caller, after, None).await;
        missing.expect_err("the plan is not in the backup");

        let previous = open(&previous.expect("there was a database")).await;
        previous
            .status(&fixture.caller, after, None)
            .await
            .expect("the previous database is complete");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_over_the_open_file_is_detected_and_its_log_is_not_applied() {
    let fixture = Fixture::new().await;
    let copy = fixture.back_up().await;
    let after = create(&fixture.engine, "after the backup").await.unwrap();
    fs::write(&fixture.path, fs::read(&copy).unwrap()).unwrap();
    fixture.assert_lost().await;
    let address = Address::File(fixture.path.clone());
    let opened = Engine::open(&address, Default::default()).await;
    assert_unavailable(&opened.err().expect("the log belongs to another file"));
    assert!(fs::read(&fixture.path).unwrap() == fs::read(&copy).unwrap());

    restore(&address, copy, "1".to_owned()).await.unwrap();
    fixture.assert_works().await;
    let missing = fixture.engine.status(&fixture.caller, after, None).await;
    missing.expect_err("the plan is not in the backup");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_log_is_detected_and_nothing_acknowledged_is_lost() {
    let fixture = Fixture::new().await;
    fs::remove_file(companion(&fixture.path, "-wal")).unwrap();
    assert_unavailable(&fixture.claim().await.expect_err("the log was deleted"));
    fixture.assert_works().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_write_acknowledged_before_a_move_is_in_the_moved_file() {
    let fixture = Fixture::new().await;
    let elsewhere = fixture.dir.join("elsewhere.db");
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let engine = fixture.engine.clone();
            tokio::spawn(async move {
                let mut created = Vec::new();
                while let Ok(plan) = create(&engine, &format!("writer {writer}")).await {
                    created.push(plan);
                }
                created
            })
        })
        .collect();
    // The writers stop at the first error.
    fs::rename(&fixture.path, &elsewhere).unwrap();
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(within_limit(writer).await.unwrap());
    }
    fs::rename(
        companion(&fixture.path, "-wal"),
        companion(&elsewhere, "-wal"),
    )
    .unwrap();
    let moved = open(&elsewhere).await;
    for plan in acknowledged {
        let status = moved.status(&fixture.caller, plan, None).await;
        status.expect("an acknowledged plan is in the moved file");
    }
}

#[tokio::test]
async fn rejects_backups_that_are_damaged_or_of_another_application() {
    let fixture = Fixture::new().await;
    let address = Address::File(fixture.path.clone());
    let copy = fixture.back_up().await;

    let foreign = fixture.dir.join("foreign.db");
    let other = rusqlite::Connection::open(&foreign).unwrap();
    other.execute_batch("CREATE TABLE t (x)").unwrap();
    let text = fixture.dir.join("text.db");
    fs::write(&text, "This is a text file.\n".repeat(200)).unwrap();
    let damaged = fixture.dir.join("damaged.db");
    let mut bytes = fs::read(&copy).unwrap();
    let half = bytes.len() / 2;
    bytes[half..half + 8192].fill(0xff);
    fs::write(&damaged, bytes).unwrap();

    for backup in [&foreign, &text, &damaged, &fixture.path] {
        let restored = restore(&address, backup.clone(), "1".to_owned()).await;
        restored.expect_err(&format!("{} is not a backup", backup.display()));
        fixture.read().await.expect("the database was not changed");
    }
    let mut names: Vec<_> = fs::read_dir(&*fixture.dir.join("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("restor"))
        .collect();
    names.sort();
    assert_eq!(names, Vec::<String>::new(), "no files are left behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_to_a_file_that_is_deleted_meanwhile_is_not_acknowledged() {
    let dir = TestDir::new("lost-write");
    let path = dir.join("onward.db");
    let address = Address::File(path.clone());
    let opened = onward_store::Store::open(&address, onward_store::Options::default()).await;
    let opened = opened.expect("file was created");
    let tenant: Arc<str> = Arc::from("local");
    let written = opened.write(&tenant, move |tx| {
        let path = path.clone();
        Box::pin(async move {
            onward_store::Tenants(tx).log_line(&onward_store::LogLine {
                id: uuid::Uuid::from_u128(1),
                at: Timestamp::from_millis(1),
                actor: "me".to_owned(),
                action: "test".to_owned(),
                details: serde_json::json!({}),
            });
            // Between the check before the transaction and the commit.
            fs::remove_file(&path).expect("file was deleted");
            Ok::<(), store::Error>(())
        })
    });
    let error = within_limit(written).await.expect_err("the file is lost");
    assert_unavailable(&Error::Store(error));
}
