//! A transaction of one tenant: queued writes, recorded changes, and the versions of the plans it
//! has read.
//!
//! Writes are queued and sent with the next query or with the commit, in one round trip. [`Tx`]
//! alone binds the tenant, as the first parameter of a statement, so no statement can omit it or
//! name another.

use std::sync::Arc;

use onward_core::PlanId;

use crate::backend::{Candidate, Exec, Isolation, NearestSearch, Syntax};
use crate::change::{Changed, Subject};
use crate::error::Error;
use crate::fault::{Faults, Point};
use crate::interrupt::Interrupt;
use crate::plan_cache::CacheSession;
use crate::plan_version::Versions;
use crate::query::Query;
use crate::statement::Statement;
use crate::value::{Row, Value};

/// What follows a commit.
#[derive(Default)]
pub(crate) struct Committed {
    /// Changes to publish.
    pub(crate) changed: Vec<Changed>,
    work: Vec<Box<dyn FnOnce() + Send>>,
}

impl Committed {
    /// Does the work of [`Tx::after_commit`].
    pub(crate) fn run(self) {
        for work in self.work {
            work();
        }
    }
}

/// A transaction of one tenant. Its writes become visible together or not at all. Its reads see a
/// single snapshot, except in a transition on PostgreSQL, which may read several;
/// `needs_revalidation` detects that.
pub struct Tx {
    exec: Box<dyn Exec>,
    tenant: Arc<str>,
    queued: Vec<Statement>,
    committed: Committed,
    /// Whether a write was sent to the database.
    written: bool,
    /// Whether one of the writes checked a version.
    guarded: bool,
    faults: Faults,
    /// Set if the caller can be dropped while the transaction runs.
    interrupt: Option<Arc<Interrupt>>,
    /// Versions of the plans that this transaction has read or written.
    pub(crate) versions: Versions,
    /// The plan cache, if it is used.
    pub(crate) cache: Option<CacheSession>,
    node: Option<i64>,
}

impl Tx {
    pub(crate) fn new(exec: Box<dyn Exec>, tenant: Arc<str>, faults: Faults) -> Self {
        Self {
            exec,
            tenant,
            queued: Vec::new(),
            committed: Committed::default(),
            written: false,
            guarded: false,
            faults,
            interrupt: None,
            versions: Versions::default(),
            cache: None,
            node: None,
        }
    }

    /// Reads the rows of all tenants only on this node of a distributed database.
    pub(crate) fn on_node(mut self, node: Option<i64>) -> Self {
        self.node = node;
        self
    }

    /// The node on which the rows of all tenants are read; `None` for all nodes.
    pub(crate) fn node(&self) -> Option<i64> {
        self.node
    }

    /// Stops with an error once the caller is gone.
    pub(crate) fn interruptible(mut self, interrupt: &Arc<Interrupt>) -> Self {
        self.interrupt = Some(Arc::clone(interrupt));
        self
    }

    /// Attaches the plan cache.
    pub(crate) fn with_cache(mut self, cache: Option<CacheSession>) -> Self {
        self.cache = cache;
        self
    }

    /// Tenant of the transaction.
    pub fn tenant(&self) -> &Arc<str> {
        &self.tenant
    }

    /// Queues a write, to be sent with the next batch.
    pub(crate) fn queue(&mut self, statement: Statement) {
        self.queued.push(statement.bind(&self.tenant));
    }

    /// Records that a plan or session changed, for subscribers.
    pub(crate) fn record_change(&mut self, what: Subject) {
        self.record(what, None);
    }

    /// Records that a plan changed and its audit trail now ends with `seq`.
    pub(crate) fn record_plan_change(&mut self, plan: PlanId, seq: u64) {
        self.record(Subject::Plan(plan), Some(seq));
    }

    /// A transaction publishes each subject once, with the last sequence number.
    fn record(&mut self, what: Subject, seq: Option<u64>) {
        if let Some(known) = self
            .committed
            .changed
            .iter_mut()
            .find(|known| known.what == what)
        {
            known.seq = known.seq.max(seq);
            return;
        }
        self.committed.changed.push(Changed {
            tenant: Arc::clone(&self.tenant),
            what,
            seq,
        });
    }

    /// Runs `work` after the commit, such as writing a log line. Not if the transaction is rolled
    /// back, and once if it is repeated after a lost race.
    pub fn after_commit(&mut self, work: impl FnOnce() + Send + 'static) {
        self.committed.work.push(Box::new(work));
    }

    pub(crate) fn take_committed(&mut self) -> Committed {
        std::mem::take(&mut self.committed)
    }

    #[cfg(test)]
    pub(crate) fn take_queued(&mut self) -> Vec<Statement> {
        std::mem::take(&mut self.queued)
    }

    /// Sends the queued writes, then `queries`, in one round trip. Returns the rows of each query,
    /// in order.
    pub(crate) async fn query(&mut self, queries: Vec<Statement>) -> Result<Vec<Vec<Row>>, Error> {
        self.faults.inject(Point::Query)?;
        if let Some(interrupt) = &self.interrupt {
            interrupt.check()?;
        }
        let mut batch = std::mem::take(&mut self.queued);
        let writes = batch.len();
        self.written |= writes > 0;
        self.guarded |= batch.iter().any(Statement::checks_version);
        let queries = queries.into_iter();
        batch.extend(queries.map(|query| query.bind(&self.tenant)));
        let mut answers = self.exec.run(&batch, writes > 0).await?;
        Ok(answers.split_off(writes))
    }

    /// Runs one query and returns its rows.
    pub(crate) async fn rows(
        &mut self,
        query: Query,
        params: Vec<Value>,
    ) -> Result<Vec<Row>, Error> {
        let mut answers = self.query(vec![Statement::new(query, params)]).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// The chunks with the nearest sign bits, each with its vector.
    pub(crate) async fn nearest(&mut self, search: NearestSearch) -> Result<Vec<Candidate>, Error> {
        // Queued writes are sent first, as before every query.
        self.query(Vec::new()).await?;
        self.exec.nearest(&search.bind(&self.tenant)).await
    }

    /// Differences between the databases that are not in the text of a statement.
    pub(crate) fn syntax(&self) -> &'static Syntax {
        self.exec.syntax()
    }

    /// Whether a plan must be locked before its facts are read.
    pub(crate) fn must_lock(&self) -> bool {
        self.exec.isolation() == Isolation::Locking
    }

    /// Whether the result needs revalidation: a plan was read in two versions, or the reads come
    /// from several snapshots or from the cache and no version check at commit will validate them.
    /// If the database is unavailable, that error is the result and needs no revalidation.
    pub(crate) fn needs_revalidation(&self) -> bool {
        let single_snapshot = match self.exec.isolation() {
            Isolation::Serial | Isolation::Locking => true,
            Isolation::Optimistic { snapshots } => snapshots <= 1,
        };
        let is_unavailable = matches!(
            self.exec.failure(),
            Some(Error::Unavailable { .. } | Error::Overloaded(_))
        );
        let is_valid = (single_snapshot && !self.used_cache()) || is_unavailable;
        self.versions.have_changed() || !(is_valid || self.checks_version())
    }

    /// Whether one of its writes checks a version.
    pub(crate) fn checks_version(&self) -> bool {
        self.guarded || self.queued.iter().any(Statement::checks_version)
    }

    /// Whether the commit must check the versions of the plans that it has read.
    pub(crate) fn is_optimistic(&self) -> bool {
        matches!(self.exec.isolation(), Isolation::Optimistic { .. })
    }

    /// Whether a decision was based on the plan cache.
    pub(crate) fn used_cache(&self) -> bool {
        self.cache.as_ref().is_some_and(CacheSession::was_hit)
    }

    /// The plan whose queue the transition must enter before it reads.
    pub(crate) fn must_queue(&self) -> Option<PlanId> {
        self.cache.as_ref().and_then(CacheSession::queue_to_enter)
    }

    /// Whether writes were sent that must be rolled back if the work fails.
    pub(crate) fn has_written(&self) -> bool {
        self.written
    }

    /// Whether the database rejected a statement because of a concurrent change. Then the work is
    /// repeated, regardless of its result.
    pub(crate) fn lost_race(&self) -> bool {
        matches!(self.exec.failure(), Some(Error::LostRace))
    }

    /// Sends the queued writes and commits. An error means that nothing was written, unless it
    /// states that the response was lost.
    pub(crate) async fn commit(&mut self) -> Result<(), Error> {
        let queued = std::mem::take(&mut self.queued);
        let committed = match self.faults.inject(Point::Commit) {
            Ok(()) => self.exec.commit(queued).await,
            Err(fault) => Err(fault),
        };
        self.exec.rollback();
        committed?;
        self.faults.inject(Point::Committed)
    }

    /// Rolls back without waiting for the response.
    pub(crate) fn rollback(&mut self) {
        self.exec.rollback();
    }
}
