//! Layers of the store: a backend runs statements without naming one, and only `store`, which selects
//! the backend, names it. Only the decorator of the plan cache answers from the cache. The other crates
//! cannot name a backend, because it is private, or a driver (`dependencies.rs`).

use std::collections::BTreeMap;

use super::modules::Modules;
use super::{imports, references};
use crate::tree::{File, files};

const STORE: &str = "crates/onward-store/src/";

/// Modules about plans and records, which a backend must not use.
const ABOVE: [&str; 12] = [
    "cached",
    "codec",
    "commit",
    "plan",
    "plan_cache",
    "plan_version",
    "record",
    "relocate",
    "row",
    "store",
    "tx",
    "work",
];

/// The module that may import a specific backend, because it selects it.
const SELECTS: &str = "store";

/// Modules that use the plan cache: the decorator, the transaction that holds its state, and the store
/// that creates it.
const USE_CACHE: [&str; 3] = ["cached", "store", "tx"];

const DRIVERS: [&str; 3] = ["deadpool_postgres", "rusqlite", "tokio_postgres"];

/// It reads the database of another program.
const USES_DRIVER: [&str; 1] = ["opencode.rs"];

/// The module of a file in the store.
fn top(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap_or_default()
}

fn is_backend(file: &str) -> bool {
    top(file) == "backend"
}

fn violations(files: &[File]) -> Vec<String> {
    let mut violations = Vec::new();
    for (from, imported) in imports(files) {
        let from = from.trim_start_matches(STORE);
        for (to, names) in imported {
            let to = to.trim_start_matches(STORE);
            let is_wrong = if is_backend(from) {
                ABOVE.contains(&top(to))
            } else {
                let is_specific = to.starts_with("backend/") && to != "backend/relocation.rs";
                let is_cache = top(to) == "plan_cache" && top(from) != top(to);
                (is_specific && top(from) != SELECTS)
                    || (is_cache && !USE_CACHE.contains(&top(from)))
            };
            violations.extend(is_wrong.then(|| format!("{from} -> {to}: {names:?}")));
        }
    }
    for file in files {
        let name = file.path.trim_start_matches(STORE);
        let is_part = |next: char| next.is_alphanumeric() || next == '_';
        let mut fields = file.text.split(".cache").skip(1);
        let uses_cache = fields.any(|rest| !rest.starts_with(is_part));
        let is_wrong = ["plan", "record"].contains(&top(name)) && uses_cache;
        violations.extend(is_wrong.then(|| format!("{name}: uses the plan cache")));
    }
    let by_path: BTreeMap<_, _> = (files.iter())
        .map(|file| (file.path.as_str(), file))
        .collect();
    let (modules, items) = Modules::read(&format!("{STORE}lib.rs"), &by_path);
    for (module, item) in &items {
        let file = modules.file(*module).trim_start_matches(STORE);
        let is_wrong = |path: &Vec<String>| {
            if is_backend(file) {
                let is_variant = |name: &str| name.starts_with(char::is_uppercase);
                path.windows(2)
                    .any(|pair| pair[0] == "Query" && is_variant(&pair[1]))
            } else {
                DRIVERS.contains(&path[0].as_str()) && !USES_DRIVER.contains(&file)
            }
        };
        let paths = references::paths(item).into_iter().filter(is_wrong);
        violations.extend(paths.map(|path| format!("{file}: {}", path.join("::"))));
    }
    violations
}

#[test]
fn a_backend_names_no_statement_and_only_the_store_names_a_backend() {
    let mut files = files();
    files.retain(|file| file.path.starts_with(STORE));
    for module in ABOVE {
        let path = format!("{STORE}{module}.rs");
        assert!(files.iter().any(|file| file.path == path), "no file {path}");
    }
    let violations = violations(&files);
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn detects_violations_of_the_layers() {
    for (name, text) in [
        ("backend/sqlite", "use crate::plan::Plan;"),
        (
            "backend/sqlite",
            "fn a() { run(crate::query::Query::PlanMove); }",
        ),
        ("plan", "use crate::backend::sqlite::File;"),
        ("plan", "fn a() -> rusqlite::Connection {}"),
        ("plan", "use crate::plan_cache::Cache;"),
        ("plan", "fn a(tx: &Tx) { tx.cache.take(); }"),
    ] {
        let sources = [
            ("lib", "mod backend; mod plan; mod plan_cache;"),
            ("backend", "pub mod sqlite;"),
            ("backend/sqlite", "pub struct File;"),
            ("plan", "pub struct Plan;"),
            ("plan_cache", "pub struct Cache;"),
        ];
        let files = sources.map(|(module, source)| {
            let more = if module == name { text } else { "" };
            File::new(&format!("{STORE}{module}.rs"), &format!("{source} {more}"))
        });
        assert_eq!(violations(&files).len(), 1, "{text}");
    }
}
