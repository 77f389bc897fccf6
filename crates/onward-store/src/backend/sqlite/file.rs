//! A connection to the file, which runs statements.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rusqlite::OpenFlags;
use rusqlite::types::{ToSqlOutput, ValueRef};
use uuid::Uuid;

use super::sign_bit_cache::SignBitCache;
use super::{busy, error, statement_text};
use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::value::{Columns, Row, Value};

/// Capacity of the prepared statement cache: more than there are statements.
const PREPARED: usize = 256;

/// A connection to the file.
pub(crate) struct File {
    pub(crate) file: rusqlite::Connection,
    /// Sign-bit cache, shared by all readers of the file.
    pub(super) signs: SignBitCache,
    columns: HashMap<Query, Columns>,
}

impl File {
    /// Opens an existing file, which is not changed.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |why| error::opening(why, path);
        // Without `SQLITE_OPEN_CREATE`: a deleted file is not created again.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut file = rusqlite::Connection::open_with_flags(path, flags).map_err(failed)?;
        file.set_prepared_statement_cache_capacity(PREPARED);
        busy::install(&mut file).map_err(failed)?;
        // Checkpoint after this many pages: less often than by default, because a page that is
        // written repeatedly is copied only once.
        file.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000;
             PRAGMA journal_size_limit = 67108864; PRAGMA trusted_schema = OFF;",
        )
        .map_err(failed)?;
        // Stable query plans: a plan that depends on bound values is made again with every call.
        file.set_db_config(
            rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG,
            true,
        )
        .map_err(failed)?;
        Ok(Self {
            file,
            signs: SignBitCache::default(),
            columns: HashMap::new(),
        })
    }

    /// Opens an existing file for reading.
    pub(crate) fn open_to_read(path: &Path) -> Result<Self, Error> {
        let opened = Self::open(path)?;
        let read_only = opened.file.pragma_update(None, "query_only", true);
        read_only.map_err(|why| error::opening(why, path))?;
        Ok(opened)
    }

    /// Prepares the connection for writing: switches the file to a write-ahead log.
    pub(super) fn prepare_to_write(&self, path: &Path) -> Result<(), Error> {
        let failed = |why| error::opening(why, path);
        busy::until_free(|| self.file.pragma_update(None, "journal_mode", "wal"))
            .map_err(failed)?;
        // Room for the pages of many concurrent plans; SQLite's default of 2 MB is soon used up.
        // There are several readers, so they keep the default.
        self.file
            .pragma_update(None, "cache_size", -16_000)
            .map_err(failed)
    }

    /// Lets the connection close without a checkpoint.
    pub(super) fn keep_log(&self) -> Result<(), Error> {
        let keep = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        let set = self.file.set_db_config(keep, true);
        set.map(|_| ())
            .map_err(|why| error::running(why, "no_ckpt_on_close"))
    }

    /// Shares the sign-bit cache of other connections.
    pub(super) fn sharing(mut self, signs: &SignBitCache) -> Self {
        self.signs = signs.clone();
        self
    }

    /// Runs the statements in order. A statement without rows returns an empty list.
    pub(crate) fn run(&mut self, batch: &[Statement]) -> Result<Vec<Vec<Row>>, Error> {
        batch.iter().map(|statement| self.one(statement)).collect()
    }

    fn one(&mut self, statement: &Statement) -> Result<Vec<Row>, Error> {
        let (text, parameters) = statement_text::text(statement.query)?;
        let failed = |why| error::running(why, statement.query.name());
        let mut prepared = self.file.prepare_cached(text).map_err(failed)?;
        let sent = parameters.unwrap_or(statement.params.len());
        let params = rusqlite::params_from_iter(statement.params.iter().take(sent));
        let width = prepared.column_count();
        if width == 0 {
            let affected = prepared.execute(params).map_err(failed)?;
            statement.check(u64::try_from(affected).unwrap_or(u64::MAX))?;
            return Ok(Vec::new());
        }
        let columns = self.columns.entry(statement.query).or_insert_with(|| {
            let names = prepared.column_names();
            names.into_iter().map(str::to_owned).collect()
        });
        let mut answer = Vec::new();
        let mut rows = prepared.query(params).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let mut values = Vec::with_capacity(width);
            for place in 0..width {
                values.push(value(row.get_ref(place).map_err(failed)?));
            }
            answer.push(Row::new(Arc::clone(columns), values));
        }
        Ok(answer)
    }

    /// A number that changes when another connection commits.
    pub(crate) fn data_version(&self) -> Result<i64, Error> {
        let asked = self
            .file
            .pragma_query_value(None, "data_version", |row| row.get(0));
        asked.map_err(|why| error::running(why, "data_version"))
    }

    /// Runs a statement that is not in a query file, such as `BEGIN`.
    pub(crate) fn control(&self, text: &'static str) -> Result<(), Error> {
        let done = self.try_control(text);
        done.map_err(|why| error::running(why, text))
    }

    /// Like [`Self::control`], with the error of SQLite.
    pub(super) fn try_control(&self, text: &'static str) -> rusqlite::Result<()> {
        self.file.prepare_cached(text)?.execute([]).map(|_| ())
    }

    /// Copies the log into the database, syncs the database, and empties the log. Returns `false`
    /// if another connection uses the log.
    pub(super) fn empty_log(&self) -> rusqlite::Result<bool> {
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy = self
            .file
            .query_row(checkpoint, [], |row| row.get::<_, i64>(0));
        busy.map(|busy| busy == 0)
    }
}

pub(super) fn value(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(int) => Value::Int(int),
        ValueRef::Real(real) => Value::Real(real),
        ValueRef::Text(text) => std::str::from_utf8(text).map_or_else(
            |_| Value::Bytes(text.into()),
            |text| Value::Text(text.into()),
        ),
        ValueRef::Blob(bytes) => {
            Uuid::from_slice(bytes).map_or_else(|_| Value::Bytes(bytes.into()), Value::Id)
        }
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(int) => ValueRef::Integer(*int),
            Value::Real(real) => ValueRef::Real(*real),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Id(id) => ValueRef::Blob(id.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
