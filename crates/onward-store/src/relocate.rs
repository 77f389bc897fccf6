//! Moves a whole database to another one: all tables of all tenants, with their keys and times.
//!
//! The source cannot change while it is open here. Rows are copied in batches in the order of their
//! keys, and the target records the last copied key in the same transaction, so an interrupted move
//! continues where it stopped. At the end, all rows of both databases are compared.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use uuid::Uuid;

use crate::backend::relocation::{Batch, Endpoint};
use crate::copied_table::{Page, Table, Values, as_bytes};
use crate::error::{Error, Hint};
use crate::store::address::Address;
use crate::value::Value;

/// Tenant that every database has.
const LOCAL: &str = "local";

/// Maximum number of rows in a batch, and the size from which the next batch is smaller.
const MAX_ROWS: u32 = 256;
const MAX_BYTES: usize = 4 << 20;

/// A move from one database to another.
pub struct Relocation {
    source: Box<dyn Endpoint>,
    target: Box<dyn Endpoint>,
    tables: Vec<Table>,
    tenants: Vec<Arc<str>>,
    /// Number of rows of the source.
    rows: u64,
}

/// Number of rows that are done, of this many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowProgress {
    /// Rows that are done.
    pub done: u64,
    /// All rows.
    pub total: u64,
}

impl Relocation {
    /// Locks the source against writes and checks that the target is empty, or that a move into it
    /// has begun.
    pub async fn begin(source: &Address, target: &Address) -> Result<Self, Error> {
        if source == target {
            return Err(rejected(
                format!("`{target}` is the source of the move"),
                "set another database with `--to`",
            ));
        }
        let mut source = source.open_source().await?;
        let shown = target.to_string();
        let mut target = target.open_target().await?;
        let mut tables = source.tables().await?;
        check_schema(&tables, &target.tables().await?)?;
        // On SQLite, inserting a chunk inserts its sign, which is then updated.
        tables.sort_by_key(|table| table.name != "chunks");
        if target.progress().await?.is_none() {
            let placeholder = check_empty(target.as_mut(), &tables, &shown).await?;
            target.begin(placeholder.as_ref()).await?;
        }
        let tenants = source.tenants().await?;
        let mut rows = 0;
        for tenant in &tenants {
            for table in &tables {
                rows += source.count(table, tenant).await?;
            }
        }
        Ok(Self {
            source,
            target,
            tables,
            tenants,
            rows,
        })
    }

    /// Number of tenants.
    pub fn tenants(&self) -> usize {
        self.tenants.len()
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Copies the rows that are not in the target yet. `report` is called after each batch.
    pub async fn copy(
        &mut self,
        report: &mut (dyn FnMut(RowProgress) + Send),
    ) -> Result<(), Error> {
        let progress = self.target.progress().await?.unwrap_or_default();
        let total = self.rows;
        let mut done: u64 = progress.iter().map(|copied| copied.rows).sum();
        report(RowProgress { done, total });
        for tenant in &self.tenants {
            for table in &self.tables {
                let known = progress
                    .iter()
                    .find(|known| *known.tenant == **tenant && known.table == table.name);
                let mut copied = known.map_or(0, |known| known.rows);
                let mut pages = Pages::new(table, tenant);
                if let Some(known) = known {
                    pages.after = Some(decode_key(&known.last_key)?);
                }
                while let Some(mut rows) = pages.next(self.source.as_mut()).await? {
                    for row in &mut rows {
                        table.derive(row, self.target.syntax().sign);
                    }
                    let last_key = encode_key(pages.after.as_deref().unwrap_or_default())?;
                    let batch = Batch {
                        table,
                        tenant,
                        rows: &rows,
                        last_key: &last_key,
                        copied,
                    };
                    self.target.write(batch).await?;
                    let written = u64::try_from(rows.len()).unwrap_or(u64::MAX);
                    copied += written;
                    done += written;
                    report(RowProgress { done, total });
                }
            }
        }
        Ok(())
    }

    /// Compares all rows of both databases.
    pub async fn compare(
        &mut self,
        report: &mut (dyn FnMut(RowProgress) + Send),
    ) -> Result<(), Error> {
        let total = self.rows;
        let mut done = 0;
        for tenant in self.target.tenants().await? {
            if !self.tenants.contains(&tenant) {
                return Err(differs("tenants", &tenant));
            }
        }
        for tenant in &self.tenants {
            for table in &self.tables {
                let expected = digest(self.source.as_mut(), table, tenant).await?;
                let found = digest(self.target.as_mut(), table, tenant).await?;
                if expected != found {
                    return Err(differs(&table.name, tenant));
                }
                done += expected.0;
                report(RowProgress { done, total });
            }
        }
        Ok(())
    }

    /// Ends the move: the target can be used, and the source can be written again.
    pub async fn finish(mut self) -> Result<(), Error> {
        self.target.finish().await
    }
}

/// Reads the rows of a table and tenant in batches.
struct Pages<'a> {
    table: &'a Table,
    tenant: &'a Arc<str>,
    after: Option<Values>,
    limit: u32,
}

impl<'a> Pages<'a> {
    fn new(table: &'a Table, tenant: &'a Arc<str>) -> Self {
        Self {
            table,
            tenant,
            after: None,
            limit: MAX_ROWS / 8,
        }
    }

    /// The next rows; `None` after the last one.
    async fn next(&mut self, from: &mut dyn Endpoint) -> Result<Option<Vec<Values>>, Error> {
        // The key of a table with one row per tenant is empty.
        if self.after.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let page = Page {
            table: self.table,
            tenant: self.tenant,
            after: self.after.as_deref(),
            limit: self.limit,
        };
        let rows = from.read(page).await?;
        let Some(last) = rows.last() else {
            return Ok(None);
        };
        self.after = Some(self.table.key_of(last));
        let bytes: usize = rows.iter().flatten().map(Value::bytes).sum();
        self.limit = if bytes > MAX_BYTES {
            (self.limit / 2).max(1)
        } else {
            (self.limit * 2).min(MAX_ROWS)
        };
        Ok(Some(rows))
    }
}

/// Number of rows, and a checksum that does not depend on their order: the databases sort texts
/// differently.
async fn digest(
    from: &mut dyn Endpoint,
    table: &Table,
    tenant: &Arc<str>,
) -> Result<(u64, u64), Error> {
    let (mut count, mut sum) = (0u64, 0u64);
    let mut pages = Pages::new(table, tenant);
    while let Some(rows) = pages.next(from).await? {
        for row in &rows {
            let mut hasher = DefaultHasher::new();
            // The inputs of derived columns belong to other tables.
            for value in row.iter().take(table.columns.len()) {
                hash(value, &mut hasher);
            }
            count += 1;
            sum = sum.wrapping_add(hasher.finish());
        }
    }
    Ok((count, sum))
}

fn hash(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => 0u8.hash(hasher),
        Value::Int(int) => (1u8, int).hash(hasher),
        Value::Real(real) => (2u8, real.to_bits()).hash(hasher),
        Value::Text(text) => (3u8, text).hash(hasher),
        Value::Id(_) | Value::Bytes(_) => (4u8, as_bytes(value)).hash(hasher),
    }
}

/// Fails unless both databases have the same tables and columns.
fn check_schema(source: &[Table], target: &[Table]) -> Result<(), Error> {
    let names = |tables: &[Table]| -> Vec<String> {
        let columns = |table: &Table| {
            let name = table.name.clone();
            let columns = table.columns.iter();
            columns
                .map(move |column| format!("{name}.{column}"))
                .collect::<Vec<_>>()
        };
        tables.iter().flat_map(columns).collect()
    };
    let (source, target) = (names(source), names(target));
    for (some, others, which) in [(&source, &target, "target"), (&target, &source, "source")] {
        if let Some(missing) = some.iter().find(|name| !others.contains(name)) {
            return Err(rejected(
                format!("the {which} has no column `{missing}`"),
                Hint::for_operator(
                    "move between databases with the schema of this version; see `onward migrate \
                     --check`",
                ),
            ));
        }
    }
    Ok(())
}

/// Fails if the target contains data. Returns the tenant that an empty database has, if any.
async fn check_empty(
    target: &mut dyn Endpoint,
    tables: &[Table],
    shown: &str,
) -> Result<Option<Arc<str>>, Error> {
    let tenants = target.tenants().await?;
    for tenant in &tenants {
        let mut found = (**tenant != *LOCAL).then_some("tenants");
        for table in tables.iter().filter(|table| table.name != "tenants") {
            if target.count(table, tenant).await? > 0 {
                found = Some(table.name.as_str());
            }
        }
        if let Some(table) = found {
            return Err(rejected(
                format!("the target `{shown}` is not empty: it has rows in `{table}`"),
                Hint::for_operator(
                    "use a new database; if an earlier move into this one has ended, check it with \
                     `onward doctor`",
                ),
            ));
        }
    }
    Ok(tenants.into_iter().next())
}

/// A key as JSON: each value with a letter for its kind.
fn encode_key(key: &[Value]) -> Result<String, Error> {
    let parts: Result<Vec<String>, Error> = key
        .iter()
        .map(|value| match value {
            Value::Int(int) => Ok(format!("i{int}")),
            Value::Text(text) => Ok(format!("t{text}")),
            Value::Id(id) => Ok(format!("u{id}")),
            Value::Null | Value::Real(_) | Value::Bytes(_) => {
                Err(Error::refused("a key contains a value that is not valid"))
            }
        })
        .collect();
    serde_json::to_string(&parts?).map_err(|why| Error::refused(why.to_string()).caused_by(why))
}

fn decode_key(text: &str) -> Result<Values, Error> {
    let invalid = || Error::refused(format!("the recorded progress `{text}` is not valid"));
    let parts: Vec<String> = serde_json::from_str(text).map_err(|why| invalid().caused_by(why))?;
    let value = |part: &String| {
        let (kind, rest) = part.split_at_checked(1)?;
        match kind {
            "i" => rest.parse().ok().map(Value::Int),
            "t" => Some(Value::Text(rest.into())),
            "u" => rest.parse::<Uuid>().ok().map(Value::Id),
            _ => None,
        }
    };
    let key: Option<Values> = parts.iter().map(value).collect();
    key.ok_or_else(invalid)
}

fn differs(table: &str, tenant: &str) -> Error {
    rejected(
        format!("the rows of tenant `{tenant}` in `{table}` differ between source and target"),
        "the source was changed after the move began: delete the target and run the command again",
    )
}

fn rejected(why: String, hint: impl Into<Hint>) -> Error {
    let hint = hint.into();
    Error::Move { why, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_through_the_recorded_progress() {
        let key = vec![
            Value::Id(Uuid::from_u128(7)),
            Value::Text("t\"ä".into()),
            Value::Text("".into()),
            Value::Int(-3),
        ];
        let text = encode_key(&key).expect("the key is valid");
        assert_eq!(decode_key(&text).expect("the text is valid"), key);
        assert_eq!(decode_key("[]").expect("the text is valid"), Vec::new());
        for invalid in ["", "[\"x1\"]", "[\"\"]", "[\"inan\"]", "[1]"] {
            assert!(decode_key(invalid).is_err(), "{invalid}");
        }
    }
}
