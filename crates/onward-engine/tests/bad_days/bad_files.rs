//! A path that leads to something else than a database of ours. Each is an error that says what it is,
//! and what to do; what was there is left as it was.

use std::fs;
use std::path::Path;

use onward_engine::{Address, Caller, Engine, Error};
use onward_testbed::psql;

use crate::place::{Folder, Kind, Place};
use crate::{in_time, is_unavailable};

async fn open(path: &Path) -> Result<Engine, Error> {
    let address = Address::File(path.to_owned());
    in_time(Engine::open(&address, Default::default())).await
}

async fn refused(path: &Path) -> Error {
    let why = open(path).await.err().expect("it cannot be opened");
    assert!(!why.hint().is_empty(), "{why}");
    why
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named_and_left_alone() {
    let folder = Folder::new();
    let path = folder.0.join("letter.txt");
    let text = "Dear reader, this is no database.\n".repeat(200);
    fs::write(&path, &text).unwrap();
    let why = refused(&path).await.to_string();
    assert!(
        why.contains("letter.txt") && why.contains("no SQLite database"),
        "{why}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_directory_is_no_database() {
    let folder = Folder::new();
    let path = folder.0.join("onward.db");
    fs::create_dir(&path).unwrap();
    let why = refused(&path).await;
    is_unavailable(&why);
    assert!(why.to_string().contains("onward.db"), "{why}");
}

#[tokio::test]
async fn an_empty_file_becomes_a_database() {
    let folder = Folder::new();
    let path = folder.0.join("empty.db");
    fs::write(&path, "").unwrap();
    let engine = open(&path).await.unwrap();
    let checked = engine.verify(&Caller::local("me")).await.unwrap();
    assert_eq!(checked.faults, []);
}

#[cfg(unix)]
#[tokio::test]
async fn a_directory_that_may_not_be_written_to_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let above = Folder::new();
    let folder = above.0.join("closed");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(folder.join("probe"), "").is_ok() {
        println!("skipped: whoever runs this may write everywhere");
        return;
    }
    let why = refused(&folder.join("onward.db")).await;
    is_unavailable(&why);
    assert!(why.to_string().contains("closed"), "{why}");
}

#[tokio::test]
async fn a_file_of_a_newer_program_is_refused() {
    let folder = Folder::new();
    let path = folder.0.join("newer.db");
    drop(open(&path).await.unwrap());
    let file = rusqlite::Connection::open(&path).unwrap();
    file.pragma_update(None, "user_version", 999).unwrap();
    let why = refused(&path).await.to_string();
    assert!(why.contains("999"), "{why}");
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let place = Place::new(Kind::Postgres);
    drop(place.open().await);
    let newer = "insert into onward_schema (version) values (999)";
    psql(&place.written(), newer).unwrap();
    let opened = in_time(Engine::open(&place.address, Default::default())).await;
    let why = opened.err().expect("it is newer");
    assert!(
        !why.hint().is_empty() && why.to_string().contains("999"),
        "{why}"
    );
}
