//! One configuration file. Rejects unknown keys, with file and line, because a misspelt key must not
//! be ignored. Values are validated when they are used.

use std::path::Path;

use similar::get_close_matches;
use toml_edit::{Document, TableLike, Value};

use super::keys::{KEYS, Key};
use super::kind::Kind;
use super::source::Source;
use crate::failure::{Failure, Result};

const SEE_HELP: &str = "see the example in `onward config --help`";
/// The similarity of a key that is suggested for an unknown one, at most 1.
const SIMILARITY: f32 = 0.75;
/// The length of a key above which no similar one is searched.
const MAX_COMPARED_BYTES: usize = 100;

/// The values of a file, with their positions.
pub(super) struct File(Vec<(&'static Key, Value, Source)>);

impl File {
    /// Reads a file, which must exist.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::usage(
                format!(
                    "cannot read the configuration `{}`: {error}",
                    path.display()
                ),
                "check the path and the file's permissions",
            )
        })?;
        let source = |offset| Source::File {
            path: path.to_owned(),
            line: line(&text, offset),
        };
        let document = Document::parse(&*text).map_err(|error| {
            let source = source(error.span().map_or(0, |span| span.start));
            Failure::usage(format!("{source}: {}", error.message()), SEE_HELP)
        })?;
        let mut values = Vec::new();
        collect(document.as_table(), "", &source, &mut values)?;
        Ok(Self(values))
    }

    pub(super) fn get(&self, key: &Key) -> Option<(Value, Source)> {
        let (_, value, source) = self.0.iter().find(|(found, ..)| found.path == key.path)?;
        Some((value.clone(), source.clone()))
    }
}

/// Collects the values of a table and the tables in it. `prefix` is the path of the table and a dot.
fn collect(
    table: &dyn TableLike,
    prefix: &str,
    source: &dyn Fn(usize) -> Source,
    values: &mut Vec<(&'static Key, Value, Source)>,
) -> Result<()> {
    for (name, item) in table.iter() {
        let path = format!("{prefix}{name}");
        let source_here = source(item.span().map_or(0, |span| span.start));
        let is_table = KEYS.iter().any(|key| key.table.name() == path);
        let key = KEYS.iter().find(|key| key.path == path);
        match (item.as_table_like(), key) {
            (Some(table), _) if is_table => collect(table, &format!("{path}."), source, values)?,
            (None, _) if is_table => return Err(source_here.invalid(&path, "must be a table")),
            (_, Some(key)) if !matches!(key.kind, Kind::ApiKey) => {
                let value = item.clone().into_value().unwrap_or_else(|_| "".into());
                values.push((key, value, source_here));
            }
            (_, Some(key)) => {
                return Err(Failure::usage(
                    format!("{source_here}: `{path}` cannot be set in a file"),
                    format!("set the environment variable `{}`", key.variable("__")),
                ));
            }
            (_, None) => {
                return Err(Failure::usage(
                    format!("{source_here}: unknown key `{path}`"),
                    suggestion(&path),
                ));
            }
        }
    }
    Ok(())
}

/// The hint for an unknown key: the most similar path, or the key with the most similar name.
fn suggestion(path: &str) -> String {
    let closest = |word: &str, words: Vec<&'static str>| {
        // The time of a comparison grows with the square of the length.
        if word.len() > MAX_COMPARED_BYTES {
            return None;
        }
        let closest = get_close_matches(word, &words, 1, SIMILARITY);
        closest.first().copied()
    };
    let paths = KEYS.iter().flat_map(|key| [key.path, key.table.name()]);
    let meant = closest(path, paths.collect()).or_else(|| {
        let (_, name) = path.rsplit_once('.').unwrap_or(("", path));
        let name = closest(name, KEYS.iter().map(Key::name).collect())?;
        KEYS.iter()
            .find(|key| key.name() == name)
            .map(|key| key.path)
    });
    match meant {
        Some(meant) => format!("did you mean `{meant}`? `onward config --help` lists all keys"),
        None => "`onward config --help` lists all keys".to_owned(),
    }
}

/// The line of a byte offset, counted from 1.
fn line(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}
