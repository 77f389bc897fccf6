//! Conversations put right, sentence by sentence: the four passes, each API, and what holds for every
//! conversation there can be.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what it does not expect should stop there"
)]

mod anthropic;
mod blank_rows;
mod bytes;
mod chat;
mod checker;
mod dangling;
mod desk;
mod doubled_tail;
mod histories;
mod properties;
mod responses;
mod stale;
mod whole;
