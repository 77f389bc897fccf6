//! Persistence for Onward: plans, steps, branches and their audit trail, on SQLite and PostgreSQL.
//!
//! This crate contains the migrations, the queries, the mapping between rows and the types of
//! `onward-core`, and the commit that writes events and the rows they change in one transaction.
//!
//! It is the only crate that may depend on a database driver or contain SQL, and the only workspace
//! crate it depends on is `onward-core`. It contains no plan rules: its callers have already
//! decided that a change is valid.

mod backend;
mod cached;
mod change;
pub mod codec;
mod commit;
mod copied_table;
mod distribution;
mod error;
mod fault;
mod host;
mod interrupt;
mod lead;
pub mod opencode;
mod plan;
mod plan_cache;
mod plan_queue;
mod plan_version;
mod query;
mod recent;
mod record;
mod relocate;
mod row;
mod row_change;
mod schema_check;
mod statement;
mod store;
mod sync;
mod tx;
mod value;
mod vector_index;
mod work;

pub use backend::{Connections, DRIVER_LOG_TARGETS};
pub use cached::Cached;
pub use change::{Changed, Subject};
pub use commit::Commit;
pub use distribution::{Distribution, NodeDown, NodeReport};
pub use error::{Corrupt, Error, Hint};
pub use fault::Faults;
pub use host::{HostRole, HostState, Hosts};
pub use interrupt::{with_current_permit, with_permit};
pub use lead::{Lead, Leadership};
pub use plan::context::{
    Briefs, CompletedResult, Contexts, Excerpt, Recent, Significant, StepBrief, StepReport,
    StepTexts,
};
pub use plan::facts::Facts;
pub use plan::import::Imports;
pub use plan::lists::{Listed, OutcomeCount, PlanCount, PlanCursor, PlanLists};
pub use plan::read::{Derived, Plans, WholePlan};
pub use plan::steps::{StepMark, Steps, Which};
pub use plan::trail::{ALL_TIMES, AuditTrail, HourCount, TrailCursor, ended_commits};
pub use plan::write::Transitions;
pub use record::artifact::{Artifact, Artifacts};
pub use record::due::{DueChecks, DuePlan};
pub use record::extraction::{Extraction, Extractions};
pub use record::feedback::{Feedback, UserFeedback};
pub use record::formatting_note::{OutputNotes, StepNotes};
pub use record::integrity::Integrity;
pub use record::journal::{JournalCursor, JournalEntry, Journals};
pub use record::notification::{Delivery, Notice, Notifications};
pub use record::output::{Output, OutputExcerpt, OutputVersion, Outputs};
pub use record::request_log::{RequestLog, ToolCall, WrittenCall};
pub use record::result::{ResultExcerpt, Results, UnindexedResult};
pub use record::search::{Hit, Search, SearchIndex, Source};
pub use record::session::{CONNECTION, SessionActivity, Sessions};
pub use record::skill::{SkillCount, SkillCursor, Skills};
pub use record::task::{Task, TaskOutcome, TaskPhase, Tasks};
pub use record::tenant::{LogLine, Obstacle, ObstacleKind, Tenant, Tenants};
pub use record::text::{TextId, TextPage, Texts};
pub use record::token::{Token, Tokens};
pub use record::tool_call::{DueSession, ToolCalls};
pub use record::totals::{Cutoffs, PlanGroup, Totals};
pub use record::usage::{SessionUsage, TranscriptPosition, UsageSource, Usages};
pub use record::vector::{Embedded, IndexHealth, Near, Waiting};
pub use relocate::{Relocation, RowProgress};
pub use row::call::{CallKey, CallRecord, Synthetic};
pub use row::event::{Author, Entry};
pub use row::plan::{OpenPlan, Owner, RequestOrigin, Sheet};
pub use row::session::{
    CallLine, Captured, Primed, SeenClaim, Session, SessionLine, Turn, TurnStep, Watched,
};
pub use row::step_line::{StepLine, StepNote};
pub use schema_check::{SchemaDeviation, SchemaDifference};
pub use store::address::{Address, distribute, hosts, restore, schema};
pub use store::node_reads::NodeRead;
pub use store::open::{Options, Prepare};
pub use store::{Pipeline, Store};
pub use sync::SyncMode;
pub use tx::Tx;
pub use vector_index::{Indexed, MANY, Many, VectorExtension};
pub use work::Running;
