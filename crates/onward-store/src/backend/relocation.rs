//! Copies of a whole database: the interface of the two ends of a move.

use std::sync::Arc;

use super::{Response, Syntax};
use crate::copied_table::{Page, Table, Values};
use crate::error::{Error, Hint};

/// Rows to insert into the target, and the progress to record in the same transaction.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) table: &'a Table,
    pub(crate) tenant: &'a Arc<str>,
    /// The columns of the table, then the derived values.
    pub(crate) rows: &'a [Values],
    pub(crate) last_key: &'a str,
    /// Number of rows that were copied before.
    pub(crate) copied: u64,
}

/// Progress of one table and tenant, as recorded in the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) tenant: String,
    pub(crate) table: String,
    pub(crate) last_key: String,
    pub(crate) rows: u64,
}

/// One end of a move.
pub(crate) trait Endpoint: Send {
    /// The tables of the database, sorted by name.
    fn tables(&mut self) -> Response<'_, Vec<Table>>;

    /// The names of all tenants, sorted.
    fn tenants(&mut self) -> Response<'_, Vec<Arc<str>>>;

    /// Number of rows of a tenant.
    fn count<'a>(&'a mut self, table: &'a Table, tenant: &'a Arc<str>) -> Response<'a, u64>;

    /// Reads a page.
    fn read<'a>(&'a mut self, page: Page<'a>) -> Response<'a, Vec<Values>>;

    /// Marks the database as the target of a move, and deletes the tenant that an empty database
    /// has. Until [`Self::finish`], no process can open it.
    fn begin<'a>(&'a mut self, placeholder: Option<&'a Arc<str>>) -> Response<'a, ()>;

    /// The recorded progress; `None` if no move into this database has begun.
    fn progress(&mut self) -> Response<'_, Option<Vec<Copied>>>;

    /// Inserts rows and records the progress, in one transaction.
    fn write<'a>(&'a mut self, batch: Batch<'a>) -> Response<'a, ()>;

    /// Removes the mark of [`Self::begin`].
    fn finish(&mut self) -> Response<'_, ()>;

    /// Encoding of derived values.
    fn syntax(&self) -> &'static Syntax;
}

/// A database that another process cannot use, because a move into it has not ended.
pub(crate) fn unfinished() -> Error {
    Error::Move {
        why: "the database is the target of an unfinished move".to_owned(),
        hint: Hint::for_operator(
            "run the same `onward move` command again to continue it, or use another database",
        ),
    }
}

/// A target whose progress another process has changed.
pub(crate) fn raced() -> Error {
    Error::Move {
        why: "another process moves data into the same target".to_owned(),
        hint: Hint::for_operator("wait until the other `onward move` ends"),
    }
}

/// A target of a move with another version of the schema.
pub(crate) fn other_version() -> Error {
    Error::Move {
        why: "another version of `onward` began the move into this target".to_owned(),
        hint: "continue with that version, or use a new target".into(),
    }
}
