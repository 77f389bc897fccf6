//! Agents: what their hooks report about sessions, turns and tool calls.

mod observed;
pub mod session;
pub mod tool_calls;
