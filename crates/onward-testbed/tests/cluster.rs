//! The testbed itself: a server answers, keeps what was written over a crash, and goes with the
//! process that started it.
//!
//! Waiting for something to be gone is bounded by [`PATIENCE`], and ends as soon as it is.

#![allow(
    clippy::expect_used,
    reason = "a helper that cannot start a server must fail its test"
)]

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onward_testbed::{Cluster, VARIABLE, psql};

const PATIENCE: Duration = Duration::from_secs(60);

/// `host:port` of an address.
fn socket(url: &str) -> &str {
    let place = url.rsplit('/').nth(1).expect("an address has a place");
    place.rsplit('@').next().unwrap_or(place)
}

fn refuses(url: &str) -> bool {
    TcpStream::connect(socket(url)).is_err()
}

/// The directory that holds everything of a cluster.
fn directory(url: &str) -> PathBuf {
    let data = psql(url, "show data_directory").expect("the server answers");
    let data = Path::new(&data);
    assert!(data.exists(), "{}", data.display());
    data.parent().expect("it is a folder in another").to_owned()
}

fn within_patience(done: impl Fn() -> bool) -> bool {
    let started_at = Instant::now();
    while !done() {
        if started_at.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// A cluster of another process, with its address.
fn elsewhere() -> (Child, String) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_onward-testbed"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut url = String::new();
    BufReader::new(process.stdout.take().expect("its stdout is a pipe"))
        .read_line(&mut url)
        .expect("it prints an address");
    (process, url.trim_end().to_owned())
}

#[test]
fn a_fresh_database_answers() {
    let url = Cluster::shared().database();
    assert_eq!(psql(&url, "select 1").as_deref(), Ok("1"));
    assert_eq!(psql(&url, "show fsync").as_deref(), Ok("on"));
    assert_eq!(psql(&url, "show server_encoding").as_deref(), Ok("UTF8"));
}

#[test]
fn databases_asked_for_at_once_are_different_and_empty() {
    let tables = "create table t (); select count(*) from pg_stat_user_tables";
    let one = || {
        let url = Cluster::shared().database();
        assert_eq!(psql(&url, tables).as_deref(), Ok("1"));
        url
    };
    let mut urls: Vec<_> = thread::scope(|scope| {
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        asking
            .into_iter()
            .map(|one| one.join().expect("each is given one"))
            .collect()
    });
    urls.sort();
    urls.dedup();
    assert_eq!(urls.len(), 4);
}

#[test]
fn a_statement_that_fails_says_why() {
    let url = Cluster::shared().url("postgres");
    let error = psql(&url, "select * from nowhere").expect_err("there is no such table");
    assert!(error.contains("nowhere"), "{error}");
}

#[test]
fn a_crash_and_a_restart_keep_what_was_written() {
    let cluster = Cluster::start();
    let url = cluster.database();
    psql(&url, "create table t (a int); insert into t values (7)").expect("it can be written");
    cluster.stop();
    assert!(refuses(&url));
    cluster.stop();
    cluster.restart();
    assert_eq!(psql(&url, "select a from t").as_deref(), Ok("7"));
}

#[test]
fn a_server_that_runs_is_restarted_as_another_process() {
    let cluster = Cluster::start();
    let url = cluster.database();
    let process = "select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)";
    let before = psql(&url, process).expect("it knows its process");
    cluster.restart();
    let after = psql(&url, process).expect("it knows its process");
    assert_ne!(before, after);
}

#[test]
fn a_cluster_that_is_dropped_is_gone_at_once() {
    let cluster = Cluster::start();
    let url = cluster.url("postgres");
    let directory = directory(&url);
    drop(cluster);
    assert!(refuses(&url));
    assert!(!directory.exists());
}

#[test]
#[should_panic(expected = "others use the shared cluster too")]
fn the_shared_cluster_is_not_stopped() {
    Cluster::shared().stop();
}

#[test]
fn a_killed_owner_takes_its_cluster_with_it() {
    let (mut owner, url) = elsewhere();
    let directory = directory(&url);
    owner.kill().expect("it can be killed");
    owner.wait().expect("it ends");
    assert!(within_patience(|| refuses(&url) && !directory.exists()));
}

#[test]
fn a_program_that_a_test_started_does_not_hold_the_cluster() {
    let cluster = Cluster::start();
    let url = cluster.url("postgres");
    let mut longer = Command::new("sleep")
        .arg("30")
        .spawn()
        .expect("a program starts");
    drop(cluster);
    assert!(longer.try_wait().expect("it can be asked").is_none());
    assert!(refuses(&url));
    longer.kill().expect("it can be killed");
    longer.wait().expect("it ends");
}

#[test]
fn a_server_that_the_environment_names_is_used() {
    let cluster = Cluster::start();
    let url = cluster.url("postgres");
    let databases = "select count(*) from pg_database where datname like 'onward%'";
    assert_eq!(psql(&url, databases).as_deref(), Ok("0"));
    // The environment is that of a whole process, so it is another process that is given one.
    let test = Command::new(std::env::current_exe().expect("this test has a file"))
        .args(["--exact", "a_fresh_database_answers"])
        .env(VARIABLE, &url)
        .output()
        .expect("it can be run again");
    assert!(test.status.success(), "{test:?}");
    assert_eq!(psql(&url, databases).as_deref(), Ok("1"));
}
