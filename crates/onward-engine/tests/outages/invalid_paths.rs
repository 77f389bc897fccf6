//! Paths and databases that Onward cannot use. The error names the problem and has a hint, and
//! existing files are not changed.

use std::fs;
use std::path::Path;

use onward_engine::{Address, Caller, Engine, Error};
use onward_store as store;
use onward_testbed::psql;
use onward_testbed::{Backend, TestDir};

use crate::agents::database::TestDatabase;
use crate::{assert_unavailable, within_limit};

async fn open(path: &Path) -> Result<Engine, Error> {
    let address = Address::File(path.to_owned());
    within_limit(Engine::open(&address, Default::default())).await
}

async fn open_error(path: &Path) -> Error {
    let error = open(path).await.err().expect("database was rejected");
    assert!(!error.hint().is_empty(), "{error}");
    error
}

#[tokio::test]
async fn rejects_a_file_that_is_not_a_database_without_changing_it() {
    let dir = TestDir::new("outages");
    let path = dir.join("letter.txt");
    let text = "This is a text file.\n".repeat(200);
    fs::write(&path, &text).unwrap();
    match open_error(&path).await {
        Error::Store(store::Error::Address { address, .. }) => {
            assert_eq!(address, path.display().to_string());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn rejects_a_directory_as_database() {
    let dir = TestDir::new("outages");
    let path = dir.join("onward.db");
    fs::create_dir(&path).unwrap();
    let error = open_error(&path).await;
    assert_unavailable(&error);
    assert!(error.to_string().contains("onward.db"), "{error}");
}

#[tokio::test]
async fn creates_the_schema_in_an_empty_file() {
    let dir = TestDir::new("outages");
    let path = dir.join("empty.db");
    fs::write(&path, "").unwrap();
    let engine = open(&path).await.unwrap();
    let checked = engine.verify(&Caller::local("me")).await.unwrap();
    assert_eq!(checked.inconsistencies, []);
}

#[cfg(unix)]
#[tokio::test]
async fn the_error_for_a_read_only_directory_names_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = TestDir::new("outages");
    let dir = parent.join("closed");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(dir.join("probe"), "").is_ok() {
        println!("skipped: this user can write to read-only directories");
        return;
    }
    let error = open_error(&dir.join("onward.db")).await;
    assert_unavailable(&error);
    assert!(error.to_string().contains("closed"), "{error}");
}

#[tokio::test]
async fn rejects_a_newer_schema_on_sqlite() {
    let dir = TestDir::new("outages");
    let path = dir.join("newer.db");
    drop(open(&path).await.unwrap());
    let file = rusqlite::Connection::open(&path).unwrap();
    file.pragma_update(None, "user_version", 999).unwrap();
    assert_newer(&open_error(&path).await);
}

#[tokio::test]
async fn rejects_a_newer_schema_on_postgres() {
    let database = TestDatabase::create(Backend::Postgres);
    drop(database.open().await);
    let newer = "insert into onward_schema (version) values (999)";
    psql(&database.address_text(), newer).unwrap();
    let opened = within_limit(Engine::open(&database.address, Default::default())).await;
    assert_newer(&opened.err().expect("schema is newer"));
}

fn assert_newer(error: &Error) {
    let newer = matches!(error, Error::Store(store::Error::Newer { found: 999, .. }));
    assert!(newer && !error.hint().is_empty(), "{error}");
}
