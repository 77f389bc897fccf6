//! TOML as arguments of a tool, with the line of each field.
//!
//! TOML and not YAML: `toml_edit` reads Onward's configuration already, reports positions, and has
//! no implicit types, so `version = "1.0"` stays a text.

use serde_json::{Map, Number, Value};
use toml_edit::{Document, Item, TableLike};

use super::FileIssue;
use super::lines::{LineIndex, Lines, inside};

/// Reads TOML documents that are parts of one text.
pub(super) struct Reader<'a> {
    pub(super) index: &'a LineIndex,
    pub(super) lines: &'a mut Lines,
    /// Byte offset of the current document.
    pub(super) offset: usize,
}

impl Reader<'_> {
    /// The fields of a document. `path` is the object that they belong to.
    pub(super) fn read(
        &mut self,
        document: &str,
        path: &str,
    ) -> Result<Map<String, Value>, FileIssue> {
        let document = Document::parse(document).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            FileIssue::new(self.index.line(self.offset + start), error.message())
        })?;
        Ok(self.table(document.as_table(), path))
    }

    fn record(&mut self, path: &str, span: Option<std::ops::Range<usize>>) {
        if let Some(span) = span {
            self.lines
                .set(path, self.index.line(self.offset + span.start));
        }
    }

    fn table(&mut self, table: &dyn TableLike, path: &str) -> Map<String, Value> {
        let mut fields = Map::new();
        for (name, item) in table.iter() {
            let path = inside(path, name);
            let key = table.get_key_value(name).and_then(|(key, _)| key.span());
            self.record(&path, key.or_else(|| item.span()));
            if let Some(value) = self.item(item, &path) {
                fields.insert(name.to_owned(), value);
            }
        }
        fields
    }

    fn item(&mut self, item: &Item, path: &str) -> Option<Value> {
        match item {
            Item::None => None,
            Item::Value(value) => Some(self.value(value, path)),
            Item::Table(table) => Some(self.table(table, path).into()),
            Item::ArrayOfTables(tables) => {
                let mut all = Vec::new();
                for (index, table) in tables.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.record(&path, table.span());
                    all.push(Value::Object(self.table(table, &path)));
                }
                Some(all.into())
            }
        }
    }

    fn value(&mut self, value: &toml_edit::Value, path: &str) -> Value {
        match value {
            toml_edit::Value::String(text) => text.value().as_str().into(),
            toml_edit::Value::Integer(number) => (*number.value()).into(),
            // JSON has no infinity; the text gets an error about its type.
            toml_edit::Value::Float(number) => match Number::from_f64(*number.value()) {
                Some(number) => number.into(),
                None => number.value().to_string().into(),
            },
            toml_edit::Value::Boolean(value) => (*value.value()).into(),
            toml_edit::Value::Datetime(time) => time.value().to_string().into(),
            toml_edit::Value::Array(array) => {
                let mut all = Vec::new();
                for (index, value) in array.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.record(&path, value.span());
                    all.push(self.value(value, &path));
                }
                all.into()
            }
            toml_edit::Value::InlineTable(table) => self.table(table, path).into(),
        }
    }
}
