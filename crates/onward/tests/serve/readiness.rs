//! `/readyz` while the database responds to queries but accepts no writes, and the log during an
//! outage.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use onward_testbed::{
    CITUS, Cluster, Program, Server, TIMEOUT, TestDir, distribute_due_times, psql, with_citus_path,
};
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
    let kinds = &unavailable.json()["details"]["problems"];
    assert_eq!(*kinds, serde_json::json!(["not_writable"]));
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
    // One per route.
    assert_eq!(failed.count(), 2, "{log}");
    let checks = lines
        .iter()
        .filter(|line| line["target"] == "onward::web::health");
    assert_eq!(checks.count(), 1, "{log}");

    assert!(limit_file_size(&server, "unlimited"));
    wait_for_readiness(&server, true).await;
    server.post("/api/v1/plans", plan()).await.expect_success();
}

/// The kinds of problems that `/readyz` reports.
async fn problems(server: &Server) -> Value {
    let unavailable = server.get("/readyz").await;
    unavailable.expect_problem(503, "unavailable");
    unavailable.json()["details"]["problems"].clone()
}

/// The failed checks of `onward doctor`.
async fn failed_checks(database: &str) -> Vec<String> {
    let doctor = program("doctor").with_database(database.to_owned());
    // Not on this thread: the client must notice that the server closes idle connections.
    let report = tokio::task::spawn_blocking(move || doctor.run(&["doctor", "--json"]));
    let report = report.await.unwrap();
    let report: Value = serde_json::from_str(&report.stdout).expect("valid JSON");
    let checks = report["checks"].as_array().expect("a list").iter();
    let failed = checks.filter(|check| check["ok"] == false);
    let failed = failed.map(|check| check["check"].as_str().unwrap_or_default().to_owned());
    failed.collect()
}

#[tokio::test]
async fn reports_a_table_that_another_session_has_locked() {
    let database = Cluster::shared().database();
    let server = program("locked-table")
        .with_database(database.clone())
        .serve();
    wait_for_readiness(&server, true).await;
    let url = database.clone();
    let lock = "BEGIN; LOCK TABLE steps; SELECT pg_sleep(600)";
    let locking = std::thread::spawn(move || psql(&url, lock));
    wait_for_readiness(&server, false).await;
    assert_eq!(problems(&server).await, serde_json::json!(["table_locked"]));
    // The policies of the table cannot be compared.
    let failed = ["schema", "writes", "writes"];
    assert_eq!(failed_checks(&database).await, failed);
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE query LIKE '%LOCK TABLE steps%' AND datname = current_database() \
        AND pid <> pg_backend_pid()";
    psql(&database, end).unwrap();
    locking.join().unwrap().expect_err("the session was ended");
    wait_for_readiness(&server, true).await;
    assert_eq!(failed_checks(&database).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_server_and_doctor_report_a_lost_protection() {
    let database = Cluster::shared().database();
    let start = || {
        program("lost-protection")
            .with_database(database.clone())
            .with_env("ONWARD_LOG_FORMAT", "json")
            .serve()
    };
    let server = start();
    wait_for_readiness(&server, true).await;
    assert_eq!(failed_checks(&database).await, Vec::<String>::new());
    drop(server);
    let change = "ALTER TABLE plans DISABLE ROW LEVEL SECURITY; \
        GRANT UPDATE ON events TO onward_tenant; DROP INDEX steps_ready";
    psql(&database, change).unwrap();
    assert_eq!(failed_checks(&database).await, ["schema"; 3]);
    let server = start();
    let deadline = Instant::now() + TIMEOUT;
    let logged = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("valid JSON");
        line["level"] == "WARN" && line["fields"]["deviations"] == 3
    };
    while !server.log().lines().any(logged) {
        assert!(Instant::now() < deadline, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    wait_for_readiness(&server, true).await;
}

#[tokio::test]
async fn reports_a_missing_synchronous_standby() {
    let cluster = Cluster::start();
    let server = program("standby-missing")
        .with_database(cluster.database())
        .serve();
    wait_for_readiness(&server, true).await;
    let set_standby = |name: &str| {
        let setting = format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'");
        psql(&cluster.url("postgres"), &setting).unwrap();
        psql(&cluster.url("postgres"), "SELECT pg_reload_conf()").unwrap();
    };
    set_standby("missing");
    wait_for_readiness(&server, false).await;
    let deadline = Instant::now() + TIMEOUT;
    while problems(&server).await != serde_json::json!(["standby_missing"]) {
        assert!(Instant::now() < deadline, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    set_standby("");
    wait_for_readiness(&server, true).await;
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

/// The nodes are stubs: writes of the tenant `local` fail, as on a node that does not respond.
#[tokio::test]
async fn a_server_is_degraded_while_a_node_of_the_database_does_not_respond() {
    let database = Cluster::shared().database();
    psql(&database, CITUS).unwrap();
    let database = with_citus_path(&database);
    let start = || program("node-down").with_database(database.clone());
    start().run_ok(&["migrate"]);
    distribute_due_times(&database);
    psql(&database, "INSERT INTO citus.down VALUES (2)").unwrap();
    let server = start().serve();
    wait_for_readiness(&server, true).await;
    let expected = serde_json::json!({
        "status": "degraded", "problems": ["node_down"], "nodes": [2],
    });
    assert_eq!(server.get("/readyz").await.expect_success(), expected);
    assert_eq!(failed_checks(&database).await, ["nodes"]);
    psql(&database, "INSERT INTO citus.down VALUES (1)").unwrap();
    wait_for_readiness(&server, false).await;
    server
        .get("/readyz")
        .await
        .expect_problem(503, "unavailable");
}
