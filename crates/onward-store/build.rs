//! Generates `enum Query` from `src/query/*.sql`, so that an unknown statement does not compile.
//!
//! Each statement follows a `-- name:` line. One text serves both databases: `$1` is the first
//! parameter, and SQLite gets it as `?1`. If the texts must differ, two statements have the same
//! name, marked `(sqlite)` and `(postgres)`, and the line after the name states why. Text that
//! several statements share is written once, after a `-- fragment:` line, and inserted for
//! `{its_name}`, in any file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Texts of a statement: for SQLite and for PostgreSQL.
#[derive(Default)]
struct Texts {
    sqlite: Option<String>,
    postgres: Option<String>,
}

fn main() {
    let folder = Path::new("src/query");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("the folder of statements is readable");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let sources: Vec<String> = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a file of statements is readable"))
        .collect();
    let fragments: BTreeMap<&str, String> = sections(&sources, "fragment: ")
        .map(|(name, text)| (name, one_line(text)))
        .collect();
    let mut queries: BTreeMap<&str, Texts> = BTreeMap::new();
    for (head, text) in sections(&sources, "name: ") {
        let (name, only) = head.split_once(" (").unwrap_or((head, ""));
        let text = insert_fragments(&one_line(text), &fragments);
        let texts = queries.entry(name).or_default();
        let (sqlite, postgres) = match only {
            "sqlite)" => (true, false),
            "postgres)" => (false, true),
            "" => (true, true),
            other => panic!("statement `{name}`: unknown database `({other}`"),
        };
        for (text_for, applies) in [
            (&mut texts.sqlite, sqlite.then(|| text.replace('$', "?"))),
            (&mut texts.postgres, postgres.then(|| text.clone())),
        ] {
            if let Some(text) = applies {
                assert!(text_for.is_none(), "statement `{name}` is defined twice");
                *text_for = Some(text);
            }
        }
    }
    let out = env::var_os("OUT_DIR").expect("Cargo sets `OUT_DIR`");
    let file = Path::new(&out).join("query.rs");
    fs::write(file, source(&queries)).expect("the output folder is writable");
}

/// Each marker of this kind, with the text after it up to the next marker of either kind.
fn sections<'s>(
    sources: &'s [String],
    kind: &'s str,
) -> impl Iterator<Item = (&'s str, &'s str)> + 's {
    sources.iter().flat_map(move |source| {
        let marker = |line: &str| {
            let comment = line.strip_prefix("-- ").unwrap_or("");
            comment.starts_with("name: ") || comment.starts_with("fragment: ")
        };
        let mut starts: Vec<usize> = Vec::new();
        let mut offset = 0;
        for line in source.split_inclusive('\n') {
            if marker(line) {
                starts.push(offset);
            }
            offset += line.len();
        }
        let ends = starts.iter().skip(1).copied().chain([source.len()]);
        let ranges: Vec<_> = starts.iter().copied().zip(ends).collect();
        ranges.into_iter().filter_map(move |(start, end)| {
            let (head, text) = source[start..end].split_once('\n')?;
            let name = head.strip_prefix("-- ")?.strip_prefix(kind)?;
            Some((name.trim(), text))
        })
    })
}

/// The text on one line, without comments and semicolon, as it appears in the log of a database.
fn one_line(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split("--").next().unwrap_or(""));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").trim_end_matches(';').to_owned()
}

/// Replaces `{name}` by the fragment of that name, which may contain others. A brace that names no
/// fragment is literal.
fn insert_fragments(text: &str, fragments: &BTreeMap<&str, String>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let fragment = after
            .split_once('}')
            .and_then(|(name, after)| Some((fragments.get(name)?, after)));
        if let Some((fragment, after)) = fragment {
            filled.push_str(&insert_fragments(fragment, fragments));
            rest = after;
        } else {
            filled.push('{');
            rest = after;
        }
    }
    filled.push_str(rest);
    filled
}

/// `plan_of_step` → `PlanOfStep`.
fn variant(name: &str) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(1.min(word.len()));
        first.to_uppercase() + rest
    };
    name.split('_').map(capital).collect()
}

fn source(queries: &BTreeMap<&str, Texts>) -> String {
    let mut variants = String::new();
    let mut names = String::new();
    let mut texts = String::new();
    let mut all = String::new();
    for (name, Texts { sqlite, postgres }) in queries {
        let variant = variant(name);
        // Writing to a string cannot fail.
        let _ = write!(variants, "/// `{name}`\n{variant},\n");
        let _ = writeln!(names, "Self::{variant} => {name:?},");
        let _ = writeln!(texts, "Self::{variant} => ({sqlite:?}, {postgres:?}),");
        let _ = write!(all, "Query::{variant}, ");
    }
    format!(
        "/// A statement of `src/query/*.sql`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Query {{
{variants}
/// A text that is in no file, for tests of a backend.
#[cfg(test)]
Text(&'static str),
}}

impl Query {{
/// Name of the statement, for messages.
pub(crate) const fn name(self) -> &'static str {{
match self {{
{names}
#[cfg(test)]
Self::Text(text) => text,
}}
}}

/// Its texts for SQLite and for PostgreSQL.
const fn texts(self) -> (Option<&'static str>, Option<&'static str>) {{
match self {{
{texts}
#[cfg(test)]
Self::Text(text) => (Some(text), Some(text)),
}}
}}
}}

/// All statements.
#[cfg(test)]
pub(crate) const ALL: &[Query] = &[{all}];
"
    )
}
