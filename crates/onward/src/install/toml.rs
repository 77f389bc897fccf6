//! Entries in a TOML file: put in, and taken out, with everything else left as people wrote it.

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, Value, value};

/// One entry.
pub(super) enum Entry {
    /// A table of its own, `[above.name]`, with these keys.
    Table {
        above: &'static str,
        name: &'static str,
        keys: Vec<(&'static str, Value)>,
    },
    /// One of a list of tables, `[[name]]`, known as ours by how one of its keys ends.
    Listed {
        name: &'static str,
        keys: Vec<(&'static str, Value)>,
        is_ours: fn(&str, &str) -> bool,
        /// What `is_ours` looks for in the key `command`.
        mark: String,
        /// The key that tells ours from each other.
        by: &'static str,
    },
}

/// The text with the entries in it; the very same text where they are.
pub(super) fn put_in(text: &str, entries: &[Entry]) -> Result<String, String> {
    let mut document = parse(text)?;
    for entry in entries {
        match entry {
            Entry::Table { above, name, keys } => {
                let above = document.entry(above).or_insert_with(implicit);
                let above = above
                    .as_table_like_mut()
                    .ok_or_else(|| format!("`{name}` stands in no table"))?;
                match above.get(name) {
                    Some(known) if is_same(known, keys) => {}
                    Some(_) | None => drop(above.insert(name, Item::Table(table(keys)))),
                }
            }
            Entry::Listed {
                name,
                keys,
                is_ours,
                mark,
                by,
            } => {
                let list = document
                    .entry(name)
                    .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
                let list = list
                    .as_array_of_tables_mut()
                    .ok_or_else(|| format!("`{name}` is no list of tables"))?;
                let own = keys.iter().find(|(key, _)| key == by);
                let same_kind = |table: &Table| {
                    let kind = table.get(by).and_then(Item::as_str);
                    ours(table, *is_ours, mark) && kind == own.and_then(|(_, value)| value.as_str())
                };
                let known: Vec<usize> = (0..)
                    .zip(list.iter())
                    .filter(|(_, table)| same_kind(table))
                    .map(|(place, _)| place)
                    .collect();
                if let [only] = known.as_slice()
                    && list.get(*only).is_some_and(|known| has(known, keys))
                {
                    continue;
                }
                for place in known.iter().rev() {
                    list.remove(*place);
                }
                list.push(table(keys));
            }
        }
    }
    Ok(document.to_string())
}

/// The text without the entries; the very same text where there are none.
pub(super) fn take_out(text: &str, entries: &[Entry]) -> Result<String, String> {
    let mut document = parse(text)?;
    for entry in entries {
        match entry {
            Entry::Table { above, name, .. } => {
                let Some(tables) = document.get_mut(above).and_then(Item::as_table_like_mut) else {
                    continue;
                };
                if tables.remove(name).is_some() && tables.is_empty() {
                    document.remove(above);
                }
            }
            Entry::Listed {
                name,
                is_ours,
                mark,
                ..
            } => {
                let Some(list) = document
                    .get_mut(name)
                    .and_then(Item::as_array_of_tables_mut)
                else {
                    continue;
                };
                let before = list.len();
                list.retain(|table| !ours(table, *is_ours, mark));
                if list.is_empty() && before > 0 {
                    document.remove(name);
                }
            }
        }
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse()
        .map_err(|why: toml_edit::TomlError| format!("it is no TOML: {}", why.message()))
}

/// A table whose own head is not written, only those of the tables in it.
fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn table(keys: &[(&'static str, Value)]) -> Table {
    let mut table = Table::new();
    for (key, of) in keys {
        table.insert(key, value(of.clone()));
    }
    table
}

fn is_same(known: &Item, keys: &[(&'static str, Value)]) -> bool {
    known.as_table().is_some_and(|known| has(known, keys))
}

/// Whether a table holds these keys and no others.
fn has(table: &Table, keys: &[(&'static str, Value)]) -> bool {
    let plain = |value: &Value| {
        let mut plain = value.clone();
        plain.decor_mut().clear();
        plain.to_string()
    };
    table.len() == keys.len()
        && keys.iter().all(|(key, value)| {
            let known = table.get(key).and_then(Item::as_value);
            known.is_some_and(|known| plain(known) == plain(value))
        })
}

fn ours(table: &Table, is_ours: fn(&str, &str) -> bool, mark: &str) -> bool {
    let command = table.get("command").and_then(Item::as_str);
    command.is_some_and(|command| is_ours(command, mark))
}
