//! An SQLite file as one end of a move.
//!
//! The write queue and an open write transaction keep other processes from writing to the source.
//! A negative `user_version` marks the target, so that opening it needs no further query.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::connection::SYNTAX;
use super::file::{self, File};
use super::paths::{self, resolve};
use super::restore::take_queue;
use super::{error, migrate};
use crate::backend::relocation::{Batch, Copied, Endpoint, other_version, raced};
use crate::backend::{Response, Syntax};
use crate::copied_table::{CatalogColumn, PROGRESS, Page, Table, Values, copied_tables};
use crate::error::Error;
use crate::value::{IntoValue as _, Value};

const MOVE: &str = "move";

const CATALOG: &str = "SELECT tables.name, columns.name, columns.pk \
    FROM pragma_table_list AS tables, pragma_table_info(tables.name) AS columns \
    WHERE tables.schema = 'main' AND tables.type = 'table' AND tables.name NOT LIKE 'sqlite~_%' ESCAPE '~' \
    ORDER BY tables.name, columns.cid";

struct SqliteEnd {
    file: File,
    /// Keeps the processes of Onward from writing.
    _queue: fs::File,
}

/// Opens a file whose content is moved. No other process can write to it until the result is
/// dropped.
pub(crate) fn open_source(path: &Path) -> Result<Box<dyn Endpoint>, Error> {
    let path = resolve(path, false)?;
    let queue = take_queue(&path)?;
    let file = File::open(&path)?;
    migrate::check_application(&file, &path, true)?;
    let (found, known) = (migrate::version(&file)?, migrate::VERSION);
    if found < known {
        return Err(Error::Older { found, known });
    }
    if found > known {
        return Err(Error::Newer { found, known });
    }
    file.control("BEGIN IMMEDIATE")?;
    Ok(Box::new(SqliteEnd {
        file,
        _queue: queue,
    }))
}

/// Opens the target of a move. Creates a missing file.
pub(crate) fn open_target(path: &Path) -> Result<Box<dyn Endpoint>, Error> {
    let path = resolve(path, true)?;
    paths::create(&path)?;
    let queue = take_queue(&path)?;
    let file = File::open(&path)?;
    migrate::check_application(&file, &path, false)?;
    file.prepare_to_write(&path)?;
    match migrate::recorded_version(&file)? {
        found if found >= 0 => migrate::migrate(&file, &path)?,
        found if found == -migrate::VERSION => {}
        _ => return Err(other_version()),
    }
    Ok(Box::new(SqliteEnd {
        file,
        _queue: queue,
    }))
}

impl SqliteEnd {
    fn query(&self, text: &str, params: &[Value]) -> Result<Vec<Values>, Error> {
        let failed = |why| error::running(why, MOVE);
        let mut prepared = self.file.file.prepare_cached(text).map_err(failed)?;
        let width = prepared.column_count();
        let mut rows = prepared
            .query(rusqlite::params_from_iter(params))
            .map_err(failed)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let mut values = Vec::with_capacity(width);
            for place in 0..width {
                values.push(file::value(row.get_ref(place).map_err(failed)?));
            }
            found.push(values);
        }
        Ok(found)
    }

    fn execute(&self, text: &str, params: &[Value]) -> Result<usize, Error> {
        let prepared = self.file.file.prepare_cached(text);
        prepared
            .and_then(|mut prepared| prepared.execute(rusqlite::params_from_iter(params)))
            .map_err(|why| error::running(why, MOVE))
    }

    /// Runs `work` in a write transaction.
    fn transaction(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        self.file.control("BEGIN IMMEDIATE")?;
        let done = work().and_then(|()| self.file.control("COMMIT"));
        if done.is_err() {
            // Report the first error, not one of the rollback.
            drop(self.file.control("ROLLBACK"));
        }
        done
    }

    fn set_version(&self, version: i64) -> Result<(), Error> {
        let set = self.file.file.pragma_update(None, "user_version", version);
        set.map_err(|why| error::running(why, MOVE))
    }

    fn insert(&self, batch: &Batch<'_>) -> Result<(), Error> {
        let text = insert_text(batch.table);
        for row in batch.rows {
            self.execute(&text, row)?;
        }
        let rows = batch.rows.len().into_value();
        let record = format!(
            "INSERT INTO {PROGRESS} (tenant_id, table_name, last_key, copied) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (tenant_id, table_name) DO UPDATE \
             SET last_key = $3, copied = copied + $4 WHERE copied = $5"
        );
        let progress = [
            batch.tenant.into_value(),
            batch.table.name.as_str().into_value(),
            batch.last_key.into_value(),
            rows,
            batch.copied.into_value(),
        ];
        match self.execute(&record, &progress)? {
            1 => Ok(()),
            _ => Err(raced()),
        }
    }
}

/// The insert of a row. The full-text indexes are filled by views, and a trigger has inserted the
/// signs of all chunks.
fn insert_text(table: &Table) -> String {
    let (into, derived, conflict): (&str, &[&str], &str) = match table.name.as_str() {
        "chunks" => ("indexed_chunks", &["title_words", "words"], ""),
        "plan_words" => ("indexed_plans", &["words"], ""),
        "chunk_signs" => (
            "chunk_signs",
            &["sign"],
            " ON CONFLICT (tenant_id, source_id, ordinal) \
             DO UPDATE SET model = excluded.model, sign = excluded.sign",
        ),
        other => (other, &[], ""),
    };
    let columns = table.columns.iter().map(String::as_str);
    let columns: Vec<&str> = columns.chain(derived.iter().copied()).collect();
    let places: Vec<String> = (1..=columns.len())
        .map(|place| format!("${place}"))
        .collect();
    format!(
        "INSERT INTO {into} ({}) VALUES ({}){conflict}",
        columns.join(", "),
        places.join(", ")
    )
}

fn ready<'a, T: Send + 'a>(result: Result<T, Error>) -> Response<'a, T> {
    Box::pin(std::future::ready(result))
}

fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::Text(text)) => text.to_string(),
        _ => String::new(),
    }
}

fn int(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::Int(int)) => *int,
        _ => 0,
    }
}

impl Endpoint for SqliteEnd {
    fn tables(&mut self) -> Response<'_, Vec<Table>> {
        ready(self.query(CATALOG, &[]).map(|rows| {
            let columns = rows.iter().map(|row| CatalogColumn {
                table: text(row.first()),
                name: text(row.get(1)),
                key: int(row.get(2)),
            });
            copied_tables(columns.collect())
        }))
    }

    fn tenants(&mut self) -> Response<'_, Vec<Arc<str>>> {
        let names = self.query("SELECT tenant_id FROM tenants ORDER BY tenant_id", &[]);
        ready(names.map(|rows| {
            let names = rows.iter().map(|row| text(row.first()).into());
            names.collect()
        }))
    }

    fn count<'a>(&'a mut self, table: &'a Table, tenant: &'a Arc<str>) -> Response<'a, u64> {
        let count = format!("SELECT count(*) FROM {} WHERE tenant_id = $1", table.name);
        let rows = self.query(&count, &[tenant.into_value()]);
        let count = |rows: Vec<Values>| int(rows.first().and_then(|row| row.first()));
        ready(rows.map(|rows| count(rows).unsigned_abs()))
    }

    fn read<'a>(&'a mut self, page: Page<'a>) -> Response<'a, Vec<Values>> {
        let query = page.table.select(&page, |place, _| format!("${place}"));
        let mut params = vec![page.tenant.into_value()];
        params.extend(page.after.unwrap_or_default().iter().cloned());
        ready(self.query(&query, &params))
    }

    fn begin<'a>(&'a mut self, placeholder: Option<&'a Arc<str>>) -> Response<'a, ()> {
        ready(self.transaction(|| {
            let create = format!(
                "CREATE TABLE {PROGRESS} (tenant_id text NOT NULL, table_name text NOT NULL, \
                 last_key text NOT NULL, copied integer NOT NULL, PRIMARY KEY (tenant_id, table_name))"
            );
            self.execute(&create, &[])?;
            if let Some(tenant) = placeholder {
                let delete = "DELETE FROM tenants WHERE tenant_id = $1";
                self.execute(delete, &[tenant.into_value()])?;
            }
            self.set_version(-migrate::VERSION)
        }))
    }

    fn progress(&mut self) -> Response<'_, Option<Vec<Copied>>> {
        let progress = migrate::recorded_version(&self.file).and_then(|version| {
            if version >= 0 {
                return Ok(None);
            }
            let query = format!("SELECT tenant_id, table_name, last_key, copied FROM {PROGRESS}");
            let rows = self.query(&query, &[])?;
            let copied = rows.iter().map(|row| Copied {
                tenant: text(row.first()),
                table: text(row.get(1)),
                last_key: text(row.get(2)),
                rows: int(row.get(3)).unsigned_abs(),
            });
            Ok(Some(copied.collect()))
        });
        ready(progress)
    }

    fn write<'a>(&'a mut self, batch: Batch<'a>) -> Response<'a, ()> {
        ready(self.transaction(|| self.insert(&batch)))
    }

    fn finish(&mut self) -> Response<'_, ()> {
        ready(self.transaction(|| {
            self.execute(&format!("DROP TABLE {PROGRESS}"), &[])?;
            self.set_version(migrate::VERSION)
        }))
    }

    fn syntax(&self) -> &'static Syntax {
        &SYNTAX
    }
}
