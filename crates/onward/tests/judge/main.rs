//! Tests of `onward transcript judge` with the real binary, on small sessions.
//!
//! The tests of the core cover the detector. The sessions here are clear cases, independent of its
//! version. `fixtures/transcript` contains one file per format.

#![allow(clippy::expect_used, reason = "a failed setup must fail the test")]

mod claude_code;
mod formats;
mod harness;
mod invalid_files;
mod labels;
mod output;
