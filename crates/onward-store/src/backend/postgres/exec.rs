//! Transactions: a connection that commits alone, or in a batch with other callers.

use std::sync::Arc;

use super::batcher::{Batched, Queue};
use super::connection::{Connection, Mode};
use super::server::Postgres;
use super::shared::Shared;
use crate::backend::{Candidate, Exec, Isolation, NearestSearch, Response, Syntax};
use crate::error::Error;
use crate::statement::Statement;
use crate::value::{IntoValue as _, Row};

impl Postgres {
    /// Starts a transaction. Nothing is sent before its first batch.
    pub(crate) fn begin(&self, tenant: Arc<str>, mode: Mode) -> Box<dyn Exec> {
        let queue = match mode {
            Mode::Optimistic => self.queue(Arc::clone(&tenant)),
            Mode::Read | Mode::Lock | Mode::Batch | Mode::Shared => None,
        };
        let connection = Connection::new(self.clone(), tenant, mode);
        match queue {
            Some(queue) => Box::new(Batched::new(connection, queue)),
            None => Box::new(connection),
        }
    }

    /// Starts a transition that shares a connection, or one of the few beside it.
    pub(crate) fn begin_in(
        &self,
        tenant: Arc<str>,
        mode: Mode,
        shared: &Arc<Shared>,
    ) -> Box<dyn Exec> {
        let connection = Connection::new(self.clone(), tenant, mode);
        Box::new(connection.in_pipeline(Arc::clone(shared)))
    }

    /// A connection that transitions of several tenants share, and a quarter of the others.
    pub(crate) fn share(&self) -> Arc<Shared> {
        Arc::new(Shared::new((self.0.limits.connections / 4).max(1)))
    }

    /// How a transition that shares a connection begins. In a distributed database, each tenant is on
    /// one of several nodes.
    pub(crate) fn sharing_mode(&self) -> Mode {
        if self.0.distributed {
            Mode::Lock
        } else {
            Mode::Shared
        }
    }

    /// The queue of a tenant; `None` if transitions are not batched.
    pub(super) fn queue(&self, tenant: Arc<str>) -> Option<Queue> {
        let batchers = self.0.batchers.clone()?;
        Some(Queue::new(self.clone(), batchers, tenant))
    }
}

impl Exec for Connection {
    fn run<'a>(&'a mut self, batch: &'a [Statement], writes: bool) -> Response<'a, Vec<Vec<Row>>> {
        Box::pin(self.run_batch(batch, writes))
    }

    fn commit(&mut self, batch: Vec<Statement>) -> Response<'_, ()> {
        Box::pin(async move {
            let batch: Vec<&Statement> = batch.iter().collect();
            self.send_and_commit(&batch).await
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
        self.isolation()
    }

    fn failure(&self) -> Option<&Error> {
        self.failure()
    }

    fn syntax(&self) -> &'static Syntax {
        &SYNTAX
    }
}

pub(super) static SYNTAX: Syntax = Syntax {
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
