//! Onward's execution layer: load the facts, call the core, commit its decision.
//!
//! This crate contains that loop, the clock, the generator for ids and claim tokens, the queries
//! for the user interfaces, and the sweep that turns stalls into commands.
//!
//! It depends on `onward-core` and `onward-store` only. The rules are in the core, the SQL is in
//! the store, and MCP, HTTP and the command line are in `onward`.
//!
//! | folder | modules |
//! |---|---|
//! | | [`engine`]: opens a database, the handle for everything else; [`caller`]: tenant, name, role and permissions; [`environment`], [`machine`]: clock, randomness and process lookup, and their implementation for this host |
//! | `run` | the execution loop |
//! | `plan` | [`create`], [`next_step`], [`submit`], [`step`], [`modify`]: commands; [`status`], [`list`], [`audit`], [`journal`]: queries; [`context`]: context for an agent that starts a step or resumes a plan; [`skill`], [`feedback`]: skill executions, ratings and comments; [`task`]: calls that MCP clients follow as tasks |
//! | `agent` | [`session`]: sessions, turns, stall detection and escalation; [`tool_calls`]: tool calls, recorded before they run, interrupted when no result can arrive |
//! | [`research`] | artifacts, plan outputs and results; [`search`], [`embed`], [`indexing`]: full-text and semantic search; [`extract`]: structured data extracted by models |
//! | `operate` | [`sweep`]: acts on stalls; [`notification`]: delivery of notifications; [`access`], [`member`]: tenants, tokens and members; [`transfer`], [`relocate`], [`verify`], [`retention`]: export and import, moves to another database, consistency checks, deletion of old data; [`request_log`]: the log of MCP requests |

mod agent;
pub mod caller;
mod connection;
pub mod engine;
pub mod environment;
pub mod error;
pub mod machine;
mod operate;
mod plan;
pub mod research;
mod run;
mod sanitize;
mod subagent;

pub use agent::{session, tool_calls, usage};
pub use connection::Connection;
pub use operate::{
    access, member, notification, readiness, relocate, request_log, retention, sweep, totals,
    transfer, verify,
};
pub use plan::{
    audit, context, create, dependency, feedback, history, journal, list, modify, next_step, peek,
    skill, status, step, submit, task,
};
pub use research::{embed, extract, indexing, search, similar};

pub use caller::Caller;
pub use engine::Engine;
pub use error::{Error, ObjectKind};
pub use onward_store::{
    Address, Artifact, CallKey, CallLine, CallRecord, Changed, DRIVER_LOG_TARGETS, Delivery,
    Distribution, DueSession, Entry, Excerpt, Extraction, Faults, Feedback, Hit, HostRole,
    HostState, Hosts, HourCount, IndexHealth, Indexed, JournalCursor, JournalEntry, MANY, NodeDown,
    NodeReport, Notice, Obstacle, ObstacleKind, OpenPlan, Output, OutputExcerpt, OutputVersion,
    Owner, PlanCount, PlanCursor, Recent, RequestOrigin, ResultExcerpt, SchemaDeviation, SeenClaim,
    Session, SessionLine, SessionUsage, Sheet, SkillCount, SkillCursor, Source, StepBrief,
    StepLine, StepMark, StepNote, StepReport, Subject, SyncMode, Synthetic, Task, TaskOutcome,
    TaskPhase, Tenant, TextId, TextPage, Token, ToolCall, TranscriptPosition, Turn, TurnStep,
    UsageSource, VectorExtension, WholePlan, distribute, hosts, opencode, restore, schema,
    with_current_permit, with_permit,
};
pub use operate::member::{Member, SignInMethod};
pub use plan::attention::AttentionCount;
pub use plan::list::Listed;
pub use run::PLAN_LOG;

/// Database errors.
pub mod store {
    pub use onward_store::{Corrupt, Error, Hint};
}
