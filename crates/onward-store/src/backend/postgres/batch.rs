//! A batch of named statements: prepared on the server, sent, and decoded.

use std::sync::Arc;

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Statement as Plan;
use tokio_postgres::types::ToSql;

use super::error;
use super::pipeline::{Sent, in_order};
use super::shape::{Shape, text, together, values};
use crate::error::Error;
use crate::statement::Statement;
use crate::value::{Row, Value};

/// Statements sent as one prepared statement.
struct Message<'b> {
    run: &'b [&'b Statement],
    plan: Plan,
    shape: Arc<Shape>,
}

/// Prepared statements, ready to be sent.
pub(super) struct Batch<'b>(Vec<Message<'b>>);

impl<'b> Batch<'b> {
    /// Prepares the statements. Those that are new to this connection cost one round trip together.
    pub(super) async fn prepare(
        client: &ClientWrapper,
        mut statements: &'b [&'b Statement],
    ) -> Result<Self, Error> {
        let mut runs = Vec::with_capacity(statements.len());
        while !statements.is_empty() {
            let (run, rest) = statements.split_at(together(statements));
            let shape = Shape::of(run);
            if let Some(unknown) = run.iter().find(|one| text(one.query).is_empty()) {
                return Err(Error::Refused(format!(
                    "`{}` has no text",
                    unknown.query.name()
                )));
            }
            runs.push((run, shape));
            statements = rest;
        }
        let mut distinct: Vec<&Arc<Shape>> = Vec::with_capacity(runs.len());
        for (_, shape) in &runs {
            if !distinct.iter().any(|known| Arc::ptr_eq(known, shape)) {
                distinct.push(shape);
            }
        }
        let asked = distinct.iter().map(|shape| {
            let asked: Sent<'_, Plan> = Box::pin(client.prepare_cached(&shape.text));
            asked
        });
        let plans = in_order(asked.collect()).await;
        let place = |shape| distinct.iter().position(|known| Arc::ptr_eq(known, shape));
        let plans = match plans {
            Ok(plans) => plans,
            Err(broken) => {
                let failed = runs
                    .iter()
                    .find(|(_, shape)| place(shape) == Some(broken.place));
                let name = failed.map_or("", |(run, _)| run[0].query.name());
                return Err(error::doing(&broken.why, name));
            }
        };
        let places: Vec<Option<usize>> = runs.iter().map(|(_, shape)| place(shape)).collect();
        let known = runs.into_iter().zip(places).filter_map(|(run, place)| {
            let plan = plans.get(place?)?.clone();
            let (run, shape) = run;
            Some(Message { run, plan, shape })
        });
        Ok(Self(known.collect()))
    }

    /// Number of messages.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The messages that run the statements.
    pub(super) fn messages<'s>(
        &'s self,
        client: &'s ClientWrapper,
    ) -> impl Iterator<Item = Sent<'s, Vec<tokio_postgres::Row>>> {
        self.0.iter().map(move |message| {
            let params = values(message.run);
            let params: Vec<_> = params.map(|value| value as &(dyn ToSql + Sync)).collect();
            let sent: Sent<'s, _> =
                Box::pin(async move { client.query(&message.plan, &params).await });
            sent
        })
    }

    /// The first statement of a message, for error messages.
    pub(super) fn statement(&self, message: usize) -> Option<&'b Statement> {
        self.0.get(message)?.run.first().copied()
    }

    /// Decodes the responses, one per message, into one list of rows per statement.
    pub(super) fn read(
        &self,
        answers: impl Iterator<Item = Vec<tokio_postgres::Row>>,
    ) -> Result<Vec<Vec<Row>>, Error> {
        let mut all = Vec::with_capacity(self.0.len());
        for (message, rows) in self.0.iter().zip(answers) {
            if !message.shape.answers {
                all.resize(all.len() + message.run.len(), Vec::new());
                continue;
            }
            let columns = message.shape.columns.get_or_init(|| {
                let names = message.plan.columns().iter();
                names.map(|column| column.name().to_owned()).collect()
            });
            let read = |row: tokio_postgres::Row| {
                let cells = (0..row.len()).map(|place| row.try_get(place));
                let values: Result<Vec<Value>, _> = cells.collect();
                values.map(|values| Row::new(Arc::clone(columns), values))
            };
            let rows: Result<Vec<Row>, _> = rows.into_iter().map(read).collect();
            let failed = |why| error::doing(&why, message.run[0].query.name());
            all.push(rows.map_err(failed)?);
        }
        Ok(all)
    }
}
