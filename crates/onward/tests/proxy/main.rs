//! Tests of `onward proxy` with the real binary, between a test client and a test API.
//!
//! The test API is a mock server of the testbed; `conversation.rs` writes requests and replies for
//! the three APIs. All connections stay on this machine.

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
mod text_loops;
mod text_only;
mod usage;

use onward_testbed::Program;
use serde_json::Value;

fn program(test: &str) -> Program {
    let program = Program::new(env!("CARGO_BIN_EXE_onward"), test);
    program.with_env("ONWARD_LOG", "debug")
}

/// The turns of a session, from `onward session show`.
fn session_turns(program: &Program, session: &str) -> Vec<Value> {
    let view = program.run_json(&["--json", "session", "show", session]);
    view["turns"].as_array().expect("turns is a list").clone()
}

/// The calls of a session, from `onward session show`.
fn session_calls(program: &Program, session: &str) -> Vec<Value> {
    let view = program.run_json(&["--json", "session", "show", session]);
    view["calls"].as_array().expect("calls is a list").clone()
}
