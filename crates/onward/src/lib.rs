//! The `onward` program: command line, MCP server, HTTP server with dashboard, agent hooks and model
//! proxy.
//!
//! Plan rules and detectors are in `onward-core`, execution is in `onward-engine`, and SQL is in
//! `onward-store`, which this crate does not depend on. This crate decides only what concerns an
//! interface: the effective configuration (`config`), sign-in, rate limits and origins (`web`), the
//! response of an agent's hook (`hooks`), and the texts that the proxy adds to a request (`proxy`).
//! `tools` is the API that MCP and HTTP share; `exit` maps errors to exit codes.
//!
//! This is not an API for other programs; embed `onward-engine` instead. The library exists for
//! `examples/conformance_server`, which adds the fixtures of the MCP conformance suite to the
//! server.

mod cli;
mod config;
mod decision_link;
mod exit;
mod extraction;
mod failure;
mod fingerprint;
#[cfg(test)]
mod fuzz;
mod hint;
mod hooks;
mod install;
mod instructions;
mod json_size;
mod markdown;
mod mcp;
mod model;
mod notify;
mod output;
mod plan_file;
mod plan_template;
mod prime;
mod private;
mod project;
mod proxy;
mod quota;
mod regular_file;
mod request_id;
mod seen_claims;
mod serving;
mod telemetry;
mod tools;
mod transcript;
mod web;
mod wire;

use std::process::ExitCode;

use rmcp::ServerHandler;

pub use mcp::Server as McpServer;

/// Runs the command in the process's arguments.
#[must_use]
pub fn run() -> ExitCode {
    run_with_handler::<McpServer>()
}

/// Like [`run`], with another handler for MCP over HTTP.
#[must_use]
pub fn run_with_handler<H: ServerHandler + From<McpServer>>() -> ExitCode {
    cli::run(web::mcp_endpoint::<H>).into()
}
