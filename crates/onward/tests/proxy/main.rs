//! Tests of `onward proxy` with the real binary, between a test client and a test API.
//!
//! `test_server.rs` starts the proxy, `upstream.rs` is an API that sends queued replies and records
//! requests, and `conversation.rs` writes requests and replies for the three APIs. All connections
//! stay on this machine.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed setup must fail the test"
)]

mod conversation;
mod escalation;
mod failures;
mod interrupted_calls;
mod listening;
mod messages;
mod passthrough;
mod repairs;
mod sessions;
mod streams;
mod test_server;
mod text_only;
mod upstream;
