//! The tables that a move copies: their columns, their keys, and the values that are derived from
//! other rows.
//!
//! Tables and columns come from the catalog of each database, so a new table is copied without a
//! change here. Only what one database stores in another form is listed: the words of full-text
//! indexes and the sign bits of vectors, which are derived from the rows that they belong to.

use std::sync::Arc;

use onward_core::search::{Vector, index_text};

use crate::value::{IntoValue as _, Value};

/// The table with the progress of a move. It exists in the target until the move has ended.
pub(crate) const PROGRESS: &str = "onward_move";

/// Tables that are not copied: schema versions, leases of running servers, and the count that
/// validates the caches of processes.
const NOT_COPIED: [&str; 4] = [PROGRESS, "onward_schema", "leases", "sign_changes"];

/// Columns that only one database has, or that have another form in each of them.
const DERIVED_COLUMNS: [(&str, &str); 5] = [
    ("chunks", "chunk_no"),
    ("chunks", "words"),
    ("chunk_signs", "sign"),
    ("plan_words", "words_no"),
    ("plan_words", "words"),
];

/// Keys of the tables whose primary key is a number on SQLite.
const KEYS: [(&str, &[&str]); 2] = [
    ("chunks", &["source_id", "ordinal"]),
    ("plan_words", &["plan_id"]),
];

/// A row: the columns of its table, then the inputs of its derived columns.
pub(crate) type Values = Vec<Value>;

/// A table to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// All columns except derived ones, sorted by name.
    pub(crate) columns: Vec<String>,
    /// The columns of the key after the tenant.
    pub(crate) key: Vec<String>,
}

/// Rows of one table and tenant, in the order of the key.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    pub(crate) table: &'a Table,
    pub(crate) tenant: &'a Arc<str>,
    /// The key of the last row of the previous page.
    pub(crate) after: Option<&'a [Value]>,
    pub(crate) limit: u32,
}

/// Encodes sign bits for the target.
pub(crate) type Encode = fn(&[bool]) -> Value;

/// A table with derived columns.
struct Derivation {
    table: &'static str,
    /// Joins the rows from which they are derived.
    joins: &'static str,
    inputs: &'static str,
    derive: fn(&[Value], Encode) -> Values,
}

static DERIVATIONS: [Derivation; 3] = [
    Derivation {
        table: "chunks",
        joins: " LEFT JOIN artifacts ON artifacts.tenant_id = item.tenant_id \
                AND artifacts.artifact_id = item.source_id \
                LEFT JOIN outputs ON outputs.tenant_id = item.tenant_id \
                AND outputs.output_id = item.source_id \
                LEFT JOIN results ON results.tenant_id = item.tenant_id \
                AND results.step_id = item.source_id",
        inputs: ", coalesce(artifacts.title, outputs.title, results.title), \
                 substr(coalesce(artifacts.content, outputs.content, results.content), \
                 CAST(item.starts_at + 1 AS integer), CAST(item.characters AS integer))",
        derive: |inputs, _| {
            inputs
                .iter()
                .map(|input| words(input).into_value())
                .collect()
        },
    },
    Derivation {
        table: "plan_words",
        joins: " LEFT JOIN plans ON plans.tenant_id = item.tenant_id \
                AND plans.plan_id = item.plan_id",
        inputs: ", plans.name, plans.research_question",
        derive: |inputs, _| {
            let words: Vec<String> = inputs.iter().map(words).collect();
            vec![words.join(" ").into_value()]
        },
    },
    Derivation {
        table: "chunk_signs",
        joins: " LEFT JOIN vectors ON vectors.tenant_id = item.tenant_id \
                AND vectors.source_id = item.source_id AND vectors.ordinal = item.ordinal",
        inputs: ", vectors.vector",
        derive: |inputs, encode_signs| {
            let vector = inputs
                .first()
                .and_then(as_bytes)
                .and_then(Vector::from_bytes);
            let bits = vector.map(|vector| vector.sign_bits()).unwrap_or_default();
            vec![encode_signs(&bits)]
        },
    },
];

fn words(text: &Value) -> String {
    if let Value::Text(text) = text {
        index_text(text)
    } else {
        String::new()
    }
}

/// The bytes of a value. A value of 16 bytes may have been decoded as an id.
pub(crate) fn as_bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        Value::Id(id) => Some(id.as_bytes()),
        Value::Null | Value::Int(_) | Value::Real(_) | Value::Text(_) => None,
    }
}

impl Table {
    fn derivation(&self) -> Option<&'static Derivation> {
        DERIVATIONS
            .iter()
            .find(|derivation| derivation.table == self.name)
    }

    /// Replaces the inputs at the end of a row by the derived values.
    pub(crate) fn derive(&self, row: &mut Values, encode_signs: Encode) {
        if let Some(derivation) = self.derivation() {
            let inputs = row.split_off(self.columns.len());
            row.extend((derivation.derive)(&inputs, encode_signs));
        }
    }

    /// The key of a row.
    pub(crate) fn key_of(&self, row: &[Value]) -> Values {
        let place = |name: &String| self.columns.iter().position(|column| column == name);
        let cells = self.key.iter().filter_map(place);
        cells.filter_map(|place| row.get(place).cloned()).collect()
    }

    /// The query of a page. `parameter` returns the text of a parameter for a column; the first one
    /// is the tenant, the others are the key of the last row.
    pub(crate) fn select(
        &self,
        page: &Page<'_>,
        parameter: impl Fn(usize, &str) -> String,
    ) -> String {
        let list = |names: &[String]| {
            let names = names.iter().map(|name| format!("item.{name}"));
            names.collect::<Vec<_>>().join(", ")
        };
        let (joins, inputs) = match self.derivation() {
            Some(derivation) => (derivation.joins, derivation.inputs),
            None => ("", ""),
        };
        let mut query = format!(
            "SELECT {}{inputs} FROM {} AS item{joins} WHERE item.tenant_id = {}",
            list(&self.columns),
            self.name,
            parameter(1, "tenant_id"),
        );
        if !self.key.is_empty() {
            let key = list(&self.key);
            if page.after.is_some() {
                let places = self.key.iter().zip(2usize..);
                let last: Vec<String> =
                    places.map(|(name, place)| parameter(place, name)).collect();
                query.push_str(&format!(" AND ({key}) > ({})", last.join(", ")));
            }
            query.push_str(&format!(" ORDER BY {key}"));
        }
        query.push_str(&format!(" LIMIT {}", page.limit));
        query
    }
}

/// A column in the catalog of a database.
pub(crate) struct CatalogColumn {
    pub(crate) table: String,
    pub(crate) name: String,
    /// Its place in the primary key, from 1; 0 if it is not part of it.
    pub(crate) key: i64,
}

/// The tables to copy among those of a catalog, sorted by name.
pub(crate) fn copied_tables(catalog: Vec<CatalogColumn>) -> Vec<Table> {
    let mut tables: Vec<(Table, Vec<(i64, String)>)> = Vec::new();
    for CatalogColumn { table, name, key } in catalog {
        let is_derived = DERIVED_COLUMNS.contains(&(table.as_str(), name.as_str()));
        if NOT_COPIED.contains(&table.as_str()) || is_derived {
            continue;
        }
        let known = tables.iter().position(|(known, _)| known.name == table);
        let place = known.unwrap_or_else(|| {
            let (columns, key) = (Vec::new(), Vec::new());
            tables.push((
                Table {
                    name: table,
                    columns,
                    key,
                },
                Vec::new(),
            ));
            tables.len() - 1
        });
        if let Some((table, keys)) = tables.get_mut(place) {
            if key > 0 && name != "tenant_id" {
                keys.push((key, name.clone()));
            }
            table.columns.push(name);
        }
    }
    let mut tables: Vec<Table> = tables
        .into_iter()
        .map(|(mut table, mut key)| {
            key.sort();
            table.columns.sort();
            let fixed = KEYS.iter().find(|(name, _)| *name == table.name);
            table.key = match fixed {
                Some((_, key)) => key.iter().map(|name| (*name).to_owned()).collect(),
                None => key.into_iter().map(|(_, name)| name).collect(),
            };
            table
        })
        .collect();
    tables.sort_by(|one, other| one.name.cmp(&other.name));
    tables
}
