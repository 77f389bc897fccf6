//! The connection of one transaction.
//!
//! What begins the transaction goes out with the first batch, and what ends it with the last, so a
//! transaction that asks once and then writes takes two round trips. A transaction does not go on
//! after an error: whoever tries is given the same one again, and so is a commit.
//!
//! A transition holds nothing while it decides: it asks outside of a transaction, and what it writes
//! is one statement, which is a transaction by itself; only where it takes more is one begun.
//!
//! It is taken from the pool when something is sent: many transitions have nothing to ask, and go with others.
//! It is given back only where it is known to be between transactions.
//! Anything else (somebody was cut off in the middle, the server fell silent) closes it, and the server
//! takes back what was not committed.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio::time::timeout;
use tokio_postgres::Row as Answer;

use super::batch::Batch;
use super::pipeline::{Broken, Sent, in_order};
use super::pool::{Object, Settings};
use super::{Postgres, error};
use crate::error::Error;
use crate::tx::Statement;
use crate::value::Row;

/// A connection in a transaction.
pub(crate) struct Connection {
    postgres: Postgres,
    /// There once something was sent.
    client: Option<Object>,
    tenant: Arc<str>,
    kind: Kind,
    state: State,
    /// How many messages have asked outside of a transaction, each of which saw another moment.
    loose: usize,
}

/// What a connection is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reads, all of it from one state of the database.
    Reading,
    /// Locks what it decides on.
    Locking,
    /// Locks nothing: the version of the plan tells at the commit whether somebody else was there.
    Advancing,
    /// The same for several at once. Whoever holds one of their plans is waited for only for a moment.
    Together,
}

/// Where a connection stands.
enum State {
    /// In no transaction.
    Between,
    /// Something was sent and not all answered; whoever sent it may have gone away.
    Waiting,
    /// In a transaction that goes on.
    Open,
    /// In a transaction of which something failed.
    Failed(Error),
    /// In no transaction: the last one was given up, by the server itself.
    Ended(Error),
    /// Lost, with the transaction that was on it.
    Lost(Error),
}

impl Connection {
    /// A connection on which nothing has been sent yet.
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

    /// Whether all that it will write can be sent as one message, by whomever.
    pub(super) fn holds_nothing(&self) -> bool {
        self.kind == Kind::Advancing && matches!(self.state, State::Between)
    }

    /// Whether what was sent last may have been written, although it was not answered.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost(_))
    }

    /// Whether the server could not be asked. That is an answer, whatever was seen before.
    pub(crate) fn is_unavailable(&self) -> bool {
        let (State::Failed(why) | State::Ended(why) | State::Lost(why)) = &self.state else {
            return false;
        };
        matches!(why, Error::Unavailable { .. })
    }

    /// Whether there was one to be had.
    pub(super) fn is_there(&self) -> bool {
        self.client.is_some()
    }

    /// Gives it back for as long as nothing is sent.
    pub(super) fn rest(&mut self) {
        if let State::Between = self.state {
            self.client = None;
        }
    }

    /// Takes a connection, where there is none yet. Nobody waits for one without a limit.
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

    /// How long an answer is waited for.
    fn patience(&self) -> Duration {
        self.postgres.0.limits.answer
    }

    /// Whether what is decided on must be locked first.
    pub(crate) fn locks(&self) -> bool {
        self.kind == Kind::Locking
    }

    /// Whether all that was asked is of one moment.
    pub(crate) fn saw_one_moment(&self) -> bool {
        self.loose <= 1
    }

    /// Runs the statements, all in one round trip. Those that give no rows answer with none.
    pub(crate) async fn run(
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

    /// Whether the database refused something because somebody else was faster.
    pub(crate) fn lost_race(&self) -> bool {
        // A transaction does not go on after an error, so the state is still that of the first one.
        matches!(
            &self.state,
            State::Failed(Error::LostRace) | State::Ended(Error::LostRace)
        )
    }

    /// Whether a transaction has yet to begin. An error where none can go on.
    fn begins(&self) -> Result<bool, Error> {
        match &self.state {
            State::Between => Ok(true),
            State::Open => Ok(false),
            State::Failed(why) | State::Ended(why) | State::Lost(why) => Err(why.clone()),
            State::Waiting => Err(Error::unavailable(
                "a call was cut off inside of its transaction",
                "send the call again",
            )),
        }
    }

    /// Runs what is left, and commits, all in one round trip.
    pub(super) async fn commit(&mut self, batch: &[&Statement]) -> Result<(), Error> {
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
        let silent = |_| {
            let why = format!("nothing came within {patience:?}");
            Err(State::Lost(error::unanswered(&why)))
        };
        match limited.unwrap_or_else(silent) {
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

    /// One round trip, or two where the server does not know a statement yet. The error says where
    /// the connection stands after it.
    async fn exchange(
        &mut self,
        statements: &[&Statement],
        frame: Frame,
    ) -> Result<Vec<Vec<Row>>, State> {
        let Some(held) = &mut self.client else {
            return Err(State::Lost(Error::Refused(
                "the connection is gone".to_owned(),
            )));
        };
        // Set anew unless all that is sent here is answered well.
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
        // One statement is a transaction by itself.
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

    /// Takes back what was not committed, without waiting for it.
    pub(super) fn rollback(&mut self) {
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

/// What stands around the statements of one round trip.
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
            // Whoever held it was cut off: the server takes everything back when it closes.
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

/// Where a connection stands after a pipeline that broke, at what begins the transaction, at a
/// statement, or at what ends it.
fn stands(broken: &Broken, about: Option<Option<&Statement>>, commits: bool) -> State {
    let Broken { why, all_sent, .. } = broken;
    let committing = commits && *all_sent;
    let error = match about {
        // The commit was on its way when the answers stopped coming.
        _ if committing && why.as_db_error().is_none() => error::unanswered(&error::in_full(why)),
        None => error::doing(why, "BEGIN"),
        Some(Some(statement)) => error::doing(why, statement.name),
        Some(None) => error::committing(why),
    };
    if error::ends_connection(why) {
        State::Lost(error)
    } else if committing {
        // A commit behind a statement that failed is a rollback.
        State::Ended(error)
    } else {
        State::Failed(error)
    }
}
