//! `onward mcp` as agents use it: the real binary, over its standard input and output.
//!
//! `agent.rs` is a client of our own that sends what it likes, in either era of the protocol;
//! `whole_plan.rs` does the same with the official one. `ONWARD_BLESS=1 cargo test -p onward --test
//! mcp` writes `docs/tools.md` anew.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot run the binary must fail"
)]

mod agent;
mod answers;
mod cost;
mod document;
mod inputs;
mod lines;
mod model;
mod models;
mod place;
mod product;
mod resources;
mod reviews;
mod subscriptions;
mod whole_plan;
mod works;
