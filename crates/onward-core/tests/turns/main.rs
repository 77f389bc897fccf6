//! Tests of the loop detector for turns: the plain rule, each part of the default rule on and off,
//! and properties for arbitrary turns.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod edits_and_no_ops;
mod escalation;
mod harness;
mod masking;
mod new_output;
mod plain_rule;
mod polling;
mod properties;
mod state;
mod tasks;
