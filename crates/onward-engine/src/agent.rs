//! Agents: sessions, turns and tool calls, as reported by hooks, and the connections of agents.

mod activity;
mod calling_session;
mod observed;
pub mod session;
pub mod tool_calls;
pub mod usage;
