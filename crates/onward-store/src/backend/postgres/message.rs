//! Statements as messages: prepared on the server, sent, and decoded.

use std::sync::Arc;

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Statement as Plan;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::error;
use super::merge::{Form, MessageText, OnLostRace, mergeable, parameters};
use super::pipeline::{Sent, in_order};
use super::pool::PooledClient;
use crate::error::Error;
use crate::statement::Statement;
use crate::value::{Row, Value};

/// Statements sent as one prepared statement.
struct Message<'b> {
    run: &'b [&'b Statement],
    plan: Plan,
    text: Arc<MessageText>,
}

/// Prepared messages, ready to be sent.
pub(super) struct Messages<'b> {
    messages: Vec<Message<'b>>,
    distributed: bool,
}

impl<'b> Messages<'b> {
    /// Prepares the statements. Those that are new to this connection cost one round trip together.
    pub(super) async fn prepare(
        client: &PooledClient,
        mut statements: &'b [&'b Statement],
        distributed: bool,
        on_lost_race: OnLostRace,
    ) -> Result<Self, Error> {
        let mut runs = Vec::with_capacity(statements.len());
        let mut form = Form::new(distributed);
        while !statements.is_empty() {
            let (run, rest) = statements.split_at(mergeable(statements, distributed));
            let Some(text) = MessageText::new(run, form, on_lost_race) else {
                return Err(Error::refused(format!(
                    "`{}` has no text",
                    run[0].query.name()
                )));
            };
            runs.push((run, text));
            form = form.after(run);
            statements = rest;
        }
        let mut distinct: Vec<&Arc<MessageText>> = Vec::with_capacity(runs.len());
        for (_, text) in &runs {
            if !distinct.iter().any(|known| Arc::ptr_eq(known, text)) {
                distinct.push(text);
            }
        }
        let preparing = distinct.iter().map(|text| {
            let prepared: Sent<'_, Plan> = Box::pin(client.prepare(&text.sql));
            prepared
        });
        let plans = in_order(preparing.collect()).await;
        let place = |text| distinct.iter().position(|known| Arc::ptr_eq(known, text));
        let plans = match plans {
            Ok(plans) => plans,
            Err(broken) => {
                let failed = runs
                    .iter()
                    .find(|(_, text)| place(text) == Some(broken.place));
                let name = failed.map_or("", |(run, _)| run[0].query.name());
                return Err(error::of_statement(broken.why, name));
            }
        };
        let places: Vec<Option<usize>> = runs.iter().map(|(_, text)| place(text)).collect();
        let messages = runs
            .into_iter()
            .zip(places)
            .filter_map(|((run, text), place)| {
                let plan = plans.get(place?)?.clone();
                Some(Message { run, plan, text })
            });
        Ok(Self {
            messages: messages.collect(),
            distributed,
        })
    }

    /// Number of messages.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// The messages that run the statements.
    pub(super) fn send<'s>(
        &'s self,
        client: &'s ClientWrapper,
    ) -> impl Iterator<Item = Sent<'s, Vec<tokio_postgres::Row>>> {
        self.messages.iter().map(move |message| {
            let params = parameters(message.run, self.distributed);
            let params: Vec<_> = params.map(|value| value as &(dyn ToSql + Sync)).collect();
            let sent: Sent<'s, _> =
                Box::pin(async move { client.query(&message.plan, &params).await });
            sent
        })
    }

    /// The keys of the rows that were written by the statements that may lose a race, and whether one
    /// of them has lost it. There is one response per message.
    pub(super) fn written_keys<'r>(
        &self,
        responses: impl Iterator<Item = &'r Vec<tokio_postgres::Row>>,
    ) -> Result<(Vec<Uuid>, bool), Error> {
        let (mut keys, mut has_lost) = (Vec::new(), false);
        for (message, rows) in self.messages.iter().zip(responses) {
            if !message.text.returns_keys {
                continue;
            }
            let run = message.run.iter();
            // A padding row has no key.
            let expected =
                run.filter(|one| one.may_lose_race() && one.params.get(1) != Some(&Value::Null));
            has_lost |= rows.len() < expected.count();
            for row in rows {
                let failed = |why| error::of_statement(why, message.run[0].query.name());
                if let Value::Id(key) = row.try_get(0).map_err(failed)? {
                    keys.push(key);
                }
            }
        }
        Ok((keys, has_lost))
    }

    /// The first statement of a message, for error messages.
    pub(super) fn statement(&self, message: usize) -> Option<&'b Statement> {
        self.messages.get(message)?.run.first().copied()
    }

    /// Decodes the responses, one per message, into one list of rows per statement.
    pub(super) fn decode(
        &self,
        responses: impl Iterator<Item = Vec<tokio_postgres::Row>>,
    ) -> Result<Vec<Vec<Row>>, Error> {
        let mut all = Vec::with_capacity(self.messages.len());
        for (message, rows) in self.messages.iter().zip(responses) {
            if !message.text.returns_rows {
                all.resize(all.len() + message.run.len(), Vec::new());
                continue;
            }
            let columns = message.text.columns.get_or_init(|| {
                let names = message.plan.columns().iter();
                names.map(|column| column.name().to_owned()).collect()
            });
            let decode = |row: tokio_postgres::Row| {
                let cells = (0..row.len()).map(|place| row.try_get(place));
                let values: Result<Vec<Value>, _> = cells.collect();
                values.map(|values| Row::new(Arc::clone(columns), values))
            };
            let rows: Result<Vec<Row>, _> = rows.into_iter().map(decode).collect();
            let failed = |why| error::of_statement(why, message.run[0].query.name());
            all.push(rows.map_err(failed)?);
        }
        Ok(all)
    }
}
