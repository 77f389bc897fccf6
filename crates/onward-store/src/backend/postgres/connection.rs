//! The connection of one transaction. It is taken from the pool when something is sent, and
//! returned only outside a transaction. In any other case (a cancelled call, a timeout) it is
//! closed, and the server rolls back.
//!
//! `BEGIN` is sent with the first batch and `COMMIT` with the last. After an error, every further
//! call returns that error. A transition reads in autocommit mode and writes one statement; it
//! begins a transaction only for more. In a distributed database everything is sent in a
//! transaction, because only that sets the tenant on the other nodes.
//!
//! Transitions of several tenants can share a connection ([`Shared`]): each round trip is then a whole
//! transaction, under its own tenant, and does not wait for the responses to those before it. One that
//! needs a longer transaction takes a separate connection.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio::time::timeout;
use uuid::Uuid;

use super::error;
use super::merge::{OnLostRace, mergeable};
use super::message::Messages;
use super::pipeline::{Broken, Sent, in_order, in_order_shared};
use super::pool::{PooledClient, Settings};
use super::server::Postgres;
use super::shared::{Client, Shared};
use super::{pooler, session};
use crate::backend::Isolation;
use crate::error::Error;
use crate::statement::{Expect, Statement};
use crate::value::Row;

/// A connection in a transaction.
pub(crate) struct Connection {
    postgres: Postgres,
    /// Present once something was sent.
    client: Option<Client>,
    /// The connection that others use as well.
    shared: Option<Arc<Shared>>,
    /// Whether it uses the shared connection.
    is_sharing: bool,
    tenant: Arc<str>,
    mode: Mode,
    state: State,
    /// Number of queries sent in autocommit mode, each of which saw its own snapshot.
    autocommit_reads: usize,
    /// The plans that a batch has written.
    written: Vec<Uuid>,
}

/// Mode of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Reads from a single snapshot.
    Read,
    /// Locks a plan before reading it.
    Lock,
    /// Locks nothing. The version check at commit detects concurrent changes.
    Optimistic,
    /// A batch of optimistic transitions. Waits at most 20 ms for a locked row.
    Batch,
    /// Like `Optimistic`, on a shared connection as long as each round trip is a whole transaction.
    /// Waits at most 20 ms for a locked row, so that it does not delay the others.
    Shared,
}

/// State of a connection.
enum State {
    /// Outside a transaction.
    Idle,
    /// Not all responses have arrived; the caller may have been dropped.
    Waiting,
    /// In a transaction.
    Open,
    /// In a transaction with a failed statement.
    Failed(Error),
    /// Outside a transaction, after an error.
    Ended(Error),
    /// Lost, with its transaction.
    Lost(Error),
}

impl Connection {
    /// A connection on which nothing was sent.
    pub(super) fn new(postgres: Postgres, tenant: Arc<str>, mode: Mode) -> Self {
        Self {
            postgres,
            client: None,
            shared: None,
            is_sharing: false,
            tenant,
            mode,
            state: State::Idle,
            autocommit_reads: 0,
            written: Vec::new(),
        }
    }

    /// Uses this shared connection in the mode for it, otherwise one of those beside it.
    pub(super) fn in_pipeline(mut self, shared: Arc<Shared>) -> Self {
        self.shared = Some(shared);
        self.is_sharing = self.mode == Mode::Shared;
        self
    }

    /// Whether no transaction is open, so that all writes can still be sent as one message, on any
    /// connection.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Whether the connection was lost, so that the last message may have been executed.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost(_))
    }

    /// Whether the pool provided a connection.
    pub(super) fn has_client(&self) -> bool {
        self.client.is_some()
    }

    /// Returns the connection to the pool, unless it is in use.
    pub(super) fn release(&mut self) {
        if let State::Idle = self.state {
            self.client = None;
        }
    }

    /// Takes a connection, if there is none yet: the shared one, or one from the pool. The wait is
    /// limited.
    pub(super) async fn acquire(&mut self) -> Result<(), Error> {
        if self.client.is_none() {
            match self.take_client().await {
                Ok(client) => self.client = Some(client),
                Err(why) => {
                    self.state = State::Ended(why.clone());
                    return Err(why);
                }
            }
        }
        Ok(())
    }

    async fn take_client(&self) -> Result<Client, Error> {
        match &self.shared {
            Some(shared) => Shared::client(shared, &self.postgres, self.is_sharing).await,
            None => Ok(Client::own(self.postgres.acquire().await?)),
        }
    }

    /// Leaves the shared connection, before a transaction that takes several round trips.
    fn stop_sharing(&mut self) {
        self.is_sharing = false;
        if self.own_client().is_none() {
            self.client = None;
        }
    }

    fn own_client(&mut self) -> Option<&mut PooledClient> {
        self.client.as_mut().and_then(Client::as_own)
    }

    /// Maximum wait for a response.
    fn response_timeout(&self) -> Duration {
        self.postgres.0.limits.response
    }

    /// Runs the statements in one round trip, or in several if a statement may lose a race: those
    /// after it are sent once it has won. A statement without rows returns an empty list.
    pub(super) async fn run_batch(
        &mut self,
        batch: &[Statement],
        changes: bool,
    ) -> Result<Vec<Vec<Row>>, Error> {
        if self.mode == Mode::Batch {
            // A lost race of one plan does not end the batch of others.
            return self.run_together(batch, changes).await;
        }
        let mut rows = Vec::with_capacity(batch.len());
        let mut left = batch;
        loop {
            let (next, rest) = left.split_at(self.sent_together(left));
            rows.extend(self.run_together(next, changes).await?);
            if rest.is_empty() {
                return Ok(rows);
            }
            left = rest;
        }
    }

    /// Number of leading statements up to the first message that may lose a race, or all.
    fn sent_together(&self, batch: &[Statement]) -> usize {
        let all: Vec<&Statement> = batch.iter().collect();
        let mut length = 0;
        while let Some(left) = all.get(length..).filter(|left| !left.is_empty()) {
            let message = mergeable(left, self.postgres.0.distributed);
            length += message;
            if left.iter().take(message).any(|one| self.may_lose(one)) {
                break;
            }
        }
        length
    }

    /// Runs the statements in one round trip.
    async fn run_together(
        &mut self,
        batch: &[Statement],
        changes: bool,
    ) -> Result<Vec<Vec<Row>>, Error> {
        let idle = self.must_begin()?;
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let reads_apart = matches!(self.mode, Mode::Optimistic | Mode::Shared);
        let autocommit = idle && !changes && reads_apart;
        if !autocommit {
            self.stop_sharing();
        }
        self.acquire().await?;
        let batch: Vec<&Statement> = batch.iter().collect();
        let frame = match (autocommit, idle) {
            (true, _) => Frame::Autocommit,
            (false, true) => Frame::Begin,
            (false, false) => Frame::Continue,
        };
        self.state = State::Waiting;
        let limit = self.response_timeout();
        let limited = timeout(limit, self.round_trip(&batch, frame)).await;
        match limited.unwrap_or_else(|_| Err(State::Lost(error::timed_out(limit)))) {
            Ok(rows) if autocommit => {
                self.autocommit_reads += batch.len();
                self.state = State::Idle;
                Ok(rows)
            }
            Ok(rows) => {
                self.state = State::Open;
                Ok(rows)
            }
            Err(state) => {
                self.state = state;
                self.must_begin().map(|_| Vec::new())
            }
        }
    }

    /// Whether the next batch must begin the transaction. Fails if the transaction cannot continue.
    fn must_begin(&self) -> Result<bool, Error> {
        match &self.state {
            State::Idle => Ok(true),
            State::Open => Ok(false),
            State::Failed(why) | State::Ended(why) | State::Lost(why) => Err(why.clone()),
            State::Waiting => Err(Error::unavailable(
                "a call was cancelled inside its transaction",
                "retry the call",
            )),
        }
    }

    /// Runs the remaining statements and commits. That is one round trip, or two if a statement may
    /// lose a race and the others do not depend on it: then they are sent once it has won.
    pub(super) async fn send_and_commit(&mut self, batch: &[&Statement]) -> Result<(), Error> {
        let begins = self.must_begin()?;
        if begins && batch.is_empty() {
            return Ok(());
        }
        let (first, batch) = batch.split_at(self.sent_before_commit(batch, begins));
        if !first.is_empty() {
            let first: Vec<Statement> = first.iter().map(|one| (*one).clone()).collect();
            self.run_batch(&first, true).await?;
        }
        let begins = self.must_begin()?;
        self.acquire().await?;
        let frame = if begins { Frame::Whole } else { Frame::Commit };
        self.state = State::Waiting;
        let limit = self.response_timeout();
        let limited = timeout(limit, self.round_trip(batch, frame)).await;
        let timed_out = |_| {
            let why = format!("no response within {limit:?}");
            Err(State::Lost(error::outcome_unknown(&why)))
        };
        match limited.unwrap_or_else(timed_out) {
            Ok(_) => {
                self.state = State::Idle;
                Ok(())
            }
            Err(state) => {
                self.state = state;
                self.must_begin().map(|_| ())
            }
        }
    }

    /// Number of statements whose result must be known before the rest is sent: up to the last one
    /// that may lose a race. None if all statements are one message: it writes nothing if it has
    /// lost.
    fn sent_before_commit(&self, batch: &[&Statement], begins: bool) -> usize {
        let is_one_message = begins && mergeable(batch, false) == batch.len();
        let is_atomic = match self.mode {
            Mode::Batch => is_one_message,
            Mode::Read | Mode::Lock | Mode::Optimistic | Mode::Shared => {
                is_one_message && batch.iter().filter(|one| self.may_lose(one)).count() <= 1
            }
        };
        if is_atomic {
            return 0;
        }
        let last = batch.iter().rposition(|one| self.may_lose(one));
        last.map_or(0, |last| last + 1)
    }

    /// Whether a statement that has lost a race affects no row instead of failing.
    fn may_lose(&self, statement: &Statement) -> bool {
        match self.on_lost_race() {
            _ if self.postgres.0.distributed => false,
            OnLostRace::Fail => statement.expect == Expect::NewKey,
            OnLostRace::Skip | OnLostRace::SkipLocked => statement.may_lose_race(),
        }
    }

    fn on_lost_race(&self) -> OnLostRace {
        match self.mode {
            // The rest of a shared transaction is sent with the check, so only a failure stops it.
            Mode::Read | Mode::Lock | Mode::Shared => OnLostRace::Fail,
            Mode::Optimistic => OnLostRace::Skip,
            Mode::Batch => OnLostRace::SkipLocked,
        }
    }

    /// Takes the plans that a batch has written.
    pub(super) fn take_written(&mut self) -> Vec<Uuid> {
        std::mem::take(&mut self.written)
    }

    /// Runs one query and returns its rows.
    pub(super) async fn rows(&mut self, query: &Statement) -> Result<Vec<Row>, Error> {
        let mut responses = self.run_batch(std::slice::from_ref(query), false).await?;
        Ok(responses.pop().unwrap_or_default())
    }

    /// One round trip, or two if a statement must be prepared. On failure, returns the new state of
    /// the connection.
    async fn round_trip(
        &mut self,
        statements: &[&Statement],
        frame: Frame,
    ) -> Result<Vec<Vec<Row>>, State> {
        let on_lost_race = self.on_lost_race();
        // The settings are unknown until this round trip succeeds. After a failure, the next one
        // sends all of them again.
        let was = self.own_client().and_then(|own| own.settings.take());
        let Some((pooled, usable)) = self.client.as_ref().and_then(Client::get) else {
            let why = Error::unavailable("the connection is closed", "retry the call");
            return Err(State::Lost(why));
        };
        let distributed = self.postgres.0.distributed;
        let settings = Settings {
            tenant: Arc::clone(&self.tenant),
            waits_for_locks: !matches!(self.mode, Mode::Batch | Mode::Shared),
        };
        let client = &pooled.client;
        let prepared = Messages::prepare(pooled, statements, distributed, on_lost_race).await;
        let messages = prepared.map_err(|why| frame.failed(why))?;
        // A single statement is its own transaction.
        let optimistic = matches!(self.mode, Mode::Optimistic | Mode::Batch);
        let is_single = frame == Frame::Whole && optimistic && messages.len() == 1;
        let is_bare = is_single || frame == Frame::Autocommit;
        let process = pooled.process;
        // Settings of a session do not apply on other nodes, nor reliably through a pooler, and those of
        // a shared connection would apply to all.
        let sets_local = distributed || process.is_some() || self.mode == Mode::Shared;
        let framed = sets_local || !is_bare;
        let begin = (frame.begins() && framed).then(|| self.mode.begin_sql());
        let before = if sets_local {
            String::new()
        } else {
            let lock_timeout = session::lock_timeout(&self.postgres.0.address.given);
            settings.session_sql(was.as_ref(), lock_timeout)
        };
        let after = match begin {
            Some(_) if sets_local => settings.transaction_sql(process),
            Some(_) | None => String::new(),
        };
        let mut sent: Vec<Sent<'_, _>> = Vec::with_capacity(messages.len() + 3);
        let begin = begin.unwrap_or_default();
        // Each is a separate message: Citus forwards the whole message of a setting.
        for sql in [&before, begin, &after] {
            if !sql.is_empty() {
                sent.push(control(client, sql));
            }
        }
        let ahead = sent.len();
        sent.extend(messages.send(client));
        if frame.commits() && framed {
            sent.push(control(client, "COMMIT"));
        }
        let answered = match usable {
            Some(usable) => in_order_shared(sent, usable).await,
            None => Some(in_order(sent).await),
        };
        match answered {
            // Nothing was sent.
            None => Err(State::Ended(Error::LostRace)),
            Some(Ok(responses)) => {
                let keys = messages.written_keys(responses.iter().skip(ahead));
                let (keys, has_lost) = keys.map_err(|why| frame.failed(why))?;
                let known = if sets_local { was } else { Some(settings) };
                if let Some(own) = self.own_client() {
                    own.settings = known;
                }
                if self.mode == Mode::Batch {
                    self.written = keys;
                } else if has_lost {
                    return Err(frame.lost_race());
                }
                let rows = match frame {
                    Frame::Commit | Frame::Whole => Ok(Vec::new()),
                    Frame::Autocommit | Frame::Begin | Frame::Continue => {
                        messages.decode(responses.into_iter().skip(ahead))
                    }
                };
                rows.map_err(|why| frame.failed(why))
            }
            Some(Err(broken)) => {
                let is_commit = is_single && !framed;
                let failed_at = broken.place.checked_sub(ahead);
                let failed_at =
                    failed_at.map(|place| messages.statement(place).filter(|_| !is_commit));
                if failed_at.is_none() && process.is_some() && pooler::is_other_process(&broken.why)
                {
                    self.postgres.suspect_pooler();
                    let why = error::pooler(&self.postgres.0.address.shown);
                    return Err(State::Lost(why));
                }
                Err(state_after(broken, failed_at, frame, framed))
            }
        }
    }

    /// Rolls back without waiting for the response: the next transaction on this connection is
    /// queued after the rollback.
    pub(super) fn roll_back(&mut self) {
        match self.state {
            State::Idle | State::Ended(_) | State::Waiting | State::Lost(_) => {}
            State::Open | State::Failed(_) => {
                let Some(own) = self.own_client() else {
                    return;
                };
                let mut sending = control(&own.client, "ROLLBACK");
                let sent = sending
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()));
                // A fast server may have responded already.
                let is_sent = matches!(sent, Poll::Pending | Poll::Ready(Ok(_)));
                drop(sending);
                if is_sent {
                    self.state = State::Idle;
                }
            }
        }
    }
}

impl Connection {
    /// Isolation of the reads of this transaction.
    pub(super) fn isolation(&self) -> Isolation {
        match self.mode {
            Mode::Read => Isolation::Serial,
            Mode::Lock => Isolation::Locking,
            Mode::Optimistic | Mode::Batch | Mode::Shared => Isolation::Optimistic {
                snapshots: self.autocommit_reads,
            },
        }
    }

    /// The error after which the transaction cannot continue.
    pub(super) fn failure(&self) -> Option<&Error> {
        match &self.state {
            State::Failed(why) | State::Ended(why) | State::Lost(why) => Some(why),
            State::Idle | State::Waiting | State::Open => None,
        }
    }
}

/// The part of a transaction that a round trip contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// Reads outside a transaction.
    Autocommit,
    /// The first statements.
    Begin,
    /// Neither the first nor the last statements.
    Continue,
    /// The last statements.
    Commit,
    /// All of it.
    Whole,
}

impl Frame {
    fn begins(self) -> bool {
        matches!(self, Frame::Autocommit | Frame::Begin | Frame::Whole)
    }

    fn commits(self) -> bool {
        matches!(self, Frame::Autocommit | Frame::Commit | Frame::Whole)
    }

    /// State of a connection after an error that the server did not report.
    fn failed(self, why: Error) -> State {
        match self {
            Frame::Autocommit => State::Ended(why),
            Frame::Begin | Frame::Continue | Frame::Commit | Frame::Whole => State::Failed(why),
        }
    }
}

impl Frame {
    /// State of a connection after a lost race. A commit was sent only with a statement that has
    /// written nothing.
    fn lost_race(self) -> State {
        if self.commits() {
            State::Ended(Error::LostRace)
        } else {
            State::Failed(Error::LostRace)
        }
    }
}

impl Mode {
    fn begin_sql(self) -> &'static str {
        match self {
            Mode::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Mode::Lock | Mode::Optimistic | Mode::Batch | Mode::Shared => {
                "BEGIN ISOLATION LEVEL READ COMMITTED"
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        match self.state {
            State::Idle | State::Ended(_) => {}
            // The caller was dropped. The server rolls back when the connection closes.
            State::Waiting | State::Open | State::Failed(_) | State::Lost(_) => {
                if let Some(client) = self.client.take() {
                    client.close(self.is_lost());
                }
            }
        }
    }
}

/// A message without parameters or rows.
fn control<'s>(client: &'s ClientWrapper, text: &'s str) -> Sent<'s, Vec<tokio_postgres::Row>> {
    Box::pin(async move { client.batch_execute(text).await.map(|()| Vec::new()) })
}

/// State of a connection after a pipeline failed: at the beginning of the transaction, at a
/// statement, or at its end.
fn state_after(
    broken: Broken,
    failed_at: Option<Option<&Statement>>,
    frame: Frame,
    framed: bool,
) -> State {
    let Broken { why, all_sent, .. } = broken;
    let ends = frame.commits() && all_sent;
    let ends_connection = error::ends_connection(&why);
    let writes = frame != Frame::Autocommit;
    let error = match failed_at {
        // The commit was sent, and the connection failed before its response.
        _ if ends && writes && why.as_db_error().is_none() => {
            error::outcome_unknown(&error::in_full(&why)).caused_by(why)
        }
        None => error::of_statement(why, "BEGIN"),
        Some(Some(statement)) => error::of_statement(why, statement.query.name()),
        Some(None) if writes => error::of_commit(why),
        Some(None) => error::of_statement(why, "COMMIT"),
    };
    if ends_connection {
        State::Lost(error)
    } else if ends || !(writes || framed) {
        // A commit after a failed statement is a rollback.
        State::Ended(error)
    } else {
        State::Failed(error)
    }
}
