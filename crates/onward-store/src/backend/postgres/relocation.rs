//! A PostgreSQL database as one end of a move.
//!
//! Row security restricts the owner of the tables, too, so every statement runs for one tenant. The
//! source is read in one transaction, which locks all tables against writes. The table with the
//! progress marks the target. The source may be distributed, the target not.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::Error as Driver;
use tokio_postgres::types::ToSql;

use super::address::{Address, LongLivedConnection};
use super::exec::SYNTAX;
use super::session::literal;
use super::{distribute, error, migrate, primaries};
use crate::backend::relocation::{Batch, Copied, Endpoint, other_version, raced};
use crate::backend::{Response, Syntax};
use crate::copied_table::{CatalogColumn, PROGRESS, Page, Table, Values, as_bytes, copied_tables};
use crate::error::{Error, Hint};
use crate::value::{IntoValue as _, Value};

/// The tables of the schema with the types of their columns, or the base types of domains.
const CATALOG: &str = "SELECT relname::text, attname::text, \
        format_type(CASE typtype WHEN 'd' THEN typbasetype ELSE atttypid END, NULL), \
        coalesce(array_position(indkey::int2[], attnum) + 1, 0)::bigint \
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped \
    JOIN pg_type ON pg_type.oid = atttypid \
    LEFT JOIN pg_index ON indrelid = pg_class.oid AND indisprimary \
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') \
    ORDER BY relname, attnum";

const TARGET_HINT: Hint = Hint::for_operator(
    "move to a database that is not distributed, and distribute it afterwards with `onward migrate \
     --distribute`",
);

struct PostgresEnd {
    connection: LongLivedConnection,
    /// Types of the columns, by table and name.
    types: HashMap<(String, String), String>,
    /// The tenant of the session, or of the transaction.
    tenant: Option<Arc<str>>,
    /// Whether it is distributed: settings of the transaction are forwarded to the nodes, those of the
    /// session are not.
    distributed: bool,
}

/// Opens a database whose content is moved. No other session can write to it until the result is
/// dropped.
pub(crate) async fn open_source(url: &str) -> Result<Box<dyn Endpoint>, Error> {
    let address = Address::parse(url)?;
    let (connection, schemas) = connect(&address).await?;
    migrate::migrate(&connection.client, &address, &schemas, false).await?;
    let distributed = distribute::is_distributed(&connection.client).await?;
    let mut end = PostgresEnd::new(connection, distributed);
    let tables = end.tables().await?;
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    // One snapshot, taken after the lock. The server may limit the time of an idle transaction.
    let begin = format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '10s'; \
         SET LOCAL idle_in_transaction_session_timeout = 0; {} LOCK TABLE {} IN SHARE MODE",
        if distributed {
            "SET LOCAL citus.propagate_set_commands = 'local';"
        } else {
            ""
        },
        names.join(", ")
    );
    end.batch(&begin).await?;
    Ok(Box::new(end))
}

/// Opens the target of a move, and creates its schema.
pub(crate) async fn open_target(url: &str) -> Result<Box<dyn Endpoint>, Error> {
    let address = Address::parse(url)?;
    let (connection, schemas) = connect(&address).await?;
    let client = &connection.client;
    if distribute::is_distributed(client).await? {
        let why = format!(
            "cannot move: the target `{}` is distributed over several nodes",
            address.shown
        );
        let hint = TARGET_HINT;
        return Err(Error::Move { why, hint });
    }
    if migrate::is_unfinished(client).await? {
        if migrate::recorded_version(client).await? != migrate::VERSION {
            return Err(other_version());
        }
    } else {
        migrate::migrate(client, &address, &schemas, true).await?;
    }
    Ok(Box::new(PostgresEnd::new(connection, false)))
}

/// Connects to the source or the target; returns the connection and the schemas of its search path.
async fn connect(address: &Address) -> Result<(LongLivedConnection, String), Error> {
    let connection = primaries::open(address).await?;
    let schemas = migrate::check_server(&connection.client, &address.shown).await?;
    Ok((connection, schemas))
}

impl PostgresEnd {
    fn new(connection: LongLivedConnection, distributed: bool) -> Self {
        Self {
            connection,
            types: HashMap::new(),
            tenant: None,
            distributed,
        }
    }

    async fn batch(&self, text: &str) -> Result<(), Error> {
        let done = self.connection.client.batch_execute(text).await;
        done.map_err(failed)
    }

    async fn query(&self, text: &str, params: &[Value]) -> Result<Vec<Values>, Error> {
        let rows = self
            .connection
            .client
            .query(text, &references(params))
            .await;
        let rows = rows.map_err(failed)?;
        let values =
            |row: &tokio_postgres::Row| (0..row.len()).map(|place| row.try_get(place)).collect();
        let values: Result<Vec<Values>, Driver> = rows.iter().map(values).collect();
        values.map_err(failed)
    }

    async fn execute(&self, text: &str, params: &[Value]) -> Result<u64, Error> {
        let done = self
            .connection
            .client
            .execute(text, &references(params))
            .await;
        done.map_err(failed)
    }

    /// Sets the tenant to whose rows the statements are restricted.
    async fn act_for(&mut self, tenant: &Arc<str>) -> Result<(), Error> {
        if self.tenant.as_ref() != Some(tenant) {
            let scope = if self.distributed { "LOCAL" } else { "SESSION" };
            let set = format!("SET {scope} onward.tenant = {}", literal(tenant));
            self.batch(&set).await?;
            self.tenant = Some(Arc::clone(tenant));
        }
        Ok(())
    }

    fn type_of(&self, table: &Table, column: &str) -> &str {
        let column = (table.name.clone(), column.to_owned());
        self.types.get(&column).map_or("text", String::as_str)
    }

    /// Inserts the rows with one statement, and records the progress.
    async fn insert(&self, batch: &Batch<'_>) -> Result<(), Error> {
        let table = batch.table;
        let (derived, expression): (&str, fn(&str, &str) -> String) = match table.name.as_str() {
            "chunks" => (", words", |title, body| {
                format!(
                    ", setweight(to_tsvector('simple', {title}::text), 'A') \
                     || to_tsvector('simple', {body}::text)"
                )
            }),
            "plan_words" => (", words", |words, _| {
                format!(", to_tsvector('simple', {words}::text)")
            }),
            "chunk_signs" => (", sign", |sign, _| format!(", {sign}::text::bit varying")),
            _ => ("", |_, _| String::new()),
        };
        let types: Vec<&str> = table
            .columns
            .iter()
            .map(|name| self.type_of(table, name))
            .collect();
        let mut params = Vec::new();
        let mut rows = Vec::new();
        for row in batch.rows {
            let first = params.len() + 1;
            let cells = types.iter().zip(first..);
            let cells: Vec<String> = cells
                .map(|(kind, place)| format!("${place}::{kind}"))
                .collect();
            let after = first + types.len();
            let derived = expression(&format!("${after}"), &format!("${}", after + 1));
            rows.push(format!("({}{derived})", cells.join(", ")));
            params.extend(row.iter().enumerate().map(|(place, value)| {
                match (types.get(place), as_bytes(value)) {
                    // A value of 16 bytes was decoded as an id.
                    (Some(&"bytea"), Some(bytes)) => bytes.to_vec().into_value(),
                    _ => value.clone(),
                }
            }));
        }
        let insert = format!(
            "INSERT INTO {} ({}{derived}) VALUES {}",
            table.name,
            table.columns.join(", "),
            rows.join(", ")
        );
        let inserted = self.execute(&insert, &params).await;
        if let Err(why) = inserted {
            // A duplicate key: another process has copied the row.
            let is_duplicate = matches!(why, Error::LostRace);
            return Err(if is_duplicate {
                raced()
            } else {
                why.in_table(&table.name)
            });
        }
        let record = format!(
            "INSERT INTO {PROGRESS} AS known (tenant_id, table_name, last_key, copied) \
             VALUES ($1, $2, $3, $4) ON CONFLICT (tenant_id, table_name) DO UPDATE \
             SET last_key = excluded.last_key, copied = known.copied + excluded.copied \
             WHERE known.copied = $5"
        );
        let progress = [
            batch.tenant.into_value(),
            table.name.as_str().into_value(),
            batch.last_key.into_value(),
            batch.rows.len().into_value(),
            batch.copied.into_value(),
        ];
        match self.execute(&record, &progress).await? {
            1 => Ok(()),
            _ => Err(raced()),
        }
    }
}

fn references(params: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    params
        .iter()
        .map(|value| value as &(dyn ToSql + Sync))
        .collect()
}

fn failed(why: Driver) -> Error {
    error::of_statement(why, "move")
}

impl Endpoint for PostgresEnd {
    fn tables(&mut self) -> Response<'_, Vec<Table>> {
        Box::pin(async {
            let rows = self
                .connection
                .client
                .query(CATALOG, &[])
                .await
                .map_err(failed)?;
            let mut columns = Vec::new();
            for row in rows {
                let cells = || {
                    Ok((
                        row.try_get(0)?,
                        row.try_get(1)?,
                        row.try_get(2)?,
                        row.try_get(3)?,
                    ))
                };
                let cells: Result<(String, String, String, i64), Driver> = cells();
                let (table, name, kind, key) = cells.map_err(failed)?;
                self.types.insert((table.clone(), name.clone()), kind);
                columns.push(CatalogColumn { table, name, key });
            }
            Ok(copied_tables(columns))
        })
    }

    fn tenants(&mut self) -> Response<'_, Vec<Arc<str>>> {
        Box::pin(async {
            // The function returns nothing to a session with a tenant.
            self.act_for(&Arc::from("")).await?;
            let rows = self
                .query("SELECT tenant_id FROM onward_tenants()", &[])
                .await?;
            let mut names: Vec<Arc<str>> = rows
                .into_iter()
                .filter_map(|row| match row.into_iter().next() {
                    Some(Value::Text(name)) => Some(name),
                    _ => None,
                })
                .collect();
            // The server may have another collation.
            names.sort();
            Ok(names)
        })
    }

    fn count<'a>(&'a mut self, table: &'a Table, tenant: &'a Arc<str>) -> Response<'a, u64> {
        Box::pin(async move {
            self.act_for(tenant).await?;
            let count = format!("SELECT count(*) FROM {} WHERE tenant_id = $1", table.name);
            let rows = self.query(&count, &[tenant.into_value()]).await?;
            Ok(match rows.first().and_then(|row| row.first()) {
                Some(Value::Int(count)) => count.unsigned_abs(),
                _ => 0,
            })
        })
    }

    fn read<'a>(&'a mut self, page: Page<'a>) -> Response<'a, Vec<Values>> {
        Box::pin(async move {
            self.act_for(page.tenant).await?;
            let parameter =
                |place, column: &str| format!("${place}::{}", self.type_of(page.table, column));
            let query = page.table.select(&page, parameter);
            let mut params = vec![page.tenant.into_value()];
            params.extend(page.after.unwrap_or_default().iter().cloned());
            self.query(&query, &params).await
        })
    }

    fn begin<'a>(&'a mut self, placeholder: Option<&'a Arc<str>>) -> Response<'a, ()> {
        Box::pin(async move {
            self.batch("BEGIN").await?;
            self.batch(&format!(
                "CREATE TABLE {PROGRESS} (tenant_id text NOT NULL, table_name text NOT NULL, \
                 last_key text NOT NULL, copied bigint NOT NULL, PRIMARY KEY (tenant_id, table_name))"
            ))
            .await?;
            if let Some(tenant) = placeholder {
                self.act_for(tenant).await?;
                let delete = "DELETE FROM tenants WHERE tenant_id = $1";
                self.execute(delete, &[tenant.into_value()]).await?;
            }
            self.batch("COMMIT").await
        })
    }

    fn progress(&mut self) -> Response<'_, Option<Vec<Copied>>> {
        Box::pin(async {
            if !migrate::is_unfinished(&self.connection.client).await? {
                return Ok(None);
            }
            let query = format!("SELECT tenant_id, table_name, last_key, copied FROM {PROGRESS}");
            let rows = self
                .connection
                .client
                .query(&query, &[])
                .await
                .map_err(failed)?;
            let copied = rows.iter().map(|row| {
                let rows: i64 = row.try_get(3)?;
                Ok(Copied {
                    tenant: row.try_get(0)?,
                    table: row.try_get(1)?,
                    last_key: row.try_get(2)?,
                    rows: rows.unsigned_abs(),
                })
            });
            let copied: Result<Vec<Copied>, Driver> = copied.collect();
            copied.map(Some).map_err(failed)
        })
    }

    fn write<'a>(&'a mut self, batch: Batch<'a>) -> Response<'a, ()> {
        Box::pin(async move {
            self.act_for(batch.tenant).await?;
            self.batch("BEGIN").await?;
            self.insert(&batch).await?;
            self.batch("COMMIT").await
        })
    }

    fn finish(&mut self) -> Response<'_, ()> {
        Box::pin(async { self.batch(&format!("DROP TABLE {PROGRESS}")).await })
    }

    fn syntax(&self) -> &'static Syntax {
        &SYNTAX
    }
}
