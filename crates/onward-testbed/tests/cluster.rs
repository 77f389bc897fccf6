//! Tests of the testbed: a server accepts connections, keeps committed data after a crash, and is
//! removed with the process that started it.
//!
//! Waiting for the removal is limited to [`TIMEOUT`] and ends as soon as it is done.

#![allow(clippy::expect_used, reason = "tests fail by panicking")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onward_testbed::{Cluster, URL_VARIABLE, psql};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The `host:port` of a URL.
fn socket(url: &str) -> &str {
    let authority = url.rsplit('/').nth(1).expect("URL has an authority");
    authority.rsplit('@').next().unwrap_or(authority)
}

fn is_unreachable(url: &str) -> bool {
    TcpStream::connect(socket(url)).is_err()
}

/// The temporary directory of a cluster.
fn directory(url: &str) -> PathBuf {
    let data = psql(url, "show data_directory").expect("query succeeded");
    let data = Path::new(&data);
    assert!(data.exists(), "{}", data.display());
    data.parent()
        .expect("data directory has a parent")
        .to_owned()
}

fn wait_until(done: impl Fn() -> bool) -> bool {
    let started_at = Instant::now();
    while !done() {
        if started_at.elapsed() > TIMEOUT {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Starts a cluster in another process and returns its URL.
fn start_in_another_process() -> (Child, String) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_onward-testbed"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("testbed started");
    let mut url = String::new();
    BufReader::new(process.stdout.take().expect("stdout is piped"))
        .read_line(&mut url)
        .expect("testbed printed a URL");
    (process, url.trim_end().to_owned())
}

#[test]
fn a_new_database_accepts_connections() {
    let url = Cluster::shared().database();
    assert_eq!(psql(&url, "select 1").as_deref(), Ok("1"));
    assert_eq!(psql(&url, "show fsync").as_deref(), Ok("on"));
    assert_eq!(psql(&url, "show server_encoding").as_deref(), Ok("UTF8"));
}

#[test]
fn concurrently_created_databases_are_distinct_and_empty() {
    let tables = "create table t (); select count(*) from pg_stat_user_tables";
    let create = || {
        let url = Cluster::shared().database();
        assert_eq!(psql(&url, tables).as_deref(), Ok("1"));
        url
    };
    let mut urls: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(create)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("database created"))
            .collect()
    });
    urls.sort();
    urls.dedup();
    assert_eq!(urls.len(), 4);
}

#[test]
fn psql_returns_the_error_of_a_failed_statement() {
    let url = Cluster::shared().url("postgres");
    let error = psql(&url, "select * from missing_table").expect_err("table does not exist");
    assert!(error.contains("missing_table"), "{error}");
}

#[test]
fn committed_data_survives_a_crash_and_restart() {
    let cluster = Cluster::start();
    let url = cluster.database();
    psql(&url, "create table t (a int); insert into t values (7)").expect("table created");
    cluster.stop();
    assert!(is_unreachable(&url));
    cluster.stop();
    cluster.restart();
    assert_eq!(psql(&url, "select a from t").as_deref(), Ok("7"));
}

#[test]
fn restart_replaces_a_running_server_process() {
    let cluster = Cluster::start();
    let url = cluster.database();
    let process = "select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)";
    let before = psql(&url, process).expect("query succeeded");
    cluster.restart();
    let after = psql(&url, process).expect("query succeeded");
    assert_ne!(before, after);
}

#[test]
fn dropping_a_cluster_removes_it_immediately() {
    let cluster = Cluster::start();
    let url = cluster.url("postgres");
    let directory = directory(&url);
    drop(cluster);
    assert!(is_unreachable(&url));
    assert!(!directory.exists());
}

#[test]
#[should_panic(expected = "Cluster::start()")]
fn the_shared_cluster_cannot_be_stopped() {
    Cluster::shared().stop();
}

#[test]
fn killing_the_owner_removes_its_cluster() {
    let (mut owner, url) = start_in_another_process();
    let directory = directory(&url);
    owner.kill().expect("process killed");
    owner.wait().expect("process exited");
    assert!(wait_until(|| is_unreachable(&url) && !directory.exists()));
}

#[test]
fn a_child_process_of_a_test_does_not_keep_the_cluster_alive() {
    let cluster = Cluster::start();
    let url = cluster.url("postgres");
    let mut child = Command::new("sleep")
        .arg("30")
        .spawn()
        .expect("child process started");
    drop(cluster);
    assert!(child.try_wait().expect("status available").is_none());
    assert!(is_unreachable(&url));
    child.kill().expect("child process killed");
    child.wait().expect("child process exited");
}

#[test]
fn uses_the_server_from_the_environment() {
    let cluster = Cluster::start();
    let url = cluster.url("postgres");
    let databases = "select count(*) from pg_database where datname like 'onward%'";
    assert_eq!(psql(&url, databases).as_deref(), Ok("0"));
    // The environment applies to a whole process, so the test runs again in another process.
    let test = Command::new(std::env::current_exe().expect("path of the test binary"))
        .args(["--exact", "a_new_database_accepts_connections"])
        .env(URL_VARIABLE, &url)
        .output()
        .expect("test binary started");
    assert!(test.status.success(), "{test:?}");
    assert_eq!(psql(&url, databases).as_deref(), Ok("1"));
}
