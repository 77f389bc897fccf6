//! Persistence for Onward: plans, steps, branches and their audit trail, on SQLite and PostgreSQL.
//!
//! This crate contains the migrations, the queries, the mapping between rows and the types of
//! `onward-core`, and the commit that writes events and the rows they change in one transaction.
//!
//! It is the only crate that may depend on a database driver or contain SQL, and the only workspace
//! crate it depends on is `onward-core`. It contains no plan rules: its callers have already
//! decided that a change is valid.

mod access;
mod backend;
pub mod codec;
mod commit;
mod context;
mod error;
mod extractions;
mod facts;
mod fault;
mod feedback;
mod lead;
mod ledger;
mod lists;
mod memory;
mod notes;
mod notices;
mod outputs;
mod plans;
mod query;
mod restore;
mod row;
mod search;
mod sessions;
mod skills;
mod statement;
mod steps;
mod store;
mod trail;
mod tx;
mod upkeep;
mod value;
mod vectors;
mod work;

pub use access::{LogLine, Tenant, Token};
pub use commit::{Artifact, Commit, Due, Plain, StepAfter};
pub use context::{Briefs, Excerpt, Recent, StepBrief};
pub use error::{Corrupt, Error};
pub use extractions::Extraction;
pub use facts::{Found, Lookup, NextFacts, StepFacts, With};
pub use fault::Faults;
pub use feedback::Feedback;
pub use lead::{Lead, Leadership};
pub use ledger::DueSession;
pub use lists::{Listed, PlanCount, PlanCursor};
pub use notes::{OutputNotes, StepNotes};
pub use notices::{Delivery, Notice};
pub use outputs::{Output, OutputExcerpt};
pub use plans::{Derived, WholePlan};
pub use row::call::{CallKey, CallRecord, Synthetic};
pub use row::event::{Author, Entry};
pub use row::plan::Sheet;
pub use row::session::{CallLine, Session, SessionLine, Turn, TurnStep, Watched};
pub use row::step::StepLine;
pub use search::{Hit, Search, Source};
pub use skills::{SkillCount, SkillCursor};
pub use steps::Which;
pub use store::{Address, Options, Store, schema};
pub use trail::ended_commits;
pub use tx::{Changed, Subject, Tx};
pub use upkeep::{DuePlan, ToolCall, WrittenCall};
pub use vectors::{Embedded, IndexHealth, Indexed, MANY, Many, Near, Pgvector, Waiting};
pub use work::Running;
