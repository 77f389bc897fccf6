//! A server is killed while agents work, again and again: what was acknowledged is there, nothing is
//! half there, and the trail replays to the rows.
//!
//! Kills: 50 in the test suite; `ONWARD_KILLS=1000`, or `script/kill`, for the long run. A failure
//! prints its seed, and `ONWARD_SEED` repeats the choices of the run, not its timing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "a test says what is wrong by failing, and has no callers to document; not every \
              test uses all of what they share"
)]

#[path = "../agents/answers.rs"]
mod answers;
#[path = "../agents/busy.rs"]
mod busy;
#[path = "../agents/commits.rs"]
mod commits;
#[path = "../agents/dice.rs"]
mod dice;
mod doom;
#[path = "../agents/history.rs"]
mod history;
#[path = "../agents/place.rs"]
mod place;
#[path = "../agents/plans.rs"]
mod plans;
#[path = "../agents/process.rs"]
mod process;
#[path = "../agents/promises.rs"]
mod promises;
#[path = "../agents/scribe.rs"]
mod scribe;
mod series;
#[path = "../agents/trails.rs"]
mod trails;
mod worker;

use place::Kind;

#[test]
fn what_a_killed_server_acknowledged_is_in_the_file() {
    series::run(Kind::Sqlite);
}

#[test]
fn what_a_killed_server_acknowledged_is_in_postgresql() {
    series::run(Kind::Postgres);
}

#[test]
fn a_server_killed_while_it_makes_its_schema_leaves_a_file_that_opens() {
    series::in_the_schema(Kind::Sqlite, 12);
}

#[test]
fn a_server_killed_while_it_makes_its_schema_leaves_a_postgresql_that_opens() {
    series::in_the_schema(Kind::Postgres, 6);
}
