//! Adds entries to TOML text and removes them. The rest of the text is preserved.

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, Value, value};

/// An entry of Onward.
pub(super) enum Entry {
    /// The table `[parent.name]`.
    Table {
        parent: &'static str,
        name: &'static str,
        keys: Vec<(&'static str, Value)>,
    },
    /// An element of the array of tables `[[name]]`.
    Element {
        name: &'static str,
        keys: Vec<(&'static str, Value)>,
        /// Whether a `command` is one of Onward's; its second argument is `suffix`.
        is_ours: fn(&str, &str) -> bool,
        /// The end of the commands of Onward's hooks.
        suffix: String,
        /// The key that distinguishes Onward's elements from each other.
        id: &'static str,
    },
}

/// Adds the entries. Returns the text unchanged if it contains all of them.
pub(super) fn add(text: &str, entries: &[Entry]) -> Result<String, String> {
    let mut document = parse(text)?;
    for entry in entries {
        match entry {
            Entry::Table { parent, name, keys } => {
                let item = document.entry(parent).or_insert_with(implicit);
                let tables = item
                    .as_table_like_mut()
                    .ok_or_else(|| format!("`{parent}` is not a table"))?;
                match tables.get(name) {
                    Some(item) if is_same(item, keys) => {}
                    Some(_) | None => drop(tables.insert(name, Item::Table(table(keys)))),
                }
            }
            Entry::Element {
                name,
                keys,
                is_ours,
                suffix,
                id,
            } => {
                let item = document
                    .entry(name)
                    .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
                let tables = item
                    .as_array_of_tables_mut()
                    .ok_or_else(|| format!("`{name}` is not an array of tables"))?;
                let own_id = keys
                    .iter()
                    .find(|(key, _)| key == id)
                    .and_then(|(_, value)| value.as_str());
                let is_same_entry = |table: &Table| {
                    let table_id = table.get(id).and_then(Item::as_str);
                    is_our_hook(table, *is_ours, suffix) && table_id == own_id
                };
                let existing: Vec<usize> = (0..)
                    .zip(tables.iter())
                    .filter(|(_, table)| is_same_entry(table))
                    .map(|(index, _)| index)
                    .collect();
                if let [only] = existing.as_slice()
                    && tables.get(*only).is_some_and(|table| has_only(table, keys))
                {
                    continue;
                }
                for index in existing.iter().rev() {
                    tables.remove(*index);
                }
                tables.push(table(keys));
            }
        }
    }
    Ok(document.to_string())
}

/// Removes the entries. Returns the text unchanged if it contains none of them.
pub(super) fn remove(text: &str, entries: &[Entry]) -> Result<String, String> {
    let mut document = parse(text)?;
    for entry in entries {
        match entry {
            Entry::Table { parent, name, .. } => {
                let Some(tables) = document.get_mut(parent).and_then(Item::as_table_like_mut)
                else {
                    continue;
                };
                if tables.remove(name).is_some() && tables.is_empty() {
                    document.remove(parent);
                }
            }
            Entry::Element {
                name,
                is_ours,
                suffix,
                ..
            } => {
                let Some(tables) = document
                    .get_mut(name)
                    .and_then(Item::as_array_of_tables_mut)
                else {
                    continue;
                };
                let before = tables.len();
                tables.retain(|table| !is_our_hook(table, *is_ours, suffix));
                if tables.is_empty() && before > 0 {
                    document.remove(name);
                }
            }
        }
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| format!("invalid TOML: {}", error.message()))
}

/// A table without a header; only the headers of its subtables are written.
fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn table(keys: &[(&'static str, Value)]) -> Table {
    let mut table = Table::new();
    for (key, content) in keys {
        table.insert(key, value(content.clone()));
    }
    table
}

fn is_same(item: &Item, keys: &[(&'static str, Value)]) -> bool {
    item.as_table().is_some_and(|table| has_only(table, keys))
}

/// Whether a table has exactly these keys and values.
fn has_only(table: &Table, keys: &[(&'static str, Value)]) -> bool {
    let plain = |value: &Value| {
        let mut plain = value.clone();
        plain.decor_mut().clear();
        plain.to_string()
    };
    table.len() == keys.len()
        && keys.iter().all(|(key, value)| {
            let current = table.get(key).and_then(Item::as_value);
            current.is_some_and(|current| plain(current) == plain(value))
        })
}

/// Whether a table is a hook of Onward.
fn is_our_hook(table: &Table, is_ours: fn(&str, &str) -> bool, suffix: &str) -> bool {
    let command = table.get("command").and_then(Item::as_str);
    command.is_some_and(|command| is_ours(command, suffix))
}
