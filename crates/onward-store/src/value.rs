//! Statement parameters and result rows: six kinds of value, the same on both databases.
//!
//! A row is read from left to right, each cell by name, so a query whose columns are in another
//! order than the reader expects fails on its first row. A cell with an unexpected value is an
//! error that names table, column and row.

use std::sync::Arc;
use std::time::Duration;

use onward_core::{Json, Timestamp};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::error::{Corrupt, Error};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Real(f64),
    Text(Arc<str>),
    Id(Uuid),
    /// Bytes that are neither UTF-8 text nor a 16-byte id.
    Bytes(Arc<[u8]>),
}

impl Value {
    /// Length of the text or bytes; 0 for other kinds.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Null | Value::Int(_) | Value::Real(_) | Value::Id(_) => 0,
        }
    }
}

/// A type that can be bound to a statement.
pub(crate) trait IntoValue {
    fn into_value(self) -> Value;
}

macro_rules! into_value {
    ($($from:ty => |$it:ident| $value:expr;)*) => {
        $(impl IntoValue for $from {
            fn into_value(self) -> Value {
                let $it = self;
                $value
            }
        })*
    };
}

into_value! {
    Value => |value| value;
    i64 => |int| Value::Int(int);
    u32 => |int| Value::Int(i64::from(int));
    u64 => |int| Value::Int(i64::try_from(int).unwrap_or(i64::MAX));
    usize => |int| Value::Int(i64::try_from(int).unwrap_or(i64::MAX));
    bool => |flag| Value::Int(i64::from(flag));
    f64 => |real| Value::Real(real);
    &str => |text| Value::Text(text.into());
    &String => |text| Value::Text(text.as_str().into());
    String => |text| Value::Text(text.into());
    Arc<str> => |text| Value::Text(text);
    &Arc<str> => |text| Value::Text(Arc::clone(text));
    Vec<u8> => |bytes| Value::Bytes(bytes.into());
    Uuid => |id| Value::Id(id);
    &Uuid => |id| Value::Id(*id);
    Timestamp => |at| Value::Int(at.as_millis());
    Duration => |span| Value::Int(i64::try_from(span.as_millis()).unwrap_or(i64::MAX));
    &serde_json::Value => |json| Value::Text(json.to_string().into());
    &Json => |json| Value::Text(json.as_str().into());
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Value {
        self.map_or(Value::Null, IntoValue::into_value)
    }
}

/// The parameters of a statement, in order.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::value::IntoValue::into_value($value)),*]
    };
}
pub(crate) use params;

/// Column names of a query, shared by all its rows.
pub(crate) type Columns = Arc<[String]>;

/// A result row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    columns: Columns,
    values: Vec<Value>,
}

impl Row {
    pub(crate) fn new(columns: Columns, values: Vec<Value>) -> Self {
        Self { columns, values }
    }

    /// Total length of its texts and bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.values.iter().map(Value::bytes).sum()
    }

    /// The cells of the row, to be read from left to right. Error messages use the first cell as
    /// the key of the row.
    pub(crate) fn cells(self, table: &'static str) -> Cells {
        Cells {
            table,
            key: self.values.first().cloned().unwrap_or(Value::Null),
            columns: self.columns,
            values: self.values.into_iter(),
            place: 0,
        }
    }
}

/// A row being read.
pub(crate) struct Cells {
    table: &'static str,
    key: Value,
    columns: Columns,
    values: std::vec::IntoIter<Value>,
    place: usize,
}

macro_rules! cells {
    ($($(#[$doc:meta])* $name:ident, $maybe:ident => $variant:ident as $out:ty, $expected:literal;)*) => {
        $($(#[$doc])*
        pub(crate) fn $name(&mut self, column: &'static str) -> Result<$out, Error> {
            match self.next(column)? {
                Value::$variant(value) => Ok(value),
                other => Err(self.misfit(column, &other, $expected)),
            }
        }

        pub(crate) fn $maybe(&mut self, column: &'static str) -> Result<Option<$out>, Error> {
            match self.next(column)? {
                Value::Null => Ok(None),
                Value::$variant(value) => Ok(Some(value)),
                other => Err(self.misfit(column, &other, $expected)),
            }
        })*
    };
}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "all other variants are the same error"
)]
impl Cells {
    cells! {
        int, maybe_int => Int as i64, "an integer";
        text, maybe_text => Text as Arc<str>, "text";
        id, maybe_id => Id as Uuid, "an id";
    }

    pub(crate) fn maybe_real(&mut self, column: &'static str) -> Result<Option<f64>, Error> {
        match self.next(column)? {
            Value::Null => Ok(None),
            Value::Real(value) => Ok(Some(value)),
            other => Err(self.misfit(column, &other, "a number")),
        }
    }

    /// Bytes. A value of 16 bytes is decoded as an id.
    pub(crate) fn bytes(&mut self, column: &'static str) -> Result<Arc<[u8]>, Error> {
        match self.next(column)? {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Id(id) => Ok(Arc::from(*id.as_bytes())),
            other => Err(self.misfit(column, &other, "bytes")),
        }
    }

    pub(crate) fn string(&mut self, column: &'static str) -> Result<String, Error> {
        self.text(column).map(|text| text.as_ref().to_owned())
    }

    pub(crate) fn maybe_string(&mut self, column: &'static str) -> Result<Option<String>, Error> {
        Ok(self
            .maybe_text(column)?
            .map(|text| text.as_ref().to_owned()))
    }

    pub(crate) fn flag(&mut self, column: &'static str) -> Result<bool, Error> {
        match self.int(column)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.misfit(column, &Value::Int(other), "0 or 1")),
        }
    }

    pub(crate) fn u32(&mut self, column: &'static str) -> Result<u32, Error> {
        let int = self.int(column)?;
        u32::try_from(int).map_err(|_| self.misfit(column, &Value::Int(int), "a count below 2^32"))
    }

    pub(crate) fn maybe_u32(&mut self, column: &'static str) -> Result<Option<u32>, Error> {
        let Some(int) = self.maybe_int(column)? else {
            return Ok(None);
        };
        let count = u32::try_from(int);
        let count =
            count.map_err(|_| self.misfit(column, &Value::Int(int), "a count below 2^32"))?;
        Ok(Some(count))
    }

    pub(crate) fn u64(&mut self, column: &'static str) -> Result<u64, Error> {
        let int = self.int(column)?;
        u64::try_from(int).map_err(|_| self.misfit(column, &Value::Int(int), "a count"))
    }

    pub(crate) fn maybe_u64(&mut self, column: &'static str) -> Result<Option<u64>, Error> {
        let Some(int) = self.maybe_int(column)? else {
            return Ok(None);
        };
        let count = u64::try_from(int);
        let count = count.map_err(|_| self.misfit(column, &Value::Int(int), "a count"))?;
        Ok(Some(count))
    }

    pub(crate) fn at(&mut self, column: &'static str) -> Result<Timestamp, Error> {
        self.int(column).map(Timestamp::from_millis)
    }

    pub(crate) fn maybe_at(&mut self, column: &'static str) -> Result<Option<Timestamp>, Error> {
        Ok(self.maybe_int(column)?.map(Timestamp::from_millis))
    }

    pub(crate) fn maybe_span(&mut self, column: &'static str) -> Result<Option<Duration>, Error> {
        let Some(millis) = self.maybe_int(column)? else {
            return Ok(None);
        };
        let millis = u64::try_from(millis)
            .map_err(|_| self.misfit(column, &Value::Int(millis), "a duration in milliseconds"))?;
        Ok(Some(Duration::from_millis(millis)))
    }

    /// Text that names a value of an enum.
    pub(crate) fn word<T: std::str::FromStr>(&mut self, column: &'static str) -> Result<T, Error>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let word = self.text(column)?;
        word.parse().map_err(|why| self.undecodable(column, why))
    }

    /// Text that contains JSON, as a tree or as text.
    pub(crate) fn json<T: DeserializeOwned>(&mut self, column: &'static str) -> Result<T, Error> {
        let text = self.text(column)?;
        self.parse_json(column, &text)
    }

    pub(crate) fn maybe_json<T: DeserializeOwned>(
        &mut self,
        column: &'static str,
    ) -> Result<Option<T>, Error> {
        let Some(text) = self.maybe_text(column)? else {
            return Ok(None);
        };
        self.parse_json(column, &text).map(Some)
    }

    fn parse_json<T: DeserializeOwned>(
        &self,
        column: &'static str,
        text: &str,
    ) -> Result<T, Error> {
        serde_json::from_str(text).map_err(|why| {
            self.corrupt(column, format!("invalid JSON: {why}"))
                .caused_by(why)
        })
    }

    /// A corruption error for this cell with its cause.
    pub(crate) fn undecodable(
        &self,
        column: &'static str,
        cause: impl std::error::Error + Send + Sync + 'static,
    ) -> Error {
        self.corrupt(column, cause.to_string()).caused_by(cause)
    }

    /// A corruption error for this cell.
    pub(crate) fn corrupt(&self, column: &'static str, why: impl Into<String>) -> Error {
        Error::from(Corrupt {
            table: self.table,
            column,
            row: match &self.key {
                Value::Null => "?".to_owned(),
                Value::Int(key) => key.to_string(),
                Value::Real(key) => key.to_string(),
                Value::Text(key) => key.to_string(),
                Value::Id(key) => key.to_string(),
                Value::Bytes(_) => "(bytes)".to_owned(),
            },
            why: why.into(),
        })
    }

    /// Skips to the columns of another table in the same row, which begin with the key of that
    /// table. Returns false if the row has no entry of that table.
    pub(crate) fn turn_to(&mut self, table: &'static str, key: &'static str) -> bool {
        let ahead = self.columns.iter().skip(self.place);
        let passed = ahead.take_while(|column| *column != key).count();
        self.place += passed;
        self.table = table;
        if let Some(last) = passed.checked_sub(1) {
            self.values.nth(last);
        }
        let key = self.values.as_slice().first();
        self.key = key.cloned().unwrap_or(Value::Null);
        let found = self.key != Value::Null;
        if !found {
            // Skip the empty key, so that the next entry of that table is found after it.
            self.values.next();
            self.place += 1;
        }
        found
    }

    fn misfit(&self, column: &'static str, value: &Value, expected: &str) -> Error {
        let found = match value {
            Value::Null => "NULL".to_owned(),
            Value::Int(value) => format!("the integer {value}"),
            Value::Real(value) => format!("the number {value}"),
            Value::Text(_) => "text".to_owned(),
            Value::Id(_) => "an id".to_owned(),
            Value::Bytes(_) => "bytes".to_owned(),
        };
        self.corrupt(column, format!("contains {found}, expected {expected}"))
    }

    fn next(&mut self, column: &'static str) -> Result<Value, Error> {
        let named = self.columns.get(self.place);
        if named.is_none_or(|named| named != column) {
            let why = format!("the query returned {named:?} here");
            return Err(self.corrupt(column, why));
        }
        self.place += 1;
        Ok(self.values.next().unwrap_or(Value::Null))
    }
}

/// Reads the first row of a result.
pub(crate) fn first<T>(
    rows: Option<Vec<Row>>,
    read: impl FnOnce(Row) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    rows.and_then(|rows| rows.into_iter().next())
        .map(read)
        .transpose()
}

/// Reads the first column of all rows as ids.
pub(crate) fn ids(
    rows: Option<Vec<Row>>,
    table: &'static str,
    column: &'static str,
) -> Result<impl Iterator<Item = Uuid>, Error> {
    let ids: Result<Vec<Uuid>, Error> = rows
        .unwrap_or_default()
        .into_iter()
        .map(|row| row.cells(table).id(column))
        .collect();
    Ok(ids?.into_iter())
}
