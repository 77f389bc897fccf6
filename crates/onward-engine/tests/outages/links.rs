//! A database path with symbolic links: all processes use one write-ahead log and one set of lock
//! files, whatever spelling of the path they were given.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use onward_engine::{Address, Caller, Engine, Error};
use onward_testbed::{Rng, TestDir};

use crate::agents::plans;
use crate::{assert_unavailable, within_limit};

async fn open(path: &Path) -> Result<Engine, Error> {
    let address = Address::File(path.to_owned());
    within_limit(Engine::open(&address, Default::default())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spellings_of_one_path_share_log_and_locks() {
    let dir = TestDir::new("links");
    let real = dir.join("real");
    fs::create_dir(&real).unwrap();
    // The file does not exist yet: it is created at the target of the link.
    let link = dir.join("link.db");
    symlink("real/onward.db", &link).unwrap();
    let folder = dir.join("folder");
    symlink("real", &folder).unwrap();
    let spellings = [
        link.clone(),
        real.join("onward.db"),
        folder.join("../real/./onward.db"),
    ];
    let caller = Caller::local("me");
    let mut engines = Vec::new();
    for path in &spellings {
        engines.push(open(path).await.unwrap());
    }
    for (number, engine) in engines.iter().enumerate() {
        let command = plans::branching(engine, &mut Rng::new(number as u64), "linked", 3);
        let plan = engine.create_plan(&caller, command, None).await;
        let plan = plan.expect("the write is acknowledged").created.plan;
        for other in &engines {
            other.status(&caller, plan, None).await.unwrap();
        }
    }
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&dir.join(".")), ["folder", "link.db", "real"]);
    let expected = [
        "onward.db",
        "onward.db-queue",
        "onward.db-shm",
        "onward.db-wal",
    ];
    assert_eq!(names(&real), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spellings_of_one_path_have_one_sweep_leader() {
    let dir = TestDir::new("links");
    let (real, link) = (dir.join("onward.db"), dir.join("link.db"));
    symlink("onward.db", &link).unwrap();
    let address = Address::File(link);
    let store = onward_store::Store::open(&address, Default::default());
    let leading = store.await.unwrap().lead(onward_store::Lead::Sweep).await;
    // The lock that a process with the other spelling would take.
    let lock = fs::File::open(dir.join("onward.db-sweep")).unwrap();
    assert!(matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock)));
    drop(leading.unwrap());
    lock.try_lock().unwrap();
    drop(open(&real).await.unwrap());
}

#[tokio::test]
async fn marks_its_databases_with_an_application_id() {
    let dir = TestDir::new("links");
    let path = dir.join("onward.db");
    open(&path).await.unwrap().close().await;
    let database = rusqlite::Connection::open(&path).unwrap();
    let id = database.pragma_query_value(None, "application_id", |row| row.get::<_, u32>(0));
    assert_eq!(id.unwrap().to_be_bytes(), *b"Onwd");
    // A database with tables but another mark is not migrated.
    database.pragma_update(None, "application_id", 1).unwrap();
    drop(database);
    let error = open(&path).await.err().expect("another application's file");
    let rejected = matches!(error, Error::Store(onward_store::Error::Address { .. }));
    assert!(rejected, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_with_another_target_is_a_replaced_file() {
    let dir = TestDir::new("links");
    let link = dir.join("link.db");
    symlink("first.db", &link).unwrap();
    let engine = open(&link).await.unwrap();
    drop(open(&dir.join("second.db")).await.unwrap());
    let caller = Caller::local("me");
    engine.count_plans(&caller).await.unwrap();
    fs::remove_file(&link).unwrap();
    symlink("second.db", &link).unwrap();
    let counted = engine.count_plans(&caller).await;
    assert_unavailable(&counted.expect_err("the file was replaced"));
    engine.count_plans(&caller).await.unwrap();
}

#[tokio::test]
async fn rejects_lock_files_and_databases_that_are_something_else() {
    let dir = TestDir::new("links");
    let path = dir.join("onward.db");
    let queue = dir.join("onward.db-queue");
    fs::write(&queue, "a letter").unwrap();
    assert_unavailable(&open(&path).await.err().expect("a file with content"));
    assert_eq!(fs::read_to_string(&queue).unwrap(), "a letter");
    fs::remove_file(&queue).unwrap();
    let pipe = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    };
    pipe(&queue);
    assert_unavailable(&open(&path).await.err().expect("a pipe"));
    fs::remove_file(&queue).unwrap();
    let database = dir.join("pipe.db");
    pipe(&database);
    assert_unavailable(&open(&database).await.err().expect("a pipe"));

    pipe(&dir.join("onward.db-sweep"));
    let engine = open(&path).await.unwrap();
    let (end, stop) = tokio::sync::watch::channel(false);
    let sweeper = engine.clone();
    let sweeper = tokio::spawn(async move { sweeper.run_sweeper(stop).await });
    // The sweeper is not blocked by the pipe.
    tokio::time::timeout(Duration::from_secs(1), async {
        end.send_replace(true);
        sweeper.await.unwrap();
    })
    .await
    .expect("the sweeper stops");
}

#[tokio::test]
async fn rejects_a_database_of_another_application_without_changing_it() {
    let dir = TestDir::new("links");
    let path = dir.join("other.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    let error = open(&path).await.err().expect("another application's file");
    let rejected = matches!(error, Error::Store(onward_store::Error::Address { .. }));
    assert!(rejected, "{error}");
    assert!(fs::read(&path).unwrap() == before);
}
