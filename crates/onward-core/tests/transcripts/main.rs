//! Tests of conversation repair: the four passes, each API, and properties for arbitrary
//! conversations.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod all_passes;
mod anthropic;
mod blank_rows;
mod bytes;
mod chat;
mod conversations;
mod dangling;
mod duplicate_tail;
mod harness;
mod properties;
mod responses;
mod stale;
mod validators;
