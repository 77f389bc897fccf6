//! The SQL statements in the store's `.sql` files: frequent statements use an index, and differences
//! between the backends are explained.

use std::path::{Path, PathBuf};

use onward_testbed::{Backend, Cluster};

use crate::harness::Harness;
use crate::on_both_databases;

/// A statement with the text for one backend.
struct Statement {
    name: String,
    text: String,
}

fn store_crate() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../onward-store")
}

/// The contents of all files with this extension.
fn read_files(dir: &Path, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("directory was listed") {
        let path = entry.expect("directory was listed").path();
        if path.is_dir() {
            found.extend(read_files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(std::fs::read_to_string(&path).expect("file was read"));
        }
    }
    found
}

/// The sections of a file that start with `-- {marker}: NAME`.
fn sections(file: &str, marker: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut open = false;
    for line in file.lines() {
        let section_name = |marker: &str| {
            line.strip_prefix("-- ")?
                .strip_prefix(marker)?
                .strip_prefix(": ")
        };
        if let Some(name) = section_name(marker) {
            found.push((name.trim().to_owned(), String::new()));
            open = true;
        } else if section_name("name").or(section_name("fragment")).is_some() {
            open = false;
        } else if let (true, Some((_, text))) = (open, found.last_mut()) {
            text.push_str(line.split("--").next().unwrap_or_default());
            text.push('\n');
        }
    }
    found
}

/// The name of a section, unless it is for the other backend.
fn name_for(backend: Backend, head: &str) -> Option<&str> {
    let (name, only) = head.split_once(' ').unwrap_or((head, ""));
    let other = match backend {
        Backend::Sqlite => "(postgres)",
        Backend::Postgres => "(sqlite)",
    };
    (only != other).then_some(name)
}

/// Every statement of one backend.
fn statements(backend: Backend) -> Vec<Statement> {
    let mut found = Vec::new();
    let files = read_files(&store_crate().join("src/query"), "sql");
    let fragments = files.iter().flat_map(|file| sections(file, "fragment"));
    let fragments: Vec<(String, String)> = fragments.collect();
    for file in &files {
        for (head, text) in sections(file, "name") {
            let Some(name) = name_for(backend, &head) else {
                continue;
            };
            let mut text = text.trim().trim_end_matches(';').to_owned();
            // Three passes: a fragment may contain other fragments, two levels deep.
            for (head, sql) in [&fragments, &fragments, &fragments].into_iter().flatten() {
                let Some(fragment) = name_for(backend, head) else {
                    continue;
                };
                text = text.replace(&format!("{{{fragment}}}"), sql.trim());
            }
            if backend == Backend::Sqlite {
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
fn a_statement_for_one_backend_has_a_comment_with_the_reason() {
    for file in read_files(&store_crate().join("src/query"), "sql") {
        let mut lines = file.lines().peekable();
        while let Some(line) = lines.next() {
            let is_section = line.starts_with("-- name: ") || line.starts_with("-- fragment: ");
            if is_section && line.ends_with(')') {
                let reason = lines.peek().copied().unwrap_or_default();
                assert!(reason.starts_with("-- Differs "), "{line}");
            }
        }
    }
}

/// SQLite builds a table for a list of three values whenever it checks a constraint or the
/// condition of an index, which is most of the time of a small write.
#[test]
fn constraints_and_indexes_of_sqlite_contain_no_list() {
    for schema in read_files(&store_crate().join("migrations/sqlite"), "sql") {
        for (place, _) in schema.match_indices(" IN (") {
            let list = &schema[place..];
            let list = &list[..=list.find(')').expect("end of the list")];
            assert!(list.matches(',').count() < 2, "{list}");
        }
    }
}

/// Statements of frequent calls and lists, with parameters.
const HOT: [(&str, &str); 52] = [
    ("plan_facts", "'t', {id}"),
    ("step_facts", "'t', {id}"),
    ("step_facts_and_ready", "'t', {id}"),
    ("next_facts", "'t', {id}, 's'"),
    ("step", "'t', {id}"),
    ("steps_ready", "'t', {id}"),
    ("steps_undelivered", "'t', {id}, 's'"),
    ("steps_stalled", "'t', {id}, 1"),
    ("step_next_stall", "'t', {id}, 1"),
    ("dependents_release", "'t', {id}, 0"),
    ("branches_delete", "'t', {id}"),
    ("branches_delete_after", "'t', {id}"),
    ("dependencies_delete", "'t', {id}"),
    ("dependencies_delete_of_step", "'t', {id}"),
    ("idempotency_keys_delete", "'t', {id}"),
    ("trail_of_plan", "'t', {id}, 1, 1"),
    ("trail_of_step", "'t', {id}, 1, 1"),
    ("due_between", "0, 1, 1, 1"),
    ("due_first", ""),
    ("notice_first", "'t'"),
    ("notices_due_locked", "'t', 1, 1"),
    ("notices_after", "'t', 1, 1"),
    ("plans_in", "'t', 1, 1, {id}, 1, 'failed', 1"),
    ("plans_archived", "'t', 1, 1, {id}, 1"),
    ("plans_archived_count", "'t', 1"),
    ("journal", "'t', '/d', 1, {id}, 1"),
    ("plans_by_status", "'t'"),
    ("plans_ended_before", "'t', 1, 1, 'failed'"),
    ("plans_found", "'t', 1, {id}, 1, 'failed', 'word'"),
    ("events_after", "'t', {id}, 1, 1"),
    ("skill_started_locked", "'t', 's'"),
    ("step_lines_of_session", "'t', 's', 1"),
    ("steps_claimed", "'t', 's', 1"),
    ("artifact_text", "'t', {id}, 1, 1"),
    ("output_text", "'t', {id}, 1, 1"),
    ("skills_of_plan", "'t', {id}, 1"),
    ("feedback_of_plan", "'t', {id}, 1"),
    ("session", "'t', 's'"),
    ("session_agent", "'t', 's', ''"),
    ("turn_last", "'t', 's', ''"),
    ("directory_plans_open", "'t', '/d', 1, 1"),
    ("sessions_latest", "'t', 1"),
    ("turns_last_of_sessions", "'t', 1"),
    ("calls_of_sessions", "'t', 1"),
    ("turn_steps_latest", "'t', 's', '', 1, 1"),
    ("events_of_reviews", "'t', {id}, {id}, 1"),
    ("events_of_earlier_reviews", "'t', {id}, 1, {id}"),
    ("queue_labels", "'t', 'p'"),
    ("queue_first", "'t', 'p', ''"),
    ("queue_remove", "'t', {id}"),
    ("plan_labels", "'t', {id}"),
    ("steps_ready_with", "'t', {id}, ''"),
];

/// The lookups in recursive statements: statement, types of the parameters, query.
const LOOKUPS: [(&str, &str, &str); 2] = [
    (
        "queue_labels",
        "(text, text, text)",
        "SELECT labels FROM steps WHERE tenant_id = $1 AND project_key = $2 \
         AND status = 'pending' AND open_dependencies = 0 AND labels > $3 ORDER BY labels LIMIT 1",
    ),
    (
        "plan_labels",
        "(text, uuid, text)",
        "SELECT labels FROM steps WHERE tenant_id = $1 AND plan_id = $2 AND labels <> '' \
         AND status = 'pending' AND open_dependencies = 0 AND labels > $3 ORDER BY labels LIMIT 1",
    ),
];

/// Statements that must use this index, and the last condition of the lookup on SQLite and on
/// PostgreSQL. The next set of labels is found by a lookup and not by reading all entries of the
/// previous one.
const INDEXES: [(&str, &str, [&str; 2]); 6] = [
    ("queue_labels", "steps_queue", ["labels>?", "(labels > "]),
    ("queue_first", "steps_queue", ["", ""]),
    ("plan_labels", "steps_labelled", ["labels>?", "(labels > "]),
    ("steps_ready_with", "steps_labelled", ["", ""]),
    (
        "events_of_reviews",
        "events_reviews",
        ["step_id=?", "(step_id = "],
    ),
    (
        "events_of_earlier_reviews",
        "events_reviews",
        ["step_id=?", "(step_id = "],
    ),
];

/// The queries of functions, which run as the owner of the tables: statement, parameters, query.
const IN_FUNCTIONS: [(&str, &str, &str); 3] = [
    (
        "due_between",
        "1, 2, 1",
        "SELECT tenant_id, row_number() OVER (PARTITION BY tenant_id ORDER BY at * $3) FROM due \
            WHERE at > $1 AND at <= $2",
    ),
    ("due_first", "", "SELECT min(at) FROM due"),
    (
        "plans_found",
        "'t', 'word'",
        "SELECT plan_id FROM plan_words WHERE tenant_id = $1 AND words @@ to_tsquery('simple', $2)",
    ),
];

async fn frequent_statements_use_an_index(harness: &Harness) {
    if harness.database.backend() == Backend::Postgres && Cluster::distributed().is_some() {
        println!("skipped: the nodes of a distributed database plan the statements");
        return;
    }
    let all = statements(harness.database.backend());
    for (hot, params) in HOT {
        let Some(Statement { text, .. }) = all.iter().find(|statement| statement.name == hot)
        else {
            panic!("no statement `{hot}`")
        };
        let params = params.replace("{id}", &harness.id_literal(harness.engine.new_plan_id()));
        match harness.database.backend() {
            Backend::Sqlite => {
                let plan = harness.sql(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
                // `SEARCH due USING … INDEX` also reads the first entry of an index.
                let searches = plan.contains("USING") && plan.contains("SEARCH");
                // Allowed scans: results of a subquery, and a `MATCH` on the full-text index.
                let subqueries = [
                    "page",
                    "latest",
                    "sets",
                    "previous",
                    "queued",
                    "(subquery-3)",
                    "CONSTANT",
                ];
                let full_text = "plan_word_index VIRTUAL TABLE INDEX 0:M1";
                let lines = plan.lines().map(|line| line.split("SCAN ").nth(1));
                let scans = lines.flatten().any(|scanned| {
                    let mut words = scanned.split_whitespace();
                    let in_memory = words
                        .next()
                        .is_some_and(|table| subqueries.contains(&table));
                    !in_memory && !scanned.starts_with(full_text)
                });
                assert!(searches && !scans, "{hot}:\n{plan}");
                // An index lookup by tenant only reads all rows of the tenant, which is acceptable
                // for counts and lists.
                let reads_tenant = [
                    "notice_first",
                    "plans_by_status",
                    "sessions_latest",
                    "turns_last_of_sessions",
                    "calls_of_sessions",
                ]
                .contains(&hot);
                assert!(
                    reads_tenant || !plan.contains("(tenant_id=?)"),
                    "{hot}:\n{plan}"
                );
                let sorts = plan.contains("TEMP B-TREE");
                // Sorting is acceptable for few rows: stalled steps, plans changed within the same
                // ten seconds, plans of one directory, results of a subquery. A round of the sweep
                // sorts the plans that are due once, so that tenants take turns.
                let few = [
                    "due_between",
                    "steps_stalled",
                    "plans_in",
                    "plans_archived",
                    "journal",
                    "plans_found",
                    "plans_ended_before",
                    "directory_plans_open",
                    "turn_steps_latest",
                    "calls_of_sessions",
                    "events_of_earlier_reviews",
                ]
                .contains(&hot);
                assert!(!sorts || few, "{hot}:\n{plan}");
                check_index(hot, &plan, Backend::Sqlite);
            }
            Backend::Postgres => {
                let in_function = IN_FUNCTIONS.iter().find(|(name, ..)| *name == hot);
                let (role, params, text) = match in_function {
                    Some((_, params, text)) => ("NONE", *params, *text),
                    None => ("onward_tenant", params.as_str(), text.as_str()),
                };
                let execute = match params {
                    "" => "EXECUTE hot".to_owned(),
                    params => format!("EXECUTE hot({params})"),
                };
                let plan = harness.sql(&format!(
                    "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; \
                     SET onward.tenant = 't'; SET ROLE {role}; \
                     PREPARE hot AS {text}; EXPLAIN {execute}"
                ));
                let plan = plan.unwrap();
                let by_index = plan.contains("Index") && !plan.contains("Seq Scan");
                assert!(by_index, "{hot}:\n{plan}");
                // `EXPLAIN` does not show the lookup inside the recursion.
                let lookup = LOOKUPS.iter().find(|(name, ..)| *name == hot);
                let plan = match lookup {
                    Some((_, params, text)) => harness
                        .sql(&format!(
                            "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; \
                             SET onward.tenant = 't'; SET ROLE onward_tenant; \
                             PREPARE hot{params} AS {text}; EXPLAIN EXECUTE hot('t', {id}, '')",
                            id = if hot == "plan_labels" {
                                harness.id_literal(harness.engine.new_plan_id())
                            } else {
                                "'p'".to_owned()
                            },
                        ))
                        .unwrap(),
                    None => plan,
                };
                check_index(hot, &plan, Backend::Postgres);
            }
        }
    }
}

/// Checks that the statement uses the index that it was written for.
fn check_index(hot: &str, plan: &str, backend: Backend) {
    let Some((_, index, lookups)) = INDEXES.iter().find(|(name, ..)| *name == hot) else {
        return;
    };
    let lookup = lookups[usize::from(backend == Backend::Postgres)];
    let found = plan.split_once(index).map(|(_, after)| after);
    assert!(
        found.is_some_and(|after| after.contains(lookup)),
        "{hot}:\n{plan}"
    );
    let few = hot == "events_of_earlier_reviews";
    assert!(few || !plan.contains("Sort"), "{hot}:\n{plan}");
}

/// PostgreSQL updates a row in place only if no index depends on a changed column.
async fn no_index_depends_on_the_activity_of_a_step(harness: &Harness) {
    let indexed = "SELECT string_agg(DISTINCT attname, ',' ORDER BY attname) FROM pg_depend \
        JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid \
        WHERE classid = 'pg_class'::regclass AND refobjid = 'steps'::regclass AND objid IN \
        (SELECT indexrelid FROM pg_index WHERE indrelid = 'steps'::regclass)";
    let indexed = harness.sql(indexed).unwrap();
    for column in ["status", "claim_session"] {
        assert!(indexed.contains(column), "{indexed}");
    }
    for column in ["last_progress_at", "stalls_at", "updated_at"] {
        assert!(!indexed.contains(column), "{indexed}");
    }
}

on_both_databases![frequent_statements_use_an_index];

mod hot_updates {
    use super::no_index_depends_on_the_activity_of_a_step;
    crate::on_postgres![no_index_depends_on_the_activity_of_a_step];
}
