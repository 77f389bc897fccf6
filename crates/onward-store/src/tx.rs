//! A transaction as the rest of this crate sees it: named statements, sent in batches.
//!
//! Writes are queued and sent with the next query or with the commit, in one round trip. [`Tx`]
//! alone sets the tenant, as the first parameter of a statement, so no statement can omit it or
//! name another.
//!
//! On SQLite nothing here is asynchronous: a future completes on its first poll.

use std::sync::Arc;

use onward_core::PlanId;

use crate::backend::{postgres, sqlite};
use crate::error::Error;
use crate::fault::{Faults, Point};
use crate::memory::{Long, Memory, Recalled};
use crate::query::Query;
use crate::row::plan::Known;
use crate::statement::{Expect, Statement};
use crate::value::{IntoValue, Row, Value};

/// The connection that a transaction uses.
pub(crate) enum Connection {
    Sqlite(sqlite::Connection),
    Postgres(Box<postgres::Connection>),
}

/// A change made by a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The tenant that owns the subject.
    pub tenant: Arc<str>,
    /// The plan or session that changed.
    pub what: Subject,
}

/// A subject whose changes are published.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A plan.
    Plan(PlanId),
    /// An agent session, with its turns and tool calls.
    Session(Arc<str>),
}

/// A transaction of one tenant. Its writes become visible together or not at all. Its reads see a
/// single snapshot, except in a transition on PostgreSQL, which may read several; `is_doubtful`
/// detects that.
pub struct Tx {
    pub(crate) connection: Connection,
    tenant: Arc<str>,
    queued: Vec<Statement>,
    changed: Vec<Changed>,
    /// Version and state of each plan, as last read or written in this transaction.
    known: Vec<(PlanId, Known)>,
    /// Whether a write was sent to the database.
    written: bool,
    /// Whether one of those writes checked the version of a plan.
    guarded: bool,
    /// Whether a plan was read in two versions.
    torn: bool,
    /// The plan cache, used if plans need not be locked.
    pub(crate) memory: Option<Memory>,
    /// The whole plan of this transition: from the cache, replayed from its events, or created
    /// here.
    pub(crate) recalled: Option<Box<Recalled>>,
    /// Whether that plan came from the cache without a read from the database.
    pub(crate) from_memory: bool,
    /// Whether the cache was consulted.
    pub(crate) has_recalled: bool,
    /// On a cache miss: the number of earlier transitions of the plan that did not load its audit
    /// trail, and the entry to cache at commit if the whole plan is not known.
    pub(crate) looks: Option<u32>,
    pub(crate) long: Option<Long>,
    faults: Faults,
}

impl Tx {
    pub(crate) fn new(connection: Connection, tenant: Arc<str>, faults: Faults) -> Self {
        Self {
            connection,
            tenant,
            queued: Vec::new(),
            changed: Vec::new(),
            known: Vec::new(),
            written: false,
            guarded: false,
            torn: false,
            memory: None,
            recalled: None,
            from_memory: false,
            has_recalled: false,
            looks: None,
            long: None,
            faults,
        }
    }

    /// Attaches the plan cache.
    pub(crate) fn remembering(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Resets the transaction, so that `tenant` can reuse its connection.
    pub(crate) fn turn_to(&mut self, tenant: Arc<str>) {
        self.tenant = tenant;
        self.queued.clear();
        self.changed.clear();
        self.known.clear();
        self.written = false;
        self.guarded = false;
        self.torn = false;
    }

    /// Tenant of the transaction.
    pub fn tenant(&self) -> &Arc<str> {
        &self.tenant
    }

    /// A statement of this tenant: `$1` is the tenant, `$2` the first of `params`.
    pub(crate) fn statement(&self, query: Query, params: Vec<Value>) -> Statement {
        let mut all = Vec::with_capacity(params.len() + 1);
        all.push((&self.tenant).into_value());
        all.extend(params);
        Statement {
            query,
            params: all,
            expect: Expect::Any,
        }
    }

    /// Queues a write, to be sent with the next batch.
    pub(crate) fn queue(&mut self, statement: Statement) {
        self.queued.push(statement);
    }

    /// Records that a plan changed, for subscribers.
    pub(crate) fn note(&mut self, plan: PlanId) {
        self.note_change(Subject::Plan(plan));
    }

    /// Records that a session changed, for subscribers.
    pub(crate) fn note_session(&mut self, session: &str) {
        self.note_change(Subject::Session(session.into()));
    }

    fn note_change(&mut self, what: Subject) {
        let changed = Changed {
            tenant: Arc::clone(&self.tenant),
            what,
        };
        if !self.changed.contains(&changed) {
            self.changed.push(changed);
        }
    }

    /// Records the version and state of a plan that was read; the commit is checked against it. If
    /// this transaction has already read another version, its result is invalid.
    pub(crate) fn saw(&mut self, plan: PlanId, known: Known) {
        self.torn |= self.known(plan).is_some_and(|was| was.seq != known.seq);
        self.remember(plan, known);
    }

    /// Records the version and state of a plan.
    pub(crate) fn remember(&mut self, plan: PlanId, known: Known) {
        self.known.retain(|(id, _)| *id != plan);
        self.known.push((plan, known));
    }

    /// Version and state of a plan, as last read or written in this transaction.
    pub(crate) fn known(&self, plan: PlanId) -> Option<&Known> {
        let known = self.known.iter().find(|(id, _)| *id == plan);
        known.map(|(_, known)| known)
    }

    pub(crate) fn take_changed(&mut self) -> Vec<Changed> {
        std::mem::take(&mut self.changed)
    }

    /// Sends the queued writes, then `questions`, in one round trip. Returns the rows of each
    /// question, in order.
    pub(crate) async fn ask(&mut self, questions: Vec<Statement>) -> Result<Vec<Vec<Row>>, Error> {
        self.faults.strike(Point::Ask)?;
        let mut batch = std::mem::take(&mut self.queued);
        let changes = batch.len();
        self.written |= changes > 0;
        self.guarded |= batch.iter().any(Statement::checks_version);
        batch.extend(questions);
        let mut answers = match &mut self.connection {
            Connection::Sqlite(connection) => connection.run(&batch)?,
            Connection::Postgres(connection) => connection.run(&batch, changes > 0).await?,
        };
        Ok(answers.split_off(changes))
    }

    /// Runs one query and returns its rows.
    pub(crate) async fn rows(
        &mut self,
        query: Query,
        params: Vec<Value>,
    ) -> Result<Vec<Row>, Error> {
        let statement = self.statement(query, params);
        let mut answers = self.ask(vec![statement]).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// Whether a plan must be locked before its facts are read. On SQLite the write transaction
    /// already locks the whole file.
    pub(crate) fn must_hold(&self) -> bool {
        match &self.connection {
            Connection::Sqlite(_) => false,
            Connection::Postgres(connection) => connection.locks(),
        }
    }

    /// Whether the row of a plan is updated by separate statements, each only if its columns
    /// change: `plan_touch` for the order of lists, `plan_move` for the state, `plan_update` for
    /// the counts.
    pub(crate) fn writes_by_parts(&self) -> bool {
        matches!(self.connection, Connection::Sqlite(_))
    }

    /// Whether the result needs revalidation: a plan was read in two versions, or the reads come
    /// from several snapshots or from the cache and no version check at commit will validate them.
    /// If the server is unavailable, that error is the result and needs no revalidation.
    pub(crate) fn is_doubtful(&self) -> bool {
        let is_certain = match &self.connection {
            Connection::Sqlite(_) => true,
            Connection::Postgres(connection) => {
                let saw_one_moment = connection.saw_one_moment() && !self.from_memory;
                saw_one_moment || connection.is_unavailable()
            }
        };
        let guarded = self.guarded || self.queued.iter().any(Statement::checks_version);
        self.torn || !(is_certain || guarded)
    }

    /// Whether writes were sent that must be rolled back if the work fails.
    pub(crate) fn has_written(&self) -> bool {
        self.written
    }

    /// Whether the database rejected a statement because of a concurrent change. Then the work is
    /// repeated, whatever it returned.
    pub(crate) fn lost_race(&self) -> bool {
        match &self.connection {
            Connection::Sqlite(_) => false,
            Connection::Postgres(connection) => connection.lost_race(),
        }
    }

    /// Takes the queued writes that have not been sent, for the commit.
    pub(crate) fn take_queued(&mut self) -> Vec<Statement> {
        std::mem::take(&mut self.queued)
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }
}
