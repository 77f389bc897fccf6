//! The connection of one transaction. It is taken from the pool when something is sent, and
//! returned only outside a transaction. In any other case (a cancelled call, a timeout) it is
//! closed, and the server rolls back.
//!
//! `BEGIN` is sent with the first batch and `COMMIT` with the last. After an error, every further
//! call returns that error. A transition reads in autocommit mode and writes one statement; it
//! begins a transaction only for more.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio::time::timeout;
use tokio_postgres::Row as Answer;

use super::batch::Batch;
use super::pipeline::{Broken, Sent, in_order};
use super::pool::{Object, Settings};
use super::{Postgres, error, group};
use crate::backend::{Candidate, Exec, Isolation, NearestSearch, Response, Syntax};
use crate::error::Error;
use crate::statement::Statement;
use crate::value::{IntoValue as _, Row};

/// A connection in a transaction.
pub(crate) struct Connection {
    postgres: Postgres,
    /// Present once something was sent.
    client: Option<Object>,
    tenant: Arc<str>,
    kind: Kind,
    state: State,
    /// Number of queries sent in autocommit mode, each of which saw its own snapshot.
    loose: usize,
}

/// Mode of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reads from a single snapshot.
    Reading,
    /// Locks a plan before reading it.
    Locking,
    /// Optimistic: locks nothing. The version check at commit detects concurrent changes.
    Advancing,
    /// A batch of optimistic transitions. Waits at most 20 ms for a locked row.
    Together,
}

/// State of a connection.
enum State {
    /// Outside a transaction.
    Between,
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
    pub(super) fn new(postgres: Postgres, tenant: Arc<str>, kind: Kind) -> Self {
        Self {
            postgres,
            client: None,
            tenant,
            kind,
            state: State::Between,
            loose: 0,
        }
    }

    pub(super) fn postgres(&self) -> &Postgres {
        &self.postgres
    }

    pub(super) fn tenant(&self) -> &Arc<str> {
        &self.tenant
    }

    /// Whether its writes can be batched: all of them can still be sent as one message, on any
    /// connection.
    pub(super) fn holds_nothing(&self) -> bool {
        self.postgres.0.batching
            && self.kind == Kind::Advancing
            && matches!(self.state, State::Between)
    }

    /// Whether the connection was lost, so that the last message may have been executed.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost(_))
    }

    /// Whether the pool provided a connection.
    pub(super) fn is_there(&self) -> bool {
        self.client.is_some()
    }

    /// Returns the connection to the pool, unless it is in use.
    pub(super) fn rest(&mut self) {
        if let State::Between = self.state {
            self.client = None;
        }
    }

    /// Takes a connection from the pool, if there is none yet. The wait is limited.
    pub(super) async fn take(&mut self) -> Result<(), Error> {
        if self.client.is_none() {
            match self.postgres.take().await {
                Ok(client) => self.client = Some(client),
                Err(why) => {
                    self.state = State::Ended(why.clone());
                    return Err(why);
                }
            }
        }
        Ok(())
    }

    /// Maximum wait for a response.
    fn patience(&self) -> Duration {
        self.postgres.0.limits.answer
    }

    /// Runs the statements in one round trip. A statement without rows returns an empty list.
    async fn run_batch(
        &mut self,
        batch: &[Statement],
        changes: bool,
    ) -> Result<Vec<Vec<Row>>, Error> {
        let between = self.begins()?;
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        self.take().await?;
        let batch: Vec<&Statement> = batch.iter().collect();
        let loose = between && !changes && self.kind == Kind::Advancing;
        let frame = Frame {
            begins: between && !loose,
            commits: false,
        };
        self.state = State::Waiting;
        let patience = self.patience();
        let limited = timeout(patience, self.exchange(&batch, frame)).await;
        match limited.unwrap_or_else(|_| Err(State::Lost(error::silent(patience)))) {
            Ok(rows) if loose => {
                self.loose += batch.len();
                self.state = State::Between;
                Ok(rows)
            }
            Ok(rows) => {
                self.state = State::Open;
                Ok(rows)
            }
            Err(State::Failed(why)) if loose => {
                self.state = State::Ended(why.clone());
                Err(why)
            }
            Err(state) => {
                self.state = state;
                self.begins().map(|_| Vec::new())
            }
        }
    }

    /// Whether the next batch must begin the transaction. Fails if the transaction cannot continue.
    fn begins(&self) -> Result<bool, Error> {
        match &self.state {
            State::Between => Ok(true),
            State::Open => Ok(false),
            State::Failed(why) | State::Ended(why) | State::Lost(why) => Err(why.clone()),
            State::Waiting => Err(Error::unavailable(
                "a call was cancelled inside its transaction",
                "retry the call",
            )),
        }
    }

    /// Runs the remaining statements and commits, in one round trip.
    pub(super) async fn send_and_commit(&mut self, batch: &[&Statement]) -> Result<(), Error> {
        let begins = self.begins()?;
        if begins && batch.is_empty() {
            return Ok(());
        }
        self.take().await?;
        let frame = Frame {
            begins,
            commits: true,
        };
        self.state = State::Waiting;
        let patience = self.patience();
        let limited = timeout(patience, self.exchange(batch, frame)).await;
        let timed_out = |_| {
            let why = format!("no response within {patience:?}");
            Err(State::Lost(error::unanswered(&why)))
        };
        match limited.unwrap_or_else(timed_out) {
            Ok(_) => {
                self.state = State::Between;
                Ok(())
            }
            Err(state) => {
                self.state = state;
                self.begins().map(|_| ())
            }
        }
    }

    /// Runs one query and returns its rows.
    async fn rows(&mut self, query: &Statement) -> Result<Vec<Row>, Error> {
        let mut answers = self.run_batch(std::slice::from_ref(query), false).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// One round trip, or two if a statement must be prepared. On failure, returns the new state of
    /// the connection.
    async fn exchange(
        &mut self,
        statements: &[&Statement],
        frame: Frame,
    ) -> Result<Vec<Vec<Row>>, State> {
        let Some(held) = &mut self.client else {
            return Err(State::Lost(Error::Refused(
                "the connection is closed".to_owned(),
            )));
        };
        // Unknown unless everything sent here succeeds; then all settings are sent again.
        let was = held.settings.take();
        let settings = Settings {
            tenant: Arc::clone(&self.tenant),
            waits: self.kind != Kind::Together,
        };
        let setting = settings.text(was.as_ref());
        let client = &held.client;
        let batch = Batch::prepare(client, statements)
            .await
            .map_err(State::Failed)?;
        // A single statement is its own transaction.
        let loose = matches!(self.kind, Kind::Advancing | Kind::Together);
        let alone = loose && batch.len() == 1;
        let Frame { begins, commits } = frame;
        let framed = !(begins && commits && alone);
        let mut messages: Vec<Sent<'_, _>> = Vec::with_capacity(statements.len() + 3);
        if !setting.is_empty() {
            messages.push(control(client, &setting));
        }
        if begins && framed {
            messages.push(control(client, self.kind.beginning()));
        }
        let ahead = messages.len();
        messages.extend(batch.messages(client));
        if commits && framed {
            messages.push(control(client, "COMMIT"));
        }
        match in_order(messages).await {
            Ok(answers) => {
                let read = match commits {
                    true => Ok(Vec::new()),
                    false => batch.read(answers.into_iter().skip(ahead)),
                };
                held.settings = Some(settings);
                read.map_err(State::Failed)
            }
            Err(broken) => {
                let about = broken.place.checked_sub(ahead);
                let about = about.map(|place| batch.statement(place).filter(|_| framed));
                Err(stands(&broken, about, commits))
            }
        }
    }

    /// Rolls back without waiting for the response: the next transaction on this connection is
    /// queued after the rollback.
    pub(super) fn roll_back(&mut self) {
        match self.state {
            State::Between | State::Ended(_) | State::Waiting | State::Lost(_) => {}
            State::Open | State::Failed(_) => {
                let Some(held) = &self.client else { return };
                let mut sending = control(&held.client, "ROLLBACK");
                let sent = sending
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()));
                if sent.is_pending() {
                    drop(sending);
                    self.state = State::Between;
                }
            }
        }
    }
}

impl Exec for Connection {
    fn run<'a>(&'a mut self, batch: &'a [Statement], writes: bool) -> Response<'a, Vec<Vec<Row>>> {
        Box::pin(self.run_batch(batch, writes))
    }

    fn commit(&mut self, batch: Vec<Statement>) -> Response<'_, ()> {
        Box::pin(async {
            let batch = match group::joins(&batch) {
                Some(plan) if self.holds_nothing() => group::commit(self, plan, batch).await?,
                Some(_) | None => Some(batch),
            };
            let Some(batch) = batch else { return Ok(()) };
            self.send_and_commit(&batch.iter().collect::<Vec<_>>())
                .await
        })
    }

    fn rollback(&mut self) {
        self.roll_back();
    }

    /// An unfiltered search tries the tenant's index first. Without an index, or if it finds fewer
    /// chunks than requested, all chunks are scanned.
    fn nearest<'a>(&'a mut self, search: &'a NearestSearch) -> Response<'a, Vec<Candidate>> {
        Box::pin(async {
            let mut rows = Vec::new();
            if let Some(by_index) = &search.by_index {
                rows = self.rows(by_index).await?;
            }
            if u32::try_from(rows.len()).is_ok_and(|rows| rows < search.count) {
                rows = self.rows(&search.scan).await?;
            }
            rows.into_iter().map(candidate).collect()
        })
    }

    fn isolation(&self) -> Isolation {
        match self.kind {
            Kind::Reading => Isolation::Serial,
            Kind::Locking => Isolation::Locking,
            Kind::Advancing | Kind::Together => Isolation::Optimistic {
                snapshots: self.loose,
            },
        }
    }

    fn failure(&self) -> Option<&Error> {
        match &self.state {
            State::Failed(why) | State::Ended(why) | State::Lost(why) => Some(why),
            State::Between | State::Waiting | State::Open => None,
        }
    }

    fn syntax(&self) -> &'static Syntax {
        &SYNTAX
    }
}

static SYNTAX: Syntax = Syntax {
    quote: '\'',
    prefix: ":*",
    and: " & ",
    or: " | ",
    sign: |bits| {
        let bits = bits.iter().map(|bit| if *bit { '1' } else { '0' });
        bits.collect::<String>().into_value()
    },
    updates_every_index: false,
    has_sign_index: true,
};

fn candidate(row: Row) -> Result<Candidate, Error> {
    let mut cells = row.cells("vectors");
    let chunk = (cells.id("source_id")?, cells.int("ordinal")?);
    Ok((chunk, cells.bytes("vector")?))
}

/// Whether a round trip begins or commits a transaction.
#[derive(Debug, Clone, Copy)]
struct Frame {
    begins: bool,
    commits: bool,
}

impl Kind {
    fn beginning(self) -> &'static str {
        match self {
            Kind::Reading => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Kind::Locking | Kind::Advancing | Kind::Together => {
                "BEGIN ISOLATION LEVEL READ COMMITTED"
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        match self.state {
            State::Between | State::Ended(_) => {}
            // The caller was dropped. The server rolls back when the connection closes.
            State::Waiting | State::Open | State::Failed(_) | State::Lost(_) => {
                drop(self.client.take().map(Object::take));
            }
        }
    }
}

/// A message without parameters or rows.
fn control<'s>(client: &'s ClientWrapper, text: &'s str) -> Sent<'s, Vec<Answer>> {
    Box::pin(async move { client.batch_execute(text).await.map(|()| Vec::new()) })
}

/// State of a connection after a pipeline failed: at the beginning of the transaction, at a
/// statement, or at its end.
fn stands(broken: &Broken, about: Option<Option<&Statement>>, commits: bool) -> State {
    let Broken { why, all_sent, .. } = broken;
    let committing = commits && *all_sent;
    let error = match about {
        // The commit was sent, and the connection failed before its response.
        _ if committing && why.as_db_error().is_none() => error::unanswered(&error::in_full(why)),
        None => error::doing(why, "BEGIN"),
        Some(Some(statement)) => error::doing(why, statement.query.name()),
        Some(None) => error::committing(why),
    };
    if error::ends_connection(why) {
        State::Lost(error)
    } else if committing {
        // A commit after a failed statement is a rollback.
        State::Ended(error)
    } else {
        State::Failed(error)
    }
}
