//! The statements themselves, read from the store's `.sql` files: each is used, each can be prepared
//! on both databases with parameters of the few kinds that the store binds, and those that every call
//! needs find their rows by an index.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::place::{Kind, Place};

/// A statement under its name, as one database gets it.
struct Statement {
    name: String,
    text: String,
}

fn store() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../onward-store")
}

fn files(folder: &Path, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the store has sources") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|own| own == ending) {
            found.push(std::fs::read_to_string(&path).expect("it can be read"));
        }
    }
    found
}

/// The parts of a file that begin with `-- {mark}: NAME`, each up to the next mark.
fn parts(file: &str, mark: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut open = false;
    for line in file.lines() {
        let named = |mark: &str| {
            line.strip_prefix("-- ")?
                .strip_prefix(mark)?
                .strip_prefix(": ")
        };
        if let Some(name) = named(mark) {
            found.push((name.trim().to_owned(), String::new()));
            open = true;
        } else if named("name").or(named("fragment")).is_some() {
            open = false;
        } else if let (true, Some((_, text))) = (open, found.last_mut()) {
            text.push_str(line.split("--").next().unwrap_or_default());
            text.push('\n');
        }
    }
    found
}

/// Every statement of one database.
fn statements(kind: Kind) -> Vec<Statement> {
    let mut found = Vec::new();
    let files = files(&store().join("src/query"), "sql");
    let shared = files.iter().flat_map(|file| parts(file, "fragment"));
    let fragments: Vec<(String, String)> = shared.collect();
    for file in &files {
        for (head, text) in parts(file, "name") {
            let (name, only) = head.split_once(' ').unwrap_or((&head, ""));
            match (only, kind) {
                ("(sqlite)", Kind::Postgres) | ("(postgres)", Kind::Sqlite) => continue,
                _ => {}
            }
            let mut text = text.trim().trim_end_matches(';').to_owned();
            // Twice, since a fragment may hold others, which hold none.
            for (fragment, part) in fragments.iter().chain(&fragments) {
                text = text.replace(&format!("{{{fragment}}}"), part.trim());
            }
            if kind == Kind::Sqlite {
                text = text.replace('$', "?");
            }
            found.push(Statement {
                name: name.to_owned(),
                text,
            });
        }
    }
    found
}

#[test]
fn every_statement_is_used_and_every_name_that_is_used_has_one() {
    let sources = files(&store().join("src"), "rs").concat();
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let mut names: Vec<String> = statements(kind).into_iter().map(|one| one.name).collect();
        assert!(names.len() > 60, "they are found: {}", names.len());
        for name in &names {
            assert!(
                sources.contains(&format!("\"{name}\"")),
                "`{name}` is used nowhere"
            );
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), statements(kind).len(), "each name stands once");
    }
    // What holds a plan on a server alone, or has to do with an index there, and what is set apart on a
    // file alone.
    let apart = [
        "many_signs",
        "near_by_index",
        "plan_held",
        "plan_of_step_held",
        "plan_touch",
        "plan_update",
        "sign_changes",
    ];
    let names = |kind| {
        statements(kind)
            .into_iter()
            .map(|one| one.name)
            .filter(|name| !apart.contains(&name.as_str()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(Kind::Sqlite),
        names(Kind::Postgres),
        "both databases have the same ones"
    );
}

#[test]
fn a_statement_that_differs_says_why() {
    for file in files(&store().join("src/query"), "sql") {
        let mut lines = file.lines().peekable();
        while let Some(line) = lines.next() {
            if line.starts_with("-- name: ") && line.ends_with(')') {
                let why = lines.peek().copied().unwrap_or_default();
                assert!(why.starts_with("-- Differs "), "{line}");
            }
        }
    }
}

async fn every_statement_can_be_prepared(desk: &Desk) {
    match &desk.place {
        Place::File(folder) => {
            let file = rusqlite::Connection::open(folder.database()).unwrap();
            file.busy_timeout(Duration::from_secs(20)).unwrap();
            for Statement { name, text } in statements(Kind::Sqlite) {
                if let Err(why) = file.prepare(&text) {
                    panic!("`{name}`: {why}");
                }
            }
        }
        Place::Server(_) => {
            let prepares: String = statements(Kind::Postgres)
                .iter()
                .map(|Statement { name, text }| format!("PREPARE s_{name} AS {text};\n"))
                .collect();
            // The store binds five types and no other: a parameter that the server takes for a
            // sixth one fails with the first value that does not fit it.
            let types = desk.sql(&format!(
                "{prepares} SELECT name, parameter_types FROM pg_prepared_statements, \
                 unnest(parameter_types) AS type WHERE type NOT IN \
                 ('text'::regtype, 'uuid'::regtype, 'bigint'::regtype, 'float8'::regtype, \
                 'bytea'::regtype)"
            ));
            assert_eq!(types.as_deref(), Ok(""));
        }
    }
}

/// Those that every call, or every look at a list, needs, with parameters for them.
const HOT: [(&str, &str); 36] = [
    ("plan_facts", "'t', {id}"),
    ("step_facts", "'t', {id}"),
    ("step_facts_and_ready", "'t', {id}"),
    ("next_facts", "'t', {id}"),
    ("step", "'t', {id}"),
    ("steps_ready", "'t', {id}"),
    ("steps_undelivered", "'t', {id}"),
    ("steps_stalled", "'t', {id}, 1"),
    ("step_next_stall", "'t', {id}, 1"),
    ("dependents_release", "'t', {id}"),
    ("branches_delete", "'t', {id}"),
    ("branches_delete_after", "'t', {id}"),
    ("dependencies_delete", "'t', {id}"),
    ("dependencies_delete_of_step", "'t', {id}"),
    ("idempotency_keys_delete", "'t', {id}"),
    ("trail_of_plan", "'t', {id}, 1, 1"),
    ("trail_of_step", "'t', {id}, 1, 1"),
    ("due_until", "1, 1"),
    ("due_first", ""),
    ("notice_first", "'t'"),
    ("notices_due_locked", "'t', 1, 1"),
    ("notices_after", "'t', 1, 1"),
    ("plans_in", "'t', 1, {id}, 1, 1, 'failed'"),
    ("plans_by_status", "'t'"),
    ("plans_ended_before", "'t', 1, 1, 'failed'"),
    ("plans_found", "'t', 1, {id}, 1, 1, 'failed', 'word'"),
    ("events_after", "'t', {id}, 1, 1"),
    ("skill_free_locked", "'t', 's'"),
    ("skills_of_plan", "'t', {id}, 1"),
    ("feedback_of_plan", "'t', {id}, 1"),
    ("session", "'t', 's'"),
    ("session_agent", "'t', 's', ''"),
    ("turn_last", "'t', 's', ''"),
    ("directory_plan_open", "'t', '/d'"),
    ("sessions_latest", "'t', 1"),
    ("turn_steps_latest", "'t', 's', '', 1, 1"),
];

async fn what_every_call_needs_is_found_by_an_index(desk: &Desk) {
    let all = statements(desk.place.kind());
    for (hot, params) in HOT {
        let Some(Statement { text, .. }) = all.iter().find(|one| one.name == hot) else {
            panic!("there is no statement `{hot}`")
        };
        let params = params.replace("{id}", &desk.literal(desk.engine.fresh_plan()));
        match desk.place.kind() {
            Kind::Sqlite => {
                let plan = desk.sql(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
                // `SEARCH due USING … INDEX` is how the least of an index is found, too.
                let searches = plan.contains("USING") && plan.contains("SEARCH");
                // What a list, or another part of the same statement, has found already; and what an
                // index of words is asked for by `MATCH`, which it looks up.
                let found = ["page", "latest"];
                let looked_up = "plan_word_index VIRTUAL TABLE INDEX 0:M1";
                let lines = plan.lines().map(|line| line.split("SCAN ").nth(1));
                let scans = lines.flatten().any(|scanned| {
                    let mut words = scanned.split_whitespace();
                    let known = words.next().is_some_and(|table| found.contains(&table));
                    !known && !scanned.starts_with(looked_up)
                });
                assert!(searches && !scans, "{hot}:\n{plan}");
                // An index of which only the tenant is used finds all of a tenant's rows, which only those
                // that count or list them want.
                let of_tenant =
                    ["notice_first", "plans_by_status", "sessions_latest"].contains(&hot);
                assert!(
                    of_tenant || !plan.contains("(tenant_id=?)"),
                    "{hot}:\n{plan}"
                );
                let sorts = plan.contains("TEMP B-TREE");
                // Few rows: what has stalled; what changed within the same ten seconds.
                // Few rows, too: the plans of one directory; what a list has found already.
                let few = [
                    "steps_stalled",
                    "plans_in",
                    "plans_found",
                    "plans_ended_before",
                    "directory_plan_open",
                    "turn_steps_latest",
                ]
                .contains(&hot);
                assert!(!sorts || few, "{hot}:\n{plan}");
            }
            Kind::Postgres => {
                let execute = match params.as_str() {
                    "" => "EXECUTE hot".to_owned(),
                    params => format!("EXECUTE hot({params})"),
                };
                let plan = desk.sql(&format!(
                    "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; \
                     SET onward.tenant = 't'; SET ROLE onward_tenant; \
                     PREPARE hot AS {text}; EXPLAIN {execute}"
                ));
                let plan = plan.unwrap();
                let by_index = plan.contains("Index") && !plan.contains("Seq Scan");
                assert!(by_index, "{hot}:\n{plan}");
            }
        }
    }
}

on_both_databases![
    every_statement_can_be_prepared,
    what_every_call_needs_is_found_by_an_index,
];
