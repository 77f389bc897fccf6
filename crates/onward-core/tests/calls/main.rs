//! Tests of the tool call rules: transitions, timeouts, owners, batches and messages.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod agent_timeouts;
mod batches;
mod limits;
mod messages;
mod owners;
mod properties;
mod timeouts;
mod transitions;
