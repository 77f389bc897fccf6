//! Tests of `onward transcript check` and `onward transcript repair` with the real binary.
//!
//! The tests of the core cover the defects. These tests check that the right lines of a file
//! change, and that no other data changes or is lost.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a failed setup must fail the test"
)]

mod agents;
mod claude_code;
mod files;
mod harness;
mod large_files;
mod messages;
mod random;
