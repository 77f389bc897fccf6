//! The connection of a transaction: a shared handle to an open file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_core::search::Vector;

use super::file::File;
use super::nearest;
use crate::backend::{Candidate, Exec, Isolation, NearestSearch, Response, Syntax};
use crate::error::Error;
use crate::statement::Statement;
use crate::value::{IntoValue as _, Row};

/// A handle to a connection, for the transaction of one caller after another. Its owner begins and
/// ends the transactions.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Mutex<File>>);

impl Connection {
    pub(super) fn new(file: File) -> Self {
        Self(Arc::new(Mutex::new(file)))
    }

    /// The connection. Only one caller uses it at a time, so the lock is free.
    pub(super) fn lock(&self) -> MutexGuard<'_, File> {
        // After a panic inside a statement the connection is still valid; its owner rolls back.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a statement that is not in a query file.
    pub(super) fn control(&self, text: &'static str) -> Result<(), Error> {
        self.lock().control(text)
    }
}

impl Exec for Connection {
    fn run<'a>(&'a mut self, batch: &'a [Statement], _writes: bool) -> Response<'a, Vec<Vec<Row>>> {
        Box::pin(std::future::ready(self.lock().run(batch)))
    }

    fn commit(&mut self, batch: Vec<Statement>) -> Response<'_, ()> {
        let run = self.lock().run(&batch).map(|_| ());
        Box::pin(std::future::ready(run))
    }

    fn rollback(&mut self) {}

    fn nearest<'a>(&'a mut self, search: &'a NearestSearch) -> Response<'a, Vec<Candidate>> {
        let found = nearest::nearest(&self.lock(), search);
        Box::pin(std::future::ready(found))
    }

    fn isolation(&self) -> Isolation {
        Isolation::Serial
    }

    fn failure(&self) -> Option<&Error> {
        None
    }

    fn syntax(&self) -> &'static Syntax {
        &SYNTAX
    }
}

pub(super) static SYNTAX: Syntax = Syntax {
    quote: '"',
    prefix: "*",
    and: " AND ",
    or: " OR ",
    sign: |bits| Vector::pack_bits(bits).into_value(),
    updates_every_index: true,
    has_sign_index: false,
};
