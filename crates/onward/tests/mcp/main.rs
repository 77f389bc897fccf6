//! `onward mcp` end to end: the real binary over standard input and output.
//!
//! The testbed has a low-level client for both protocol eras; `whole_plan.rs` uses the official one.
//! `ONWARD_BLESS=1 cargo test -p onward --test mcp document` regenerates `docs/tools.md`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a broken precondition fails the test"
)]

mod app;
mod approval;
mod budget;
mod claims;
mod cost;
mod descriptions;
mod document;
mod engine;
mod features;
mod fixtures;
mod gates;
mod hostile_names;
mod inputs;
mod loop_cost;
mod model_tools;
mod next_actions;
mod redo;
mod release_build;
mod resources;
mod responses;
mod results;
mod resuming;
mod review_links;
mod reviews;
mod routing;
mod sizes;
mod stdio;
mod stored_texts;
mod subscriptions;
mod tasks;
mod unavailable_database;
mod update_step;
mod waiting;
mod whole_plan;

use onward_testbed::Program;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_onward"), "mcp")
}
