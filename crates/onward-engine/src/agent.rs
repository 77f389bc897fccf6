//! Agents: sessions, turns and tool calls, as reported by hooks.

mod activity;
mod observed;
pub mod session;
pub mod tool_calls;
pub mod usage;
