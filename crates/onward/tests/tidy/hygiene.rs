//! Content that must not be committed: paths of one machine, other package registries, binary
//! files, disabled lints and databases in the core, crates without the workspace's lints.

use crate::tree::{File, assert_no_violations};

/// Prefixes of paths that exist on one machine only.
const MACHINE: [&str; 4] = [
    concat!("/", "work/"),
    concat!("/", "home/"),
    concat!("/", "root/"),
    concat!("/", "Users/"),
];

/// Settings that select another package registry in cargo, pip and npm.
const REGISTRY: [&str; 7] = [
    concat!("sparse+", "http"),
    concat!("registry+", "http"),
    concat!("[regist", "ries"),
    concat!("[sour", "ce."),
    concat!("replace", "-with"),
    concat!("index", "-url"),
    concat!("registry", "=http"),
];

/// The default registry in `Cargo.lock`.
const DEFAULT_REGISTRY: &str = "/rust-lang/crates.io-index\"";

fn machine_paths(file: &File) -> Vec<String> {
    let mut violations = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for path in MACHINE {
            // Only at the start of a path: `docs/home/` is a relative path.
            let begins = |start: usize| {
                let before = line[..start].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}".contains(c))
            };
            if line.match_indices(path).any(|(start, _)| begins(start)) {
                violations.push(file.at(number, &format!("`{path}` exists on one machine only")));
            }
        }
    }
    violations
}

fn registry_settings(file: &File) -> Vec<String> {
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| REGISTRY.iter().any(|setting| line.contains(setting)))
        .filter(|(_, line)| file.path != "Cargo.lock" || !line.ends_with(DEFAULT_REGISTRY))
        .map(|(number, _)| file.at(number, "selects a package registry"))
        .collect()
}

fn disabled_bans(file: &File) -> Vec<String> {
    if !file.path.starts_with("crates/onward-core/src/") {
        return Vec::new();
    }
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(concat!("clippy::", "disallowed")))
        .map(|(number, _)| file.at(number, "the core must not disable its bans"))
        .collect()
}

/// The tests of the core need no database. Golden files are the only part of the testbed for them.
fn core_tests_with_a_database(file: &File) -> Vec<String> {
    if !file.path.starts_with("crates/onward-core/") {
        return Vec::new();
    }
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains("onward_testbed") && !line.ends_with("::golden;"))
        .map(|(number, _)| file.at(number, "core tests use only `onward_testbed::golden`"))
        .collect()
}

fn missing_lints(file: &File) -> Vec<String> {
    let is_crate = file.path.starts_with("crates/") && file.name() == "Cargo.toml";
    if is_crate && !file.text.contains("[lints]\nworkspace = true\n") {
        vec![format!(
            "{}: does not inherit the workspace's lints",
            file.path
        )]
    } else {
        Vec::new()
    }
}

/// Tools may create binary files, which the other rules cannot check.
fn binary_files(file: &File) -> Vec<String> {
    let is_readable = !file.text.is_empty() || file.path.ends_with(".png");
    let violations = (!is_readable).then(|| format!("{}: neither text nor an image", file.path));
    violations.into_iter().collect()
}

#[test]
fn every_file_is_text_or_an_image() {
    assert_no_violations(binary_files);
}

#[test]
fn detects_a_binary_file() {
    assert_eq!(binary_files(&File::new("perf.data", "")).len(), 1);
    assert_eq!(binary_files(&File::new("a.png", "")), [""; 0]);
    assert_eq!(binary_files(&File::new("a.md", "# A")), [""; 0]);
}

#[test]
fn no_file_contains_a_machine_path() {
    assert_no_violations(machine_paths);
}

#[test]
fn detects_a_machine_path() {
    for path in MACHINE {
        for line in [
            format!("{path}a"),
            format!("see `{path}a`"),
            format!("file://{path}"),
        ] {
            assert_eq!(machine_paths(&File::new("a.md", &line)).len(), 1, "{line}");
        }
        for line in [
            format!("docs{path}a"),
            format!("~{path}"),
            format!("${{DIR}}{path}"),
        ] {
            assert_eq!(machine_paths(&File::new("a.md", &line)), [""; 0], "{line}");
        }
    }
}

#[test]
fn no_file_selects_a_registry() {
    assert_no_violations(registry_settings);
}

#[test]
fn detects_a_registry_setting_and_a_mirror_in_the_lock_file() {
    for setting in REGISTRY {
        let bad = File::new(".cargo/config.toml", &format!("a = 1\n{setting}\n"));
        assert_eq!(registry_settings(&bad).len(), 1, "{setting}");
    }
    let locked = |index: &str| {
        let source = format!("source = \"{}s://example.org{index}\n", REGISTRY[1]);
        registry_settings(&File::new("Cargo.lock", &source)).len()
    };
    assert_eq!(locked(DEFAULT_REGISTRY), 0);
    assert_eq!(locked("/mirror\""), 1);
}

#[test]
fn the_core_does_not_disable_its_bans() {
    assert_no_violations(disabled_bans);
}

#[test]
fn detects_a_disabled_ban_in_the_core() {
    let allow = concat!("#![allow(clippy::", "disallowed_methods)]\n");
    let inside = File::new("crates/onward-core/src/decide/create.rs", allow);
    assert_eq!(disabled_bans(&inside).len(), 1);
    let outside = File::new("crates/onward-core/examples/drive.rs", allow);
    assert!(disabled_bans(&outside).is_empty());
}

#[test]
fn core_tests_need_no_database() {
    assert_no_violations(core_tests_with_a_database);
}

#[test]
fn detects_a_core_test_with_a_database() {
    let path = "crates/onward-core/tests/rules/claims.rs";
    let bad = File::new(path, "use onward_testbed::Cluster;\n");
    assert_eq!(core_tests_with_a_database(&bad).len(), 1);
    let good = File::new(path, "use onward_testbed::golden;\n");
    assert!(core_tests_with_a_database(&good).is_empty());
}

#[test]
fn every_crate_inherits_the_lints() {
    assert_no_violations(missing_lints);
}

#[test]
fn detects_a_crate_without_the_lints() {
    let bad = File::new("crates/a/Cargo.toml", "[package]\nname = \"a\"\n");
    assert_eq!(missing_lints(&bad).len(), 1);
    let good = File::new("crates/a/Cargo.toml", "[lints]\nworkspace = true\n");
    assert!(missing_lints(&good).is_empty());
}
