//! Readiness: writes, and a sweep that no process runs.

use std::time::Duration;

use onward_core::attention::DEFAULT_NO_AGENT_AFTER;

use crate::harness::Harness;
use crate::on_both_databases;

const MINUTE: Duration = Duration::from_secs(60);

async fn a_database_without_obstacles_accepts_writes(harness: &Harness) {
    harness.engine.check_writable().await.unwrap();
    assert_eq!(harness.engine.write_obstacles().await.unwrap(), []);
}

async fn reports_plans_that_no_process_sweeps(harness: &Harness) {
    let plan = harness.plan(1).await;
    let has_no_leader = async || harness.engine.sweep_has_no_leader().await.unwrap();
    assert!(!has_no_leader().await, "nothing is due");
    harness.claim(plan.id).await;
    harness.advance(DEFAULT_NO_AGENT_AFTER + MINUTE);
    assert!(!has_no_leader().await, "the sweep may be about to run");
    harness.advance(Duration::from_secs(1));
    assert!(has_no_leader().await);
    let mut watcher = harness.engine.watcher();
    harness.engine.sweep(&mut watcher).await.unwrap();
    assert!(!has_no_leader().await);
}

on_both_databases!(
    exclusive: a_database_without_obstacles_accepts_writes,
    reports_plans_that_no_process_sweeps,
);
