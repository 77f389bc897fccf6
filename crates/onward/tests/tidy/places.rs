//! What does not belong where it stands: traces of one developer's machine, what a tool left behind,
//! another source of crates, a hole in the core's wall, a crate without the workspace's lints.

use crate::tree::{File, every_file_keeps};

/// Where the files of one machine lie.
const MACHINE: [&str; 4] = [
    concat!("/", "work/"),
    concat!("/", "home/"),
    concat!("/", "root/"),
    concat!("/", "Users/"),
];

/// How a package source other than the usual one is written down, in cargo, pip and npm.
const REGISTRY: [&str; 7] = [
    concat!("sparse+", "http"),
    concat!("registry+", "http"),
    concat!("[regist", "ries"),
    concat!("[sour", "ce."),
    concat!("replace", "-with"),
    concat!("index", "-url"),
    concat!("registry", "=http"),
];

/// What cargo itself writes into its lock file for the registry that it uses by default.
const DEFAULT_REGISTRY: &str = "/rust-lang/crates.io-index\"";

fn names_a_machine(file: &File) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for path in MACHINE {
            // Only where the path begins there: `docs/home/` is a folder of ours.
            let begins = |start: usize| {
                let before = line[..start].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}".contains(c))
            };
            if line.match_indices(path).any(|(start, _)| begins(start)) {
                broken.push(file.at(number, &format!("`{path}` exists on one machine only")));
            }
        }
    }
    broken
}

fn names_a_registry(file: &File) -> Vec<String> {
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| REGISTRY.iter().any(|sign| line.contains(sign)))
        .filter(|(_, line)| file.path != "Cargo.lock" || !line.ends_with(DEFAULT_REGISTRY))
        .map(|(number, _)| file.at(number, "names a source of packages"))
        .collect()
}

fn opens_the_wall(file: &File) -> Vec<String> {
    if !file.path.starts_with("crates/onward-core/src/") {
        return Vec::new();
    }
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(concat!("clippy::", "disallowed")))
        .map(|(number, _)| file.at(number, "the core's wall has no doors"))
        .collect()
}

fn goes_without_lints(file: &File) -> Vec<String> {
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

/// What tools leave behind is seldom text, and what is not text hides what it names.
fn is_left_behind(file: &File) -> Vec<String> {
    let is_read = !file.text.is_empty() || file.path.ends_with(".png");
    let broken = (!is_read).then(|| format!("{}: it is neither text nor a picture", file.path));
    broken.into_iter().collect()
}

#[test]
fn every_file_is_text_or_a_picture() {
    every_file_keeps(is_left_behind);
}

#[test]
fn what_a_tool_left_behind_is_found() {
    assert_eq!(is_left_behind(&File::imagined("perf.data", "")).len(), 1);
    assert_eq!(is_left_behind(&File::imagined("a.png", "")), [""; 0]);
    assert_eq!(is_left_behind(&File::imagined("a.md", "# A")), [""; 0]);
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    every_file_keeps(names_a_machine);
}

#[test]
fn a_path_of_one_machine_is_found() {
    for path in MACHINE {
        for line in [
            format!("{path}a"),
            format!("see `{path}a`"),
            format!("file://{path}"),
        ] {
            assert_eq!(
                names_a_machine(&File::imagined("a.md", &line)).len(),
                1,
                "{line}"
            );
        }
        for line in [
            format!("docs{path}a"),
            format!("~{path}"),
            format!("${{DIR}}{path}"),
        ] {
            assert_eq!(
                names_a_machine(&File::imagined("a.md", &line)),
                [""; 0],
                "{line}"
            );
        }
    }
}

#[test]
fn no_file_names_a_source_of_packages() {
    every_file_keeps(names_a_registry);
}

#[test]
fn a_source_of_packages_is_found_even_in_the_lock_file() {
    for sign in REGISTRY {
        let bad = File::imagined(".cargo/config.toml", &format!("a = 1\n{sign}\n"));
        assert_eq!(names_a_registry(&bad).len(), 1, "{sign}");
    }
    let locked = |index: &str| {
        let source = format!("source = \"{}s://example.org{index}\n", REGISTRY[1]);
        names_a_registry(&File::imagined("Cargo.lock", &source)).len()
    };
    assert_eq!(locked(DEFAULT_REGISTRY), 0);
    assert_eq!(locked("/mirror\""), 1);
}

#[test]
fn nothing_in_the_core_switches_its_bans_off() {
    every_file_keeps(opens_the_wall);
}

#[test]
fn a_door_in_the_cores_wall_is_found() {
    let door = concat!("#![allow(clippy::", "disallowed_methods)]\n");
    let inside = File::imagined("crates/onward-core/src/decide/create.rs", door);
    assert_eq!(opens_the_wall(&inside).len(), 1);
    let outside = File::imagined("crates/onward-core/examples/drive.rs", door);
    assert!(opens_the_wall(&outside).is_empty());
}

#[test]
fn every_crate_has_the_lints_of_the_workspace() {
    every_file_keeps(goes_without_lints);
}

#[test]
fn a_crate_without_the_lints_is_found() {
    let bad = File::imagined("crates/a/Cargo.toml", "[package]\nname = \"a\"\n");
    assert_eq!(goes_without_lints(&bad).len(), 1);
    let good = File::imagined("crates/a/Cargo.toml", "[lints]\nworkspace = true\n");
    assert!(goes_without_lints(&good).is_empty());
}
