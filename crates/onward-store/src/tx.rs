//! One transaction, as the rest of this crate sees it: statements by name, in batches.
//!
//! What is written is queued, and goes to the database together with the next question or with the
//! commit, in one round trip. The tenant is the first parameter of every statement and is put there
//! by [`Tx`] alone, so no statement can forget it or name another.
//!
//! On SQLite nothing here ever waits: the writer's thread polls a future once, and it is done.

use std::sync::Arc;

use onward_core::PlanId;

use crate::backend::{postgres, sqlite};
use crate::error::Error;
use crate::fault::{Faults, Point};
use crate::memory::{Long, Memory, Recalled};
use crate::row::plan::Known;
use crate::value::{IntoValue, Row, Value};

/// A statement with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) name: &'static str,
    pub(crate) params: Vec<Value>,
    /// How many rows it must touch, where that is known.
    pub(crate) touches: Option<u64>,
}

impl Statement {
    /// A statement outside of all tenants, for the two narrow tables and for upkeep.
    pub(crate) fn outside(name: &'static str, params: Vec<Value>) -> Self {
        Self {
            name,
            params,
            touches: None,
        }
    }

    /// The same, checked: a change that touches another number of rows is none at all.
    pub(crate) fn touching(mut self, rows: u64) -> Self {
        self.touches = Some(rows);
        self
    }

    /// Whether it fails where a plan has another version than the one that was decided on.
    fn is_guard(&self) -> bool {
        matches!(self.name, "plan_update" | "plan_move")
    }

    /// What a change that touched the wrong number of rows leads to.
    pub(crate) fn check(&self, touched: u64) -> Result<(), Error> {
        match self.touches {
            Some(expected) if expected != touched => Err(Error::Refused(format!(
                "`{}` touched {touched} rows, expected {expected}",
                self.name
            ))),
            Some(_) | None => Ok(()),
        }
    }
}

/// What a transaction runs on.
pub(crate) enum Connection {
    Sqlite(sqlite::Connection),
    Postgres(Box<postgres::Connection>),
}

/// What a transaction has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Whose.
    pub tenant: Arc<str>,
    /// What.
    pub what: Subject,
}

/// Something that can be watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A plan.
    Plan(PlanId),
    /// An agent's session, with its turns and calls.
    Session(Arc<str>),
}

/// A transaction of one tenant. Whoever holds it sees one state of the database, and what it writes
/// is there for others all at once, or not at all.
pub struct Tx {
    pub(crate) connection: Connection,
    tenant: Arc<str>,
    queued: Vec<Statement>,
    changed: Vec<Changed>,
    /// Where the plans that are held stand in the database.
    known: Vec<(PlanId, Known)>,
    /// Whether a change was sent to the database.
    written: bool,
    /// Whether the version of a plan was among them, which was still the one that was seen.
    guarded: bool,
    /// Whether a plan was seen in two versions.
    torn: bool,
    /// Where plans are remembered, and looked up where they need not be held.
    pub(crate) memory: Option<Memory>,
    /// The plan that this is about, where all of it is known.
    pub(crate) recalled: Option<Box<Recalled>>,
    /// Whether anything was seen in the memory alone.
    pub(crate) from_memory: bool,
    /// Whether a plan was looked for there.
    pub(crate) has_recalled: bool,
    /// How often that plan was looked at before without its trail, where it was looked at now; and what is
    /// to be remembered of it unless it is known as a whole.
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

    /// The same, with what this process remembers of plans.
    pub(crate) fn remembering(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// The same connection for another tenant's transaction.
    pub(crate) fn turn_to(&mut self, tenant: Arc<str>) {
        self.tenant = tenant;
        self.queued.clear();
        self.changed.clear();
        self.known.clear();
        self.written = false;
        self.guarded = false;
        self.torn = false;
    }

    /// Whose transaction it is.
    pub fn tenant(&self) -> &Arc<str> {
        &self.tenant
    }

    /// A statement of this tenant: `$1` is the tenant, `$2` the first of these.
    pub(crate) fn statement(&self, name: &'static str, params: Vec<Value>) -> Statement {
        let mut all = Vec::with_capacity(params.len() + 1);
        all.push((&self.tenant).into_value());
        all.extend(params);
        Statement {
            name,
            params: all,
            touches: None,
        }
    }

    /// Sends a change along with whatever is sent next.
    pub(crate) fn queue(&mut self, statement: Statement) {
        self.queued.push(statement);
    }

    /// Remembers that a plan was changed, for whoever watches.
    pub(crate) fn note(&mut self, plan: PlanId) {
        self.note_change(Subject::Plan(plan));
    }

    /// Remembers that a session was changed.
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

    /// Remembers where a plan stands that was read: its commit is checked against that. Where it
    /// stood elsewhere a moment ago, what was made of that is worth nothing.
    pub(crate) fn saw(&mut self, plan: PlanId, known: Known) {
        self.torn |= self.known(plan).is_some_and(|was| was.seq != known.seq);
        self.remember(plan, known);
    }

    pub(crate) fn remember(&mut self, plan: PlanId, known: Known) {
        self.known.retain(|(id, _)| *id != plan);
        self.known.push((plan, known));
    }

    /// Where a plan stands, as far as this transaction has seen.
    pub(crate) fn known(&self, plan: PlanId) -> Option<&Known> {
        let known = self.known.iter().find(|(id, _)| *id == plan);
        known.map(|(_, known)| known)
    }

    pub(crate) fn take_changed(&mut self) -> Vec<Changed> {
        std::mem::take(&mut self.changed)
    }

    /// Sends what is queued, then these questions, all in one round trip; the answers to the
    /// questions, in their order.
    pub(crate) async fn ask(&mut self, questions: Vec<Statement>) -> Result<Vec<Vec<Row>>, Error> {
        self.faults.strike(Point::Ask)?;
        let mut batch = std::mem::take(&mut self.queued);
        let changes = batch.len();
        self.written |= changes > 0;
        self.guarded |= batch.iter().any(Statement::is_guard);
        batch.extend(questions);
        let mut answers = match &mut self.connection {
            Connection::Sqlite(connection) => connection.run(&batch)?,
            Connection::Postgres(connection) => connection.run(&batch, changes > 0).await?,
        };
        Ok(answers.split_off(changes))
    }

    /// One question, and its rows.
    pub(crate) async fn rows(
        &mut self,
        name: &'static str,
        params: Vec<Value>,
    ) -> Result<Vec<Row>, Error> {
        let statement = self.statement(name, params);
        let mut answers = self.ask(vec![statement]).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// Whether a plan must be locked before its facts are read. On a file the transaction holds
    /// everything.
    pub(crate) fn must_hold(&self) -> bool {
        match &self.connection {
            Connection::Sqlite(_) => false,
            Connection::Postgres(connection) => connection.locks(),
        }
    }

    /// Whether a plan's row is changed in parts, each where it is news: when it changed, for the lists;
    /// where it stands; and how many of its steps do what.
    pub(crate) fn writes_by_parts(&self) -> bool {
        matches!(self.connection, Connection::Sqlite(_))
    }

    /// Whether what was seen may never have been the case, or not any more: it is of several moments,
    /// or of one that is past, and no commit will tell whether somebody changed the plan since. Or it
    /// is known already that somebody did.
    pub(crate) fn is_doubtful(&self) -> bool {
        let is_certain = match &self.connection {
            Connection::Sqlite(_) => true,
            Connection::Postgres(connection) => {
                let saw_one_moment = connection.saw_one_moment() && !self.from_memory;
                saw_one_moment || connection.is_unavailable()
            }
        };
        let guarded = self.guarded || self.queued.iter().any(Statement::is_guard);
        self.torn || !(is_certain || guarded)
    }

    /// Whether anything was sent to the database that must not stay if the work fails.
    pub(crate) fn has_written(&self) -> bool {
        self.written
    }

    /// Whether the database refused something because somebody else was faster. Then the work is
    /// done again, whatever it made of that.
    pub(crate) fn lost_race(&self) -> bool {
        match &self.connection {
            Connection::Sqlite(_) => false,
            Connection::Postgres(connection) => connection.lost_race(),
        }
    }

    /// What is queued and has not been sent, for the commit to take along.
    pub(crate) fn take_queued(&mut self) -> Vec<Statement> {
        std::mem::take(&mut self.queued)
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }
}
