//! `/readyz` while the database responds to queries but accepts no writes, and the log during an
//! outage.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use onward_testbed::{Cluster, Program, Server, TIMEOUT, TestDir, psql};
use serde_json::Value;

use crate::basics::plan;
use crate::program;

/// Size limit of files, in bytes: less than the write-ahead log contains after the start.
const LIMIT: u64 = 65_536;

async fn wait_for_readiness(server: &Server, ready: bool) {
    let deadline = Instant::now() + TIMEOUT;
    while server.get("/readyz").await.status.is_success() != ready {
        assert!(Instant::now() < deadline, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Changes the maximum file size of a running server. Returns false if that is not possible here.
fn limit_file_size(server: &Server, limit: &str) -> bool {
    let limited = Command::new("prlimit")
        .args(["--pid", &server.id().to_string()])
        .arg(format!("--fsize={limit}:"))
        .status();
    limited.is_ok_and(|status| status.success())
}

#[tokio::test]
async fn a_server_with_a_full_disk_is_not_ready_and_logs_one_line_per_minute() {
    let dir = TestDir::new("full-disk-start");
    // The signal is ignored, so that the write fails instead of ending the process.
    let binary = env!("CARGO_BIN_EXE_onward");
    let script = format!("#!/bin/sh\ntrap '' XFSZ\nexec '{binary}' \"$@\"\n");
    let start = dir.write("onward", script);
    std::fs::set_permissions(&start, PermissionsExt::from_mode(0o755)).unwrap();
    let server = Program::new(start, "full-disk")
        .with_env("ONWARD_LOG_FORMAT", "json")
        .serve();
    server.post("/api/v1/plans", plan()).await.expect_success();
    wait_for_readiness(&server, true).await;
    if !limit_file_size(&server, &LIMIT.to_string()) {
        println!("skipped: `prlimit` cannot limit the file size of the server");
        return;
    }
    wait_for_readiness(&server, false).await;
    let unavailable = server.get("/readyz").await;
    unavailable.expect_problem(503, "unavailable");
    server.get("/healthz").await.expect_success();
    server.get("/api/v1/plans").await.expect_success();
    for _ in 0..20 {
        let rejected = server.post("/api/v1/plans", plan()).await;
        rejected.expect_problem(503, "unavailable");
        assert!(!server.get("/readyz").await.status.is_success());
    }
    let log = server.log();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("valid JSON"))
        .collect();
    let failed = lines.iter().filter(|line| line["fields"]["status"] == 503);
    assert_eq!(failed.count(), 1, "{log}");
    let checks = lines
        .iter()
        .filter(|line| line["target"] == "onward::web::health");
    assert_eq!(checks.count(), 1, "{log}");

    assert!(limit_file_size(&server, "unlimited"));
    wait_for_readiness(&server, true).await;
    server.post("/api/v1/plans", plan()).await.expect_success();
}

#[tokio::test]
async fn the_check_of_a_server_exits_with_its_readiness() {
    let check = |bind: &str| {
        let run = Command::new(env!("CARGO_BIN_EXE_onward"))
            .args(["serve", "--check", "--bind", bind])
            .output()
            .expect("the binary starts");
        assert_eq!(run.stdout, b"");
        run.status.code()
    };
    let server = program("check").serve();
    wait_for_readiness(&server, true).await;
    let address = server.url.trim_start_matches("http://").to_owned();
    assert_eq!(check(&address), Some(0));
    let everywhere = address.replace("127.0.0.1", "0.0.0.0");
    assert_eq!(check(&everywhere), Some(0));
    drop(server);
    assert_eq!(check(&address), Some(5));
}

#[tokio::test]
async fn a_server_with_a_read_only_database_is_not_ready() {
    let cluster = Cluster::start();
    let server = program("read-only")
        .with_database(cluster.database())
        .serve();
    wait_for_readiness(&server, true).await;
    let set_read_only = |value: &str| {
        let setting = format!("ALTER SYSTEM SET default_transaction_read_only = {value}");
        psql(&cluster.url("postgres"), &setting).unwrap();
        psql(&cluster.url("postgres"), "SELECT pg_reload_conf()").unwrap();
    };
    set_read_only("on");
    wait_for_readiness(&server, false).await;
    server.get("/api/v1/plans").await.expect_success();
    set_read_only("off");
    wait_for_readiness(&server, true).await;
}
