//! Onward's execution layer: load the facts, call the core, commit its decision.
//!
//! This crate contains that loop, the clock, the generator for ids and claim tokens, the queries
//! for the user interfaces, and the sweep that turns stalls into commands.
//!
//! It depends on `onward-core` and `onward-store` only. The rules are in the core, the SQL is in
//! the store, and MCP, HTTP and the command line are in `onward`.
//!
//! | module | contents |
//! |---|---|
//! | [`engine`] | opens a database; the handle for everything else |
//! | [`caller`] | tenant, name, role and permissions of a caller |
//! | [`create`], [`next_step`], [`submit`], [`step`], [`modify`], [`plan`] | commands that change plans |
//! | [`skill`], [`feedback`] | skill executions; ratings and comments on plans |
//! | [`research`], [`search`] | stores artifacts and plan outputs, and searches them |
//! | [`embed`], [`extract`] | embeddings of chunks; structured data extracted by models |
//! | [`indexing`] | vector indexes on PostgreSQL |
//! | [`status`], [`list`], [`audit`] | queries: plan status, lists, audit trail |
//! | [`context`] | context for an agent that starts a step or resumes a plan |
//! | [`sweep`] | acts on stalls according to the plans' policies |
//! | [`notification`] | the queue of notifications and their delivery state |
//! | [`session`] | agent sessions: turns, steps, stall detection and escalation |
//! | [`tool_calls`] | agents' tool calls: recorded before they run, interrupted when no result can arrive |
//! | [`request_log`] | the log of MCP requests |
//! | [`access`], [`member`] | tenants and tokens; members of a tenant |
//! | [`transfer`], [`verify`], [`retention`] | export and import; consistency checks; deletion of old data |
//! | [`environment`], [`machine`] | clock, randomness and process lookup; their implementation for this host |

pub mod access;
pub mod audit;
pub mod caller;
pub mod context;
pub mod create;
pub mod embed;
pub mod engine;
pub mod environment;
pub mod error;
pub mod extract;
pub mod feedback;
pub mod indexing;
mod late_results;
pub mod list;
pub mod machine;
pub mod member;
pub mod modify;
pub mod next_step;
pub mod notification;
pub mod plan;
pub mod request_log;
pub mod research;
pub mod retention;
mod run;
mod sanitize;
pub mod search;
pub mod session;
pub mod skill;
pub mod status;
pub mod step;
pub mod submit;
pub mod sweep;
pub mod tool_calls;
pub mod transfer;
pub mod verify;

pub use caller::Caller;
pub use engine::Engine;
pub use error::Error;
pub use member::{Member, SignInMethod};
pub use onward_store::{
    Address, Artifact, CallKey, CallLine, CallRecord, Changed, Delivery, DueSession, Entry,
    Excerpt, Extraction, Faults, Feedback, Hit, IndexHealth, Indexed, Listed, MANY, Notice, Output,
    OutputExcerpt, Pgvector, PlanCount, PlanCursor, Recent, Session, SessionLine, Sheet,
    SkillCount, SkillCursor, Source, StepBrief, StepLine, Subject, Synthetic, Tenant, Token,
    ToolCall, Turn, TurnStep, WholePlan, schema,
};

/// Database errors.
pub mod store {
    pub use onward_store::{Corrupt, Error};
}
