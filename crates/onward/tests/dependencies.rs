//! Dependency rules between the crates of the workspace, checked over `cargo metadata`.
//!
//! 1. The four crates form a chain; each depends only on crates below it.
//! 2. Database drivers are reserved for the store; MCP, HTTP and the command line for the binary.
//! 3. The core depends on nothing that does IO or waits.
//!
//! Each rule is checked on the workspace and on an invalid graph. Between our crates, all kinds of
//! dependencies count. For other crates, development dependencies do not count. `deny.toml` repeats
//! rule 2.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot read the workspace must fail"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Our crates, bottom up, each with the ones it may depend on directly.
const ALLOWED: [(&str, &[&str]); 5] = [
    ("onward-testbed", &[]),
    ("onward-core", &[]),
    ("onward-store", &["onward-core"]),
    ("onward-engine", &["onward-core", "onward-store"]),
    ("onward", &["onward-core", "onward-engine"]),
];

/// A crate for tests only, and the crates whose tests may use it.
const TESTBED: (&str, [&str; 4]) = (
    "onward-testbed",
    ["onward-core", "onward-store", "onward-engine", "onward"],
);

/// Reserved for `onward-store`.
const DATABASES: [&str; 11] = [
    "deadpool",
    "deadpool-postgres",
    "diesel",
    "libsqlite3-sys",
    "pgvector",
    "postgres",
    "refinery",
    "rusqlite",
    "sqlite-vec",
    "sqlx",
    "tokio-postgres",
];

/// Reserved for `onward`.
const INTERFACES: [&str; 8] = [
    "axum",
    "clap",
    "hyper",
    "ratatui",
    "reqwest",
    "rmcp",
    "tower-http",
    "ureq",
];

/// Crates that run, wait or do IO. The core must not depend on them, directly or indirectly.
const IO_CRATES: [&str; 11] = [
    "async-executor",
    "async-io",
    "async-std",
    "futures-executor",
    "mio",
    "notify",
    "polling",
    "smol",
    "socket2",
    "tempfile",
    "tokio",
];

/// Crates that the core must not depend on directly. Indirect dependencies cannot be banned: cargo
/// unifies features across the workspace, so the engine's `uuid` features apply to the core, too.
/// The core's `clippy.toml` bans calling them.
const RANDOMNESS: [&str; 3] = ["fastrand", "getrandom", "rand"];

/// Direct dependencies by crate name.
#[derive(Default)]
struct Graph(BTreeMap<String, BTreeMap<String, Kind>>);

/// The kind of a dependency. If both apply, `Build` takes precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Tests,
    Build,
}

impl Graph {
    fn from_edges(edges: &[(&str, &[&str])]) -> Self {
        let mut graph = Self::default();
        for (from, to) in edges {
            for to in *to {
                graph.add(from, to, Kind::Build);
            }
        }
        graph
    }

    /// This workspace, resolved for the host platform.
    fn of_workspace() -> Self {
        let metadata = MetadataCommand::new()
            .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            // The build of this test has fetched everything, so no network is needed.
            .other_options(
                ["--offline", "--locked", "--filter-platform", "host-tuple"].map(String::from),
            )
            .exec()
            .expect("cargo metadata succeeds; after a partial build, run `cargo fetch --locked`");
        let mut graph = Self::default();
        for node in metadata.resolve.iter().flat_map(|resolve| &resolve.nodes) {
            let from = &metadata[&node.id];
            for dependency in &node.deps {
                let to = &metadata[&dependency.pkg];
                let ours = metadata.workspace_members.contains(&to.id);
                let built = dependency
                    .dep_kinds
                    .iter()
                    .any(|kind| kind.kind != DependencyKind::Development);
                if built {
                    graph.add(&from.name, &to.name, Kind::Build);
                } else if ours {
                    graph.add(&from.name, &to.name, Kind::Tests);
                }
            }
            if metadata.workspace_members.contains(&node.id) {
                graph.0.entry(from.name.to_string()).or_default();
            }
        }
        graph
    }

    fn add(&mut self, from: &str, to: &str, kind: Kind) {
        let recorded = self
            .0
            .entry(from.to_owned())
            .or_default()
            .entry(to.to_owned())
            .or_insert(kind);
        *recorded = kind.max(*recorded);
    }

    fn direct(&self, from: &str) -> impl Iterator<Item = &str> {
        self.edges(from).map(|(to, _)| to)
    }

    fn edges(&self, from: &str) -> impl Iterator<Item = (&str, Kind)> {
        let edges = self.0.get(from).into_iter().flatten();
        edges.map(|(to, kind)| (to.as_str(), *kind))
    }

    /// A shortest path between two crates that avoids `excluded` and the testbed.
    fn path(&self, from: &str, to: &str, excluded: Option<&str>) -> Option<String> {
        let mut seen = BTreeSet::from([from]);
        let mut paths = VecDeque::from([vec![from]]);
        while let Some(path) = paths.pop_front() {
            let last = path.last().copied()?;
            if last == to {
                return Some(path.join(" -> "));
            }
            for next in self.direct(last) {
                if Some(next) != excluded && next != TESTBED.0 && seen.insert(next) {
                    paths.push_back([path.as_slice(), &[next]].concat());
                }
            }
        }
        None
    }
}

/// Rule 1: our crates depend only on those listed in [`ALLOWED`]; tests may use the testbed as
/// listed in [`TESTBED`].
fn disallowed_dependencies(graph: &Graph) -> Vec<String> {
    let ours = |name: &str| name == "onward" || name.starts_with("onward-");
    let mut violations = Vec::new();
    for name in graph.0.keys().filter(|name| ours(name)) {
        let Some((_, granted)) = ALLOWED.iter().find(|(listed, _)| listed == name) else {
            violations.push(format!("{name} is not listed"));
            continue;
        };
        for (other, kind) in graph.edges(name) {
            let (testbed, testing) = TESTBED;
            let tests = kind == Kind::Tests && other == testbed && testing.contains(&name.as_str());
            if ours(other) && !granted.contains(&other) && !tests {
                violations.push(format!("{name} -> {other}"));
            }
        }
    }
    violations
}

/// Rule 2: other crates reach the reserved crates only through `owner`. The testbed may depend on
/// all of them, because only tests depend on it.
fn bypasses(graph: &Graph, owner: &str, reserved: &[&str]) -> Vec<String> {
    ALLOWED
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| *name != owner && *name != TESTBED.0)
        .flat_map(|name| reserved.iter().map(move |other| (name, *other)))
        .filter_map(|(name, other)| graph.path(name, other, Some(owner)))
        .collect()
}

/// Rule 3: the core does no IO and uses no randomness.
fn impure(graph: &Graph) -> Vec<String> {
    let io = IO_CRATES
        .iter()
        .chain(&DATABASES)
        .chain(&INTERFACES)
        .filter_map(|other| graph.path("onward-core", other, None));
    let random = graph
        .direct("onward-core")
        .filter(|other| RANDOMNESS.contains(other))
        .map(|other| format!("onward-core -> {other}"));
    io.chain(random).collect()
}

const NOTHING: [String; 0] = [];

#[test]
fn the_graph_contains_the_workspace() {
    let graph = Graph::of_workspace();
    for (name, _) in ALLOWED {
        assert!(graph.0.contains_key(name), "{name} is not in the graph");
    }
    assert!(graph.path("onward", "onward-core", None).is_some());
    assert_eq!(
        graph.path("onward", "clap", None).as_deref(),
        Some("onward -> clap")
    );
}

#[test]
fn our_crates_depend_only_on_crates_below_them() {
    assert_eq!(disallowed_dependencies(&Graph::of_workspace()), NOTHING);
}

#[test]
fn only_the_store_depends_on_database_drivers() {
    let graph = Graph::of_workspace();
    assert_eq!(bypasses(&graph, "onward-store", &DATABASES), NOTHING);
}

#[test]
fn only_the_binary_depends_on_mcp_http_and_clap() {
    let graph = Graph::of_workspace();
    assert_eq!(bypasses(&graph, "onward", &INTERFACES), NOTHING);
}

#[test]
fn the_core_does_no_io() {
    assert_eq!(impure(&Graph::of_workspace()), NOTHING);
}

#[test]
fn detects_a_dependency_on_a_crate_above() {
    let graph = Graph::from_edges(&[("onward-core", &["onward-store"])]);
    assert_eq!(
        disallowed_dependencies(&graph),
        ["onward-core -> onward-store"]
    );
}

#[test]
fn detects_a_binary_that_bypasses_the_engine() {
    let graph = Graph::from_edges(&[("onward", &["onward-engine", "onward-store"])]);
    assert_eq!(disallowed_dependencies(&graph), ["onward -> onward-store"]);
}

#[test]
fn detects_an_unlisted_crate() {
    let graph = Graph::from_edges(&[("onward-extra", &["onward-core"])]);
    assert_eq!(
        disallowed_dependencies(&graph),
        ["onward-extra is not listed"]
    );
}

#[test]
fn detects_the_testbed_in_a_build() {
    let (testbed, testing) = TESTBED;
    for name in testing {
        let mut graph = Graph::default();
        graph.add(name, testbed, Kind::Tests);
        assert_eq!(disallowed_dependencies(&graph), NOTHING);
        graph.add(name, testbed, Kind::Build);
        assert_eq!(
            disallowed_dependencies(&graph),
            [format!("{name} -> {testbed}")]
        );
        graph.add(name, testbed, Kind::Tests);
        assert_eq!(
            disallowed_dependencies(&graph).len(),
            1,
            "{name}: both kinds count as a build"
        );
    }
}

#[test]
fn detects_a_test_that_bypasses_the_engine() {
    let mut graph = Graph::default();
    graph.add("onward", "onward-store", Kind::Tests);
    assert_eq!(disallowed_dependencies(&graph), ["onward -> onward-store"]);
}

#[test]
fn detects_a_testbed_that_depends_on_the_tested_crate() {
    let mut graph = Graph::default();
    graph.add("onward-testbed", "onward-store", Kind::Tests);
    assert_eq!(
        disallowed_dependencies(&graph),
        ["onward-testbed -> onward-store"]
    );
}

#[test]
fn detects_a_driver_that_bypasses_the_store() {
    let through = Graph::from_edges(&[
        ("onward", &["onward-engine"]),
        ("onward-engine", &["onward-store"]),
        ("onward-store", &["rusqlite"]),
        ("rusqlite", &["libsqlite3-sys"]),
    ]);
    assert_eq!(bypasses(&through, "onward-store", &DATABASES), NOTHING);

    let around = Graph::from_edges(&[("onward-engine", &["cache"]), ("cache", &["rusqlite"])]);
    assert_eq!(
        bypasses(&around, "onward-store", &DATABASES),
        ["onward-engine -> cache -> rusqlite"]
    );
}

#[test]
fn detects_an_indirect_interface_dependency() {
    let graph = Graph::from_edges(&[
        ("onward", &["axum"]),
        ("onward-engine", &["webhook"]),
        ("webhook", &["client"]),
        ("client", &["hyper"]),
    ]);
    assert_eq!(
        bypasses(&graph, "onward", &INTERFACES),
        ["onward-engine -> webhook -> client -> hyper"]
    );
}

#[test]
fn detects_io_and_randomness_in_the_core() {
    let graph = Graph::from_edges(&[
        ("onward-core", &["rules", "rand"]),
        ("rules", &["tokio"]),
        ("uuid", &["getrandom"]),
    ]);
    assert_eq!(
        impure(&graph),
        ["onward-core -> rules -> tokio", "onward-core -> rand"]
    );
}

#[test]
fn terminates_on_cyclic_graphs() {
    let graph = Graph::from_edges(&[("a", &["b"]), ("b", &["a"])]);
    assert_eq!(graph.path("a", "c", None), None);
}
