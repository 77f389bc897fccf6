//! HTTP tests against the real binary: authentication, the API, MCP, limits, notifications and
//! shutdown.
//!
//! Each test starts a server with its own port and database; `issuer.rs` is a local identity
//! provider. The tests open no connections to other machines.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails if its setup fails"
)]

mod access;
mod basics;
mod bounds;
mod decision_links;
mod discovery;
mod events;
mod fairness;
mod interrupted_calls;
mod issuer;
mod jwt;
mod late_database;
mod limits;
mod log_lines;
mod mcp;
mod memory;
mod memory_sequence;
mod metrics;
mod notify;
mod notify_formats;
mod openapi;
mod origin;
mod page_routes;
mod plan;
mod readiness;
mod review_page;
mod routes;
mod sessions;
mod sign_in;
mod telemetry;
mod tenants;
mod waiting;
mod world;

use onward_testbed::Program;

fn program(test: &str) -> Program {
    Program::new(env!("CARGO_BIN_EXE_onward"), test)
}
