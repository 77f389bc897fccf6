//! Properties of all command sequences, tested with random walks over a plan.
//!
//! A walk is a plan and a list of rounds. [`walk`] runs it; [`plans`], [`commands`] and
//! [`invalid_commands`] generate the commands; the other files contain properties. The generator
//! prefers commands that are plausible for the plan's status, and [`coverage`] fails if the walks
//! no longer reach every event, rejection and status. The transition tables and the assignment
//! order are reimplemented naively here, not taken from the code under test.
//!
//! `PROPTEST_CASES` scales the number of cases (default 256). A failure prints the shortest failing
//! walk with the outcome of each command, and the seed, which proptest stores under
//! `tests/proptest-regressions` and replays first.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "properties fail by panicking"
)]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a property concerns a few events; only `coverage` lists them all"
)]

mod branches;
mod budget;
mod claims;
mod commands;
mod coverage;
mod dependencies;
mod detectors;
mod ids;
mod invalid_commands;
mod plans;
mod redo;
mod replay;
mod rng;
mod robustness;
mod stalls;
mod state;
mod status;
mod step_list;
mod terminal;
mod walk;
