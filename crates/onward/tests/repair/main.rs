//! `onward transcript check` and `repair`, run as a person or a script would run them.
//!
//! What is wrong with a conversation is tried in the core; here it is that the right lines of a file
//! change, that nothing else does, and that nothing is ever lost.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot run the binary must fail"
)]

mod claude_code;
mod desk;
mod files;
mod lists;
mod long;
mod random;
