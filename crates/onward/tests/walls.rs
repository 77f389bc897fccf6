//! Which crate may know which: the walls of the workspace, held over `cargo metadata`.
//!
//! Three rules, each a function from a small graph to the sentences that say where it is broken:
//! the four crates stand in a line; what is reserved for one of them is not reached around it;
//! the core reaches nothing that acts. Each is tried on the real workspace and on a bad graph.
//! Beside the line stands the testbed, which knows none of them and is for their tests only.
//!
//! Edges between our own crates count whatever their kind. Of other crates only what ends up in
//! a build counts: a test may use what the code must not. `deny.toml` repeats the second rule
//! for whoever runs cargo-deny.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot read the workspace must fail"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Each crate of ours with those of ours that it may depend on directly, from the bottom up.
const LINE: [(&str, &[&str]); 5] = [
    ("onward-testbed", &[]),
    ("onward-core", &[]),
    ("onward-store", &["onward-core"]),
    ("onward-engine", &["onward-core", "onward-store"]),
    ("onward", &["onward-core", "onward-engine"]),
];

/// The crate of ours that only tests may use, and whose tests may: no build contains it.
const TESTBED: (&str, [&str; 3]) = (
    "onward-testbed",
    ["onward-store", "onward-engine", "onward"],
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
const SURFACES: [&str; 8] = [
    "axum",
    "clap",
    "hyper",
    "ratatui",
    "reqwest",
    "rmcp",
    "tower-http",
    "ureq",
];

/// What the core may not reach, however far: whatever runs, waits, or talks to the machine.
const ACTING: [&str; 11] = [
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

/// What the core may not name itself. Deeper down it cannot be forbidden: cargo adds up the
/// features of a whole workspace, so an engine that makes random ids gives `uuid` these for the
/// core too. That the core calls none of it is held by its `clippy.toml`.
const RANDOM: [&str; 3] = ["fastrand", "getrandom", "rand"];

/// Crates by name, with what they depend on directly.
#[derive(Default)]
struct Graph(BTreeMap<String, BTreeMap<String, Kind>>);

/// What a dependency is for; the greater stands where it is for both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Tests,
    Build,
}

impl Graph {
    fn of(edges: &[(&str, &[&str])]) -> Self {
        let mut graph = Self::default();
        for (from, to) in edges {
            for to in *to {
                graph.add(from, to, Kind::Build);
            }
        }
        graph
    }

    /// The workspace that this test stands in, as it is built on this machine.
    fn of_this_workspace() -> Self {
        let metadata = MetadataCommand::new()
            .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            // What the build of this test has fetched is all that is needed: no network.
            .other_options(
                ["--offline", "--locked", "--filter-platform", "host-tuple"].map(String::from),
            )
            .exec()
            .expect("cargo metadata answers; after a partial build, `cargo fetch --locked` first");
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
        let known = self
            .0
            .entry(from.to_owned())
            .or_default()
            .entry(to.to_owned())
            .or_insert(kind);
        *known = kind.max(*known);
    }

    fn direct(&self, from: &str) -> impl Iterator<Item = &str> {
        self.edges(from).map(|(to, _)| to)
    }

    fn edges(&self, from: &str) -> impl Iterator<Item = (&str, Kind)> {
        let edges = self.0.get(from).into_iter().flatten();
        edges.map(|(to, kind)| (to.as_str(), *kind))
    }

    /// A shortest way from one crate to another that does not lead through `around`.
    fn way(&self, from: &str, to: &str, around: Option<&str>) -> Option<String> {
        let mut seen = BTreeSet::from([from]);
        let mut ways = VecDeque::from([vec![from]]);
        while let Some(way) = ways.pop_front() {
            let last = way.last().copied()?;
            if last == to {
                return Some(way.join(" -> "));
            }
            for next in self.direct(last) {
                if Some(next) != around && seen.insert(next) {
                    ways.push_back([way.as_slice(), &[next]].concat());
                }
            }
        }
        None
    }
}

/// Rule 1: a crate of ours knows only those below it that [`LINE`] grants it, and its tests
/// the testbed where [`TESTBED`] says so.
fn out_of_line(graph: &Graph) -> Vec<String> {
    let ours = |name: &str| name == "onward" || name.starts_with("onward-");
    let mut broken = Vec::new();
    for name in graph.0.keys().filter(|name| ours(name)) {
        let Some((_, granted)) = LINE.iter().find(|(known, _)| known == name) else {
            broken.push(format!("{name} has no place in the line"));
            continue;
        };
        for (other, kind) in graph.edges(name) {
            let (testbed, testing) = TESTBED;
            let tests = kind == Kind::Tests && other == testbed && testing.contains(&name.as_str());
            if ours(other) && !granted.contains(&other) && !tests {
                broken.push(format!("{name} -> {other}"));
            }
        }
    }
    broken
}

/// Rule 2: nobody but `owner` reaches what is reserved for it, except through it.
fn reached_around(graph: &Graph, owner: &str, reserved: &[&str]) -> Vec<String> {
    LINE.iter()
        .map(|(name, _)| *name)
        .filter(|name| *name != owner)
        .flat_map(|name| reserved.iter().map(move |other| (name, *other)))
        .filter_map(|(name, other)| graph.way(name, other, Some(owner)))
        .collect()
}

/// Rule 3: the core reaches nothing that acts, and names no source of randomness.
fn impure(graph: &Graph) -> Vec<String> {
    let acting = ACTING
        .iter()
        .chain(&DATABASES)
        .chain(&SURFACES)
        .filter_map(|other| graph.way("onward-core", other, None));
    let random = graph
        .direct("onward-core")
        .filter(|other| RANDOM.contains(other))
        .map(|other| format!("onward-core -> {other}"));
    acting.chain(random).collect()
}

const NOTHING: [String; 0] = [];

#[test]
fn the_graph_that_is_checked_is_that_of_the_workspace() {
    let graph = Graph::of_this_workspace();
    for (name, _) in LINE {
        assert!(graph.0.contains_key(name), "{name} is not in the graph");
    }
    assert!(graph.way("onward", "onward-core", None).is_some());
    assert_eq!(
        graph.way("onward", "clap", None).as_deref(),
        Some("onward -> clap")
    );
}

#[test]
fn the_four_crates_stand_in_a_line() {
    assert_eq!(out_of_line(&Graph::of_this_workspace()), NOTHING);
}

#[test]
fn only_the_store_reaches_a_database_driver() {
    let graph = Graph::of_this_workspace();
    assert_eq!(reached_around(&graph, "onward-store", &DATABASES), NOTHING);
}

#[test]
fn only_the_binary_reaches_mcp_http_and_the_command_line() {
    let graph = Graph::of_this_workspace();
    assert_eq!(reached_around(&graph, "onward", &SURFACES), NOTHING);
}

#[test]
fn the_core_reaches_nothing_that_acts() {
    assert_eq!(impure(&Graph::of_this_workspace()), NOTHING);
}

#[test]
fn a_crate_that_knows_one_above_it_is_found() {
    let graph = Graph::of(&[("onward-core", &["onward-store"])]);
    assert_eq!(out_of_line(&graph), ["onward-core -> onward-store"]);
}

#[test]
fn a_binary_that_goes_past_the_engine_is_found() {
    let graph = Graph::of(&[("onward", &["onward-engine", "onward-store"])]);
    assert_eq!(out_of_line(&graph), ["onward -> onward-store"]);
}

#[test]
fn a_further_crate_has_to_be_given_a_place() {
    let graph = Graph::of(&[("onward-extra", &["onward-core"])]);
    assert_eq!(
        out_of_line(&graph),
        ["onward-extra has no place in the line"]
    );
}

#[test]
fn the_testbed_is_for_tests_and_found_in_a_build() {
    let (testbed, testing) = TESTBED;
    for name in testing {
        let mut graph = Graph::default();
        graph.add(name, testbed, Kind::Tests);
        assert_eq!(out_of_line(&graph), NOTHING);
        graph.add(name, testbed, Kind::Build);
        assert_eq!(out_of_line(&graph), [format!("{name} -> {testbed}")]);
        graph.add(name, testbed, Kind::Tests);
        assert_eq!(out_of_line(&graph).len(), 1, "{name}: for both is a build");
    }
}

#[test]
fn a_core_that_tests_with_a_database_is_found() {
    let mut graph = Graph::default();
    graph.add("onward-core", "onward-testbed", Kind::Tests);
    assert_eq!(out_of_line(&graph), ["onward-core -> onward-testbed"]);
}

#[test]
fn a_test_that_goes_past_the_engine_is_found() {
    let mut graph = Graph::default();
    graph.add("onward", "onward-store", Kind::Tests);
    assert_eq!(out_of_line(&graph), ["onward -> onward-store"]);
}

#[test]
fn a_testbed_that_knows_what_is_tested_is_found() {
    let mut graph = Graph::default();
    graph.add("onward-testbed", "onward-store", Kind::Tests);
    assert_eq!(out_of_line(&graph), ["onward-testbed -> onward-store"]);
}

#[test]
fn a_driver_under_the_store_is_fine_and_beside_it_is_found() {
    let through = Graph::of(&[
        ("onward", &["onward-engine"]),
        ("onward-engine", &["onward-store"]),
        ("onward-store", &["rusqlite"]),
        ("rusqlite", &["libsqlite3-sys"]),
    ]);
    assert_eq!(
        reached_around(&through, "onward-store", &DATABASES),
        NOTHING
    );

    let around = Graph::of(&[("onward-engine", &["cache"]), ("cache", &["rusqlite"])]);
    assert_eq!(
        reached_around(&around, "onward-store", &DATABASES),
        ["onward-engine -> cache -> rusqlite"]
    );
}

#[test]
fn a_surface_below_the_binary_is_found_however_deep() {
    let graph = Graph::of(&[
        ("onward", &["axum"]),
        ("onward-engine", &["webhook"]),
        ("webhook", &["client"]),
        ("client", &["hyper"]),
    ]);
    assert_eq!(
        reached_around(&graph, "onward", &SURFACES),
        ["onward-engine -> webhook -> client -> hyper"]
    );
}

#[test]
fn a_core_that_acts_is_found() {
    let graph = Graph::of(&[
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
fn a_circle_of_crates_is_walked_once() {
    let graph = Graph::of(&[("a", &["b"]), ("b", &["a"])]);
    assert_eq!(graph.way("a", "c", None), None);
}
