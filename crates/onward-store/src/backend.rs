//! The interface of a database: it runs statements in a transaction, and elects a leader.
//!
//! A backend depends on data types only, such as statements and values. It contains no plan logic and
//! does not interpret statements: the modules above it decide which rows to lock, which version to
//! check and what to cache.

pub(crate) mod postgres;
pub(crate) mod relocation;
pub(crate) mod sqlite;

use std::pin::Pin;
use std::sync::Arc;

use uuid::Uuid;

use crate::error::Error;
use crate::statement::Statement;
use crate::value::{Row, Value};

/// Log targets of the drivers. Below `info` they log statements with their parameters.
pub const DRIVER_LOG_TARGETS: [&str; 1] = ["tokio_postgres"];

/// A response of the database.
pub(crate) type Response<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// The connection of one transaction. On SQLite every response is ready on its first poll.
pub(crate) trait Exec: Send {
    /// Runs the statements in one round trip; a statement without rows returns an empty list.
    /// `writes` states whether one of them is a write.
    fn run<'a>(&'a mut self, batch: &'a [Statement], writes: bool) -> Response<'a, Vec<Vec<Row>>>;

    /// Runs the remaining writes and commits. On SQLite it only runs them: the writer commits the
    /// transactions of all queued callers together.
    fn commit(&mut self, batch: Vec<Statement>) -> Response<'_, ()>;

    /// Rolls back, without waiting for the response.
    fn rollback(&mut self);

    /// The chunks with the nearest sign bits, each with its vector.
    fn nearest<'a>(&'a mut self, search: &'a NearestSearch) -> Response<'a, Vec<Candidate>>;

    /// Isolation of the reads of this transaction.
    fn isolation(&self) -> Isolation;

    /// The error after which the transaction cannot continue.
    fn failure(&self) -> Option<&Error>;

    /// Syntax that differs between the databases and cannot be written in common SQL.
    fn syntax(&self) -> &'static Syntax;
}

/// A unit of work for a backend with one writer, which runs the jobs of several callers in one
/// transaction.
pub(crate) trait Job: Send {
    /// Runs the job, and keeps its result. May be called again.
    fn run(&mut self, exec: Box<dyn Exec>) -> JobOutcome;
    /// Returns the result to the caller, or the error of the commit.
    fn finish(self: Box<Self>, committed: Result<(), Error>);
}

/// Outcome of a job for its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobOutcome {
    /// The job succeeded, or failed without writing anything.
    Clean,
    /// The job failed after writing something.
    Dirty,
}

/// Isolation of the reads of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// One snapshot, and no other writer until the commit.
    Serial,
    /// The newest committed state: a row must be locked before it is read.
    Locking,
    /// This many snapshots, without locks: a version check at commit must validate them.
    Optimistic {
        /// Number of snapshots.
        snapshots: usize,
    },
}

/// Differences between the databases that are not in the text of a statement.
#[derive(Debug)]
pub(crate) struct Syntax {
    /// Quotes a word of a full-text query.
    pub(crate) quote: char,
    /// Marks a word as a prefix.
    pub(crate) prefix: &'static str,
    /// Operators of a full-text query.
    pub(crate) and: &'static str,
    pub(crate) or: &'static str,
    /// Encodes sign bits.
    pub(crate) sign: fn(&[bool]) -> Value,
    /// Whether an update writes to an index whenever it sets one of its columns, even to the same
    /// value. Then the columns of a plan are updated by separate statements.
    pub(crate) updates_every_index: bool,
    /// Whether indexes over sign bits can exist.
    pub(crate) has_sign_index: bool,
}

/// Key of a chunk: its source and ordinal.
pub(crate) type ChunkKey = (Uuid, i64);

/// A chunk with the bytes of its vector.
pub(crate) type Candidate = (ChunkKey, Arc<[u8]>);

/// A search for the chunks with the nearest sign bits. A backend uses the statements that it needs.
pub(crate) struct NearestSearch {
    pub(crate) tenant: Arc<str>,
    pub(crate) model: String,
    pub(crate) sign: Vec<bool>,
    /// Number of nearest chunks to find.
    pub(crate) count: u32,
    /// Finds them with an index; `None` if the search is filtered.
    pub(crate) by_index: Option<Statement>,
    /// Finds them with a scan of all chunks that match.
    pub(crate) scan: Statement,
    /// Reads the change count that validates cached signs; `None` if the search is filtered.
    pub(crate) changes: Option<Statement>,
    /// Reads the vector of a chunk.
    pub(crate) vector: Statement,
}

impl NearestSearch {
    /// Binds the tenant to all statements.
    pub(crate) fn bind(self, tenant: &Arc<str>) -> Self {
        Self {
            by_index: self.by_index.map(|statement| statement.bind(tenant)),
            scan: self.scan.bind(tenant),
            changes: self.changes.map(|statement| statement.bind(tenant)),
            vector: self.vector.bind(tenant),
            ..self
        }
    }
}

/// A held leader lock or lease.
pub(crate) trait Leader: Send {
    /// Waits until another process may be the leader.
    fn lost(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Whether another process may be the leader.
    fn is_lost(&self) -> bool;
}

/// The connections of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Open connections, including the idle ones.
    pub open: usize,
    /// Connections that no call uses.
    pub idle: usize,
    /// Calls that wait for a connection.
    pub waiting: usize,
    /// Maximum number of connections.
    pub max: usize,
}
