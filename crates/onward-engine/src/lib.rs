//! What Onward does: load the facts, ask the core, commit what it decided.
//!
//! Nothing lives here yet. When it does, this crate holds that one loop, the clock that the
//! core does not have, the source of fresh ids and claim tokens, and the sweep that turns
//! findings into commands.
//!
//! The wall it stands behind: it depends on `onward-core` and `onward-store` and on nothing
//! that speaks a protocol. It decides nothing (the core does), writes no SQL (the store does),
//! and knows neither MCP nor HTTP nor a terminal (`onward` does).
