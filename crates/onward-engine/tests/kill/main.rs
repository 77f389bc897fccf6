//! Kill test: worker processes are killed while agents work. Every acknowledged change is stored,
//! no change is stored partially, and the audit trail replays to the rows.
//!
//! The test suite runs 50 kills; `script/kill` or `ONWARD_KILLS=1000` runs more. A failure prints
//! its seed. `ONWARD_SEED` repeats the random choices of a run, but not its timing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "tests report failures by panicking and have no documented API; each test crate uses \
              only a part of `agents`"
)]

#[path = "../agents/agents.rs"]
mod agents;
mod kill_plan;
mod series;
mod worker;

use onward_testbed::Backend;

#[test]
fn acknowledged_changes_survive_a_kill_on_sqlite() {
    series::run(Backend::Sqlite);
}

#[test]
fn acknowledged_changes_survive_a_kill_on_postgres() {
    series::run(Backend::Postgres);
}

#[test]
fn a_database_killed_during_schema_creation_opens_on_sqlite() {
    series::during_schema_creation(Backend::Sqlite, 12);
}

#[test]
fn a_database_killed_during_schema_creation_opens_on_postgres() {
    series::during_schema_creation(Backend::Postgres, 6);
}
