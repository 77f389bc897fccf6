//! Statements by name, from `query/*.sql`: one file per table, each statement under a `-- name:`
//! line.
//!
//! One text serves both databases: `$1` is the first parameter, and SQLite gets it as `?1`. If the
//! texts must differ, two have the same name, marked `(sqlite)` and `(postgres)`, and the line
//! after the name states why. Text that several statements share is written once, under `--
//! fragment:`, and inserted for `{its_name}`, in any file.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

/// The database that a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

const FILES: [&str; 21] = [
    include_str!("query/facts.sql"),
    include_str!("query/plans.sql"),
    include_str!("query/steps.sql"),
    include_str!("query/branches.sql"),
    include_str!("query/events.sql"),
    include_str!("query/artifacts.sql"),
    include_str!("query/outputs.sql"),
    include_str!("query/chunks.sql"),
    include_str!("query/vectors.sql"),
    include_str!("query/extractions.sql"),
    include_str!("query/skills.sql"),
    include_str!("query/feedback.sql"),
    include_str!("query/sessions.sql"),
    include_str!("query/calls.sql"),
    include_str!("query/context.sql"),
    include_str!("query/due.sql"),
    include_str!("query/notices.sql"),
    include_str!("query/tenants.sql"),
    include_str!("query/tokens.sql"),
    include_str!("query/tool_calls.sql"),
    include_str!("query/doctor.sql"),
];

/// A statement as written in its file, and as sent to a database. The latter is created on first
/// use, because most processes need few statements and start often.
struct Text {
    raw: &'static str,
    made: OnceLock<String>,
}

type Texts = HashMap<(&'static str, Dialect), Text>;

static TEXTS: LazyLock<Texts> = LazyLock::new(|| {
    let mut texts = Texts::new();
    for (head, raw) in FILES.iter().flat_map(|file| sections(file, "name: ")) {
        let (name, only) = match head.split_once(" (") {
            Some((name, only)) => (name.trim(), only.trim_end_matches(')').trim()),
            None => (head.trim(), ""),
        };
        for (dialect, other) in [(Dialect::Sqlite, "postgres"), (Dialect::Postgres, "sqlite")] {
            if only != other {
                let made = OnceLock::new();
                texts.insert((name, dialect), Text { raw, made });
            }
        }
    }
    texts
});

static FRAGMENTS: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let all = FILES.iter();
    let sections = all.flat_map(|file| sections(file, "fragment: "));
    sections.map(|(name, text)| (name.trim(), text)).collect()
});

/// The text of each marker of this kind, and the text after it up to the next marker of either
/// kind. The files are scanned once, line by line, because every hook waits for it.
fn sections(
    file: &'static str,
    mark: &'static str,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut rest = file;
    std::iter::from_fn(move || {
        loop {
            let (head, behind) = next_line(rest)?;
            rest = behind;
            let Some(name) = head
                .strip_prefix("-- ")
                .and_then(|comment| comment.strip_prefix(mark))
            else {
                continue;
            };
            let text = rest;
            while let Some((line, behind)) = next_line(rest)
                && !is_mark(line)
            {
                rest = behind;
            }
            let length = text.len() - rest.len();
            return Some((name, text.get(..length).unwrap_or(text)));
        }
    })
}

fn is_mark(line: &str) -> bool {
    let comment = line.strip_prefix("-- ");
    comment.is_some_and(|text| text.starts_with("name: ") || text.starts_with("fragment: "))
}

fn next_line(text: &'static str) -> Option<(&'static str, &'static str)> {
    match text.is_empty() {
        true => None,
        false => Some(text.split_once('\n').unwrap_or((text, ""))),
    }
}

/// Inserts the fragments, which may contain others.
fn filled(text: &str) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        filled.push_str(before);
        let fragment = behind.split_once('}');
        let fragment = fragment.and_then(|(name, after)| Some((FRAGMENTS.get(name)?, after)));
        rest = if let Some((part, after)) = fragment {
            filled.push_str(&self::filled(&statement(part)));
            after
        } else {
            // A literal brace.
            filled.push('{');
            behind
        };
    }
    filled.push_str(rest);
    filled
}

/// The text on one line without comments and semicolon, as it appears in the log of a database.
fn statement(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split("--").next().unwrap_or(""));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").trim_end_matches(';').to_owned()
}

/// Text of a statement. An unknown name has an empty text, which the database rejects; a test
/// checks that every name has a text for both databases.
pub(crate) fn text(name: &'static str, dialect: Dialect) -> &'static str {
    let Some(Text { raw, made }) = TEXTS.get(&(name, dialect)) else {
        return "";
    };
    made.get_or_init(|| {
        let text = filled(&statement(raw));
        match dialect {
            Dialect::Sqlite => text.replace('$', "?"),
            Dialect::Postgres => text,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::backend::sqlite;

    fn names(dialect: Dialect) -> BTreeSet<&'static str> {
        let of_dialect = TEXTS.keys().filter(|(_, found)| *found == dialect);
        of_dialect.map(|(name, _)| *name).collect()
    }

    #[test]
    fn every_statement_has_a_text_for_both_databases_with_known_exceptions() {
        let (sqlite, postgres) = (names(Dialect::Sqlite), names(Dialect::Postgres));
        let exceptions: Vec<_> = sqlite.symmetric_difference(&postgres).collect();
        let only = [
            "many_signs",
            "near_by_index",
            "plan_held",
            "plan_of_step_held",
            "plan_touch",
            "plan_update",
            "sign_changes",
        ];
        assert_eq!(exceptions, only.each_ref());
        assert!(sqlite.len() > 50);
    }

    #[test]
    fn every_fragment_is_inserted() {
        for (name, dialect) in TEXTS.keys() {
            let text = text(name, *dialect);
            assert!(
                !text.contains('{'),
                "`{name}` contains an unknown fragment: {text}"
            );
        }
    }

    #[test]
    fn every_statement_can_be_prepared_on_sqlite() {
        let file = rusqlite::Connection::open_in_memory().expect("in-memory database");
        for step in sqlite::STEPS {
            file.execute_batch(step).expect("valid migration");
        }
        for name in names(Dialect::Sqlite) {
            let prepared = file.prepare(text(name, Dialect::Sqlite));
            assert!(prepared.is_ok(), "`{name}`: {:?}", prepared.err());
        }
    }

    #[test]
    fn every_statement_is_used() {
        // Names are string literals in the sources; this directory contains all of them.
        let sources = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
        let mut all = String::new();
        for file in sources.expect("source directory").flatten() {
            if file.path().extension().is_some_and(|ending| ending == "rs") {
                all.push_str(&std::fs::read_to_string(file.path()).expect("readable source file"));
            }
        }
        for name in names(Dialect::Sqlite).union(&names(Dialect::Postgres)) {
            assert!(all.contains(&format!("\"{name}\"")), "`{name}` is not used");
        }
    }
}
