//! What Onward does: load the facts, ask the core, commit what it decided.
//!
//! This crate holds that one loop, the clock that the core does not have, the source of fresh ids and
//! claim tokens, the queries that the surfaces show, and the sweep that turns findings into commands.
//!
//! The wall it stands behind: it depends on `onward-core` and `onward-store` and on nothing
//! that speaks a protocol. It decides nothing (the core does), writes no SQL (the store does),
//! and knows neither MCP nor HTTP nor a terminal (`onward` does).
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | open a database; what all else hangs on |
//! | [`caller`] | who asks, and what they may |
//! | [`create`], [`next`], [`submit`], [`step`], [`modify`], [`plan`] | the use cases that change plans |
//! | [`skill`], [`feedback`] | what agents' skills do; what people say about plans |
//! | [`research`], [`search`] | what is found and delivered is kept, and found again |
//! | [`embed`], [`extract`] | what texts mean; what models take out of them |
//! | [`indexing`] | indexes of what texts mean, on servers that can have them |
//! | [`status`], [`list`], [`trail`] | what is shown of them |
//! | [`context`] | what somebody needs to know who takes up a step or a plan |
//! | [`sweep`] | acts on stalls, by the plans' policies |
//! | [`notice`] | what people are told of when nobody looks |
//! | [`session`] | agents' sessions: turns, steps, what is done about a turn that gets nowhere |
//! | [`ledger`] | agents' tool calls: recorded before their effect, given up where none will answer |
//! | [`calls`] | the log of tool calls |
//! | [`access`], [`member`] | tenants and tokens; who belongs to a tenant |
//! | [`transfer`], [`verify`], [`retention`] | export and import; checks; forgetting |
//! | [`world`], [`machine`] | the clock and the dice; who lives on this machine |

pub mod access;
pub mod caller;
pub mod calls;
mod clean;
pub mod context;
pub mod create;
pub mod embed;
pub mod engine;
pub mod error;
pub mod extract;
pub mod feedback;
pub mod indexing;
mod late;
pub mod ledger;
pub mod list;
pub mod machine;
pub mod member;
pub mod modify;
pub mod next;
pub mod notice;
pub mod plan;
pub mod research;
pub mod retention;
mod run;
pub mod search;
pub mod session;
pub mod skill;
pub mod status;
pub mod step;
pub mod submit;
pub mod sweep;
pub mod trail;
pub mod transfer;
pub mod verify;
pub mod world;

pub use caller::Caller;
pub use engine::Engine;
pub use error::Error;
pub use member::{Entrance, Member};
pub use onward_store::{
    Address, Artifact, CallKey, CallLine, CallRecord, Changed, Delivery, DueSession, Entry,
    Excerpt, Extraction, Faults, Feedback, Hit, IndexHealth, Indexed, Listed, MANY, Notice, Output,
    OutputExcerpt, Pgvector, PlanCount, PlanCursor, Recent, Session, SessionLine, Sheet,
    SkillCount, SkillCursor, Source, StepBrief, StepLine, Subject, Synthetic, Tenant, Token,
    ToolCall, Turn, TurnStep, WholePlan, schema,
};

/// What can go wrong with a database.
pub mod store {
    pub use onward_store::{Corrupt, Error};
}
