//! The rules of calls, sentence by sentence: their states, their clock, their owners, what is said.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what it does not expect should stop there"
)]

mod batches;
mod clock;
mod law;
mod limits;
mod owners;
mod properties;
mod words;
