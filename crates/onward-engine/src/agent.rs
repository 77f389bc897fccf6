//! Agents: what their hooks report about sessions, turns and tool calls.

mod activity;
mod observed;
pub mod session;
pub mod tool_calls;
