//! One connection, for the length of one transaction.
//!
//! What begins the transaction goes out with the first batch, and what ends it with the last, so a
//! transaction that asks once and then writes takes two round trips. A transaction does not go on
//! after an error: whoever tries is given the same one again, and so is a commit.
//!
//! A transition holds nothing while it decides: it asks outside of a transaction, and what it writes
//! is one statement, which is a transaction by itself; only where it takes more is one begun.
//!
//! The connection is given back to the pool only where it is known to be between transactions.
//! Anything else (somebody was cut off in the middle, the server fell silent) closes it, and the server
//! takes back what was not committed.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio::time::timeout;
use tokio_postgres::Row as Answer;

use super::batch::Batch;
use super::error;
use super::pipeline::{Broken, Sent, in_order};
use super::pool::Object;
use crate::error::Error;
use crate::tx::Statement;
use crate::value::Row;

/// A connection in a transaction.
pub(crate) struct Connection {
    /// Always there, until it is dropped.
    client: Option<Object>,
    tenant: Arc<str>,
    kind: Kind,
    /// How long an answer is waited for.
    patience: Duration,
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
    pub(super) fn new(client: Object, tenant: Arc<str>, kind: Kind, patience: Duration) -> Self {
        Self {
            client: Some(client),
            tenant,
            kind,
            patience,
            state: State::Between,
            loose: 0,
        }
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
        let loose = between && !changes && self.kind == Kind::Advancing;
        let frame = Frame {
            begins: between && !loose,
            commits: false,
        };
        self.state = State::Waiting;
        let limited = timeout(self.patience, self.exchange(batch, frame)).await;
        match limited.unwrap_or_else(|_| Err(State::Lost(error::silent(self.patience)))) {
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
    pub(super) async fn commit(&mut self, batch: &[Statement]) -> Result<(), Error> {
        let begins = self.begins()?;
        if begins && batch.is_empty() {
            return Ok(());
        }
        let frame = Frame {
            begins,
            commits: true,
        };
        self.state = State::Waiting;
        let limited = timeout(self.patience, self.exchange(batch, frame)).await;
        let silent = |_| {
            let why = format!("nothing came within {:?}", self.patience);
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
        statements: &[Statement],
        frame: Frame,
    ) -> Result<Vec<Vec<Row>>, State> {
        let Some(held) = &mut self.client else {
            return Err(State::Lost(Error::Refused(
                "the connection is gone".to_owned(),
            )));
        };
        // Set anew unless all that is sent here is answered well.
        let named = held.tenant.take();
        let client = &held.client;
        let batch = Batch::prepare(client, statements)
            .await
            .map_err(State::Failed)?;
        // One statement is a transaction by itself.
        let alone = self.kind == Kind::Advancing && batch.len() == 1;
        let Frame { begins, commits } = frame;
        let framed = !(begins && commits && alone);
        let naming = naming(&self.tenant);
        let mut messages: Vec<Sent<'_, _>> = Vec::with_capacity(statements.len() + 3);
        if named.as_ref() != Some(&self.tenant) {
            messages.push(control(client, &naming));
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
                held.tenant = Some(Arc::clone(&self.tenant));
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
            Kind::Locking | Kind::Advancing => "BEGIN ISOLATION LEVEL READ COMMITTED",
        }
    }
}

/// Names the tenant that row security lets through, from now on. Every statement names it too, so
/// where the two differ nothing is seen and nothing written.
fn naming(tenant: &str) -> String {
    // Quoted so that it means the same however the server reads backslashes.
    let tenant = tenant.replace('\\', r"\\").replace('\'', "''");
    format!("SET onward.tenant = E'{tenant}'")
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
