//! `onward transcript judge`, run as a person or a script would run it, on small sessions written
//! for these tests.
//!
//! What the detector makes of a step is tried in the core; here the cases are so plain that every
//! version of it agrees. `fixtures/transcript` holds one file per format.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot run the binary must fail"
)]

mod claude_code;
mod desk;
mod files;
mod formats;
mod labels;
mod output;
