//! One connection, for the length of one transaction.
//!
//! What begins the transaction goes out with the first batch, and what ends it with the last, so a
//! transaction that asks once and then writes takes two round trips. A transaction does not go on
//! after an error: whoever tries is given the same one again, and so is a commit.
//!
//! The connection is given back to the pool only where it is known to be between transactions.
//! Anything else (somebody was cut off in the middle, the server fell silent) closes it, and the server
//! takes back what was not committed.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object};
use tokio::time::timeout;
use tokio_postgres::Row as Answer;

use super::batch::Batch;
use super::error;
use super::pipeline::{Broken, Sent, in_order};
use crate::error::Error;
use crate::tx::Statement;
use crate::value::Row;

/// A connection in a transaction.
pub(crate) struct Connection {
    /// Always there, until it is dropped.
    client: Option<Object>,
    tenant: Arc<str>,
    read_only: bool,
    /// How long an answer is waited for.
    patience: Duration,
    state: State,
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
    pub(super) fn new(
        client: Object,
        tenant: Arc<str>,
        read_only: bool,
        patience: Duration,
    ) -> Self {
        Self {
            client: Some(client),
            tenant,
            read_only,
            patience,
            state: State::Between,
        }
    }

    /// Runs the statements, all in one round trip. Those that give no rows answer with none.
    pub(crate) async fn run(&mut self, batch: &[Statement]) -> Result<Vec<Vec<Row>>, Error> {
        let begins = self.begins()?;
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        self.state = State::Waiting;
        let limited = timeout(self.patience, self.exchange(batch, begins, false)).await;
        let silent = |_| Err(State::Lost(error::silent(self.patience)));
        match limited.unwrap_or_else(silent) {
            Ok(rows) => {
                self.state = State::Open;
                Ok(rows)
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
        matches!(&self.state, State::Failed(Error::LostRace))
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
        self.state = State::Waiting;
        let limited = timeout(self.patience, self.exchange(batch, begins, true)).await;
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
        &self,
        statements: &[Statement],
        begins: bool,
        commits: bool,
    ) -> Result<Vec<Vec<Row>>, State> {
        let Some(client) = &self.client else {
            return Err(State::Lost(Error::Refused(
                "the connection is gone".to_owned(),
            )));
        };
        let batch = Batch::prepare(client, statements)
            .await
            .map_err(State::Failed)?;
        let beginning = self.beginning();
        let mut messages: Vec<Sent<'_, _>> = Vec::with_capacity(statements.len() + 2);
        if begins {
            messages.push(control(client, &beginning));
        }
        let ahead = messages.len();
        messages.extend(batch.messages(client));
        if commits {
            messages.push(control(client, "COMMIT"));
        }
        match in_order(messages).await {
            Ok(_) if commits => Ok(Vec::new()),
            Ok(answers) => {
                let answers = answers.into_iter().skip(ahead);
                batch.read(answers).map_err(State::Failed)
            }
            Err(broken) => {
                let about = broken.place.checked_sub(ahead);
                let about = about.map(|place| batch.statement(place));
                Err(stands(&broken, about, commits))
            }
        }
    }

    /// What every transaction begins with: the role that row security binds, and the tenant. One
    /// message, since each costs as much as a small statement.
    fn beginning(&self) -> String {
        let mode = if self.read_only {
            "REPEATABLE READ READ ONLY"
        } else {
            "READ COMMITTED"
        };
        // Quoted so that it means the same however the server reads backslashes.
        let tenant = self.tenant.replace('\\', r"\\").replace('\'', "''");
        format!(
            "BEGIN ISOLATION LEVEL {mode}; SET LOCAL ROLE onward_tenant; \
             SET LOCAL onward.tenant = E'{tenant}'"
        )
    }

    /// Takes back what was not committed, without waiting for it.
    pub(super) fn rollback(&mut self) {
        match self.state {
            State::Between | State::Ended(_) | State::Waiting | State::Lost(_) => {}
            State::Open | State::Failed(_) => {
                let Some(client) = &self.client else { return };
                let mut sending = control(client, "ROLLBACK");
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
