//! Generates `enum Query` from `src/query/*.sql`, so that an unknown statement does not compile.
//!
//! Each statement follows a `-- name:` line. One text serves both databases: `$1` is the first
//! parameter, and SQLite gets it as `?1`. If the texts must differ, two statements have the same
//! name, marked `(sqlite)` and `(postgres)`, and the line after the name states why. A row change
//! has no text: `row_change.rs` describes it, and the backends render it. Text that several
//! statements share is written once, after a `-- fragment:` line, and inserted for `{its_name}`, in
//! any file. A fragment can be marked in the same way.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Texts of a statement: for SQLite and for PostgreSQL.
#[derive(Default)]
struct Texts {
    sqlite: Option<String>,
    postgres: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("src/query");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    let mut all = Vec::new();
    for file in files {
        all.extend(sections(&fs::read_to_string(file)?)?);
    }
    let mut queries: BTreeMap<&str, Texts> = BTreeMap::new();
    for dialect in ["sqlite", "postgres"] {
        let of_kind = |kind| {
            let sections = all.iter().filter(move |section| section.kind == kind);
            sections
                .filter(move |section| section.only.as_deref().is_none_or(|only| only == dialect))
        };
        let mut fragments = BTreeMap::new();
        for section in of_kind(Kind::Fragment) {
            if fragments
                .insert(section.name.as_str(), one_line(&section.text))
                .is_some()
            {
                return Err(format!("the fragment `{}` is defined twice", section.name).into());
            }
        }
        for section in of_kind(Kind::Query) {
            let text = insert_fragments(&one_line(&section.text), &fragments);
            let texts = queries.entry(&section.name).or_default();
            if text.is_empty() {
                continue;
            }
            let earlier = if dialect == "sqlite" {
                texts.sqlite.replace(text.replace('$', "?"))
            } else {
                texts.postgres.replace(text)
            };
            if earlier.is_some() {
                return Err(format!("`{}` is defined twice", section.name).into());
            }
        }
    }
    let out = env::var_os("OUT_DIR").ok_or("`OUT_DIR` is not set")?;
    fs::write(Path::new(&out).join("query.rs"), source(&queries))?;
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Query,
    Fragment,
}

/// A marker, and the text after it up to the next one.
struct Section {
    kind: Kind,
    name: String,
    /// The database, if the text is for one of them.
    only: Option<String>,
    text: String,
}

fn sections(file: &str) -> Result<Vec<Section>, String> {
    let mut sections: Vec<Section> = Vec::new();
    for line in file.lines() {
        let comment = line.strip_prefix("-- ").unwrap_or("");
        let marker = match comment.split_once(": ") {
            Some(("name", name)) => Some((Kind::Query, name)),
            Some(("fragment", name)) => Some((Kind::Fragment, name)),
            Some(_) | None => None,
        };
        if let Some((kind, marked)) = marker {
            let (name, only) = match marked.trim().split_once(" (") {
                Some((name, "sqlite)")) => (name, Some("sqlite")),
                Some((name, "postgres)")) => (name, Some("postgres")),
                Some((name, other)) => {
                    return Err(format!("`{name}`: unknown database `({other}`"));
                }
                None => (marked.trim(), None),
            };
            sections.push(Section {
                kind,
                name: name.to_owned(),
                only: only.map(str::to_owned),
                text: String::new(),
            });
        } else if let Some(section) = sections.last_mut() {
            section.text.push_str(line);
            section.text.push('\n');
        }
    }
    Ok(sections)
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
fn texts(self) -> (Option<&'static str>, Option<&'static str>) {{
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
