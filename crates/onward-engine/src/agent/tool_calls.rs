//! The log of agents' tool calls: recorded before they run, interrupted when no result can arrive.
//!
//! The core decides which calls to interrupt; this module loads and stores them in one transaction
//! that locks the session. Calls are never repeated automatically. A result that arrives after an
//! interruption is stored next to the synthetic result that the model received.
//!
//! Agent runners use [`Engine::record_call`](crate::Engine::record_call) and
//! [`Engine::change_call`](crate::Engine::change_call). `record.rs` writes calls, `hooks.rs` handles
//! hook events, `recover.rs` interrupts. A call belongs to a turn, so `session/` uses this module;
//! this module does not use `session/`.

mod health;
pub(super) mod hooks;
pub(super) mod record;
mod recover;

pub use health::{CallCounts, SessionHealth, SessionPlan};
pub use hooks::Approval;
pub use record::{CallRef, Change, InitialState, NewCall, POLICY};
pub use recover::RecoveryReport;
pub(crate) use recover::{RETRY_AFTER, end_session, recover};
