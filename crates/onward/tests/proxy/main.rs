//! The real binary as a proxy, between agents and APIs that the tests play: what passes, what is changed
//! and when, what is remembered, and what happens where something breaks.
//!
//! `house.rs` starts the proxy, `upstream.rs` is an API that answers what a test says and remembers what
//! it was asked, `speech.rs` speaks the three APIs as agents and servers do. Nothing leaves this machine.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot reach the proxy must fail"
)]

mod bytes;
mod given_up;
mod house;
mod ignored;
mod ladder;
mod place;
mod repairs;
mod sessions;
mod speech;
mod streams;
mod upstream;
mod wrong;
