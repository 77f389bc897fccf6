//! Imports between the files of a crate, and between modules with the same parent: they contain no
//! cycle.
//!
//! A file imports another if it names an item that the other defines or re-exports. Through a
//! re-export it imports both files, and a re-export is an import itself. Two things do not count:
//! code compiled for tests only, and items of an enclosing module, because a file is part of the
//! modules that enclose it. For dependencies between crates, see `dependencies.rs`.

mod layers;
mod modules;
mod references;

use std::collections::{BTreeMap, BTreeSet};

use modules::Modules;

use crate::tree::{File, files};

/// For each file: the files it imports, with the names.
type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<String>>>;

/// Whether a file is the root of a crate: a library, a program, a benchmark, an example or a test.
fn is_root(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').collect();
    matches!(
        parts[..],
        ["crates", _, "src", "lib.rs" | "main.rs"]
            | ["crates", _, "benches" | "examples" | "tests", _, "main.rs"]
    ) || matches!(parts[..], ["crates", _, "benches" | "examples" | "tests", name] if name.ends_with(".rs"))
}

fn imports(files: &[File]) -> Imports<'_> {
    let by_path: BTreeMap<_, _> = files
        .iter()
        .map(|file| (file.path.as_str(), file))
        .collect();
    let mut imports = Imports::new();
    for root in by_path.keys().filter(|path| is_root(path)) {
        let (modules, items) = Modules::read(root, &by_path);
        for (module, item) in &items {
            for path in references::paths(item) {
                for definition in modules.resolve(*module, &path) {
                    if modules.is_within(*module, definition.file) {
                        continue;
                    }
                    let from = by_path[modules.file(*module)].path.as_str();
                    let to = by_path[definition.file].path.as_str();
                    let names = imports.entry(from).or_default().entry(to).or_default();
                    names.insert(definition.name);
                }
            }
        }
    }
    imports
}

/// The files that `from` imports, directly and indirectly.
fn reachable<'a>(imports: &Imports<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for to in imports.get(file).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(*to) {
                next.push(to);
            }
        }
    }
    found
}

/// One violation per cycle: its imports and the names.
fn cycles(imports: &Imports<'_>) -> Vec<String> {
    let reachable: BTreeMap<_, _> = imports
        .keys()
        .map(|file| (*file, reachable(imports, file)))
        .collect();
    let mut reported = BTreeSet::new();
    let mut violations = Vec::new();
    for (file, below) in &reachable {
        if !below.contains(file) || reported.contains(file) {
            continue;
        }
        let in_cycle = |other: &&str| {
            below.contains(other)
                && reachable
                    .get(other)
                    .is_some_and(|files| files.contains(file))
        };
        let members: BTreeSet<_> = below.iter().copied().filter(in_cycle).collect();
        let mut violation = format!("import cycle of {} modules", members.len());
        for from in &members {
            for (to, names) in imports[from].iter().filter(|(to, _)| members.contains(*to)) {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                violation += &format!("\n  {from} -> {to}: {}", names.join(", "));
            }
        }
        violations.push(violation);
        reported.extend(members);
    }
    violations
}

#[test]
fn no_crate_has_an_import_cycle() {
    let files = files();
    let violations = cycles(&imports(&files));
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

/// Two modules with the same parent, of which one contains `from` and the other one `to`. `None` if
/// one file is in a child module of the other.
fn siblings<'a>(from: &'a str, to: &'a str) -> Option<(&'a str, &'a str)> {
    let common = from.bytes().zip(to.bytes()).take_while(|(a, b)| a == b);
    let parent = from[..common.count()].rfind('/')? + 1;
    let module = |file: &'a str| {
        let end = file[parent..].find(['/', '.'])?;
        Some(&file[..parent + end])
    };
    let (from, to) = (module(from)?, module(to)?);
    (from != to).then_some((from, to))
}

/// The imports between modules with the same parent: those of all files of a module.
fn between_siblings<'a>(imports: &Imports<'a>) -> Imports<'a> {
    let mut between = Imports::new();
    for (from, targets) in imports {
        for (to, names) in targets {
            if let Some((from, to)) = siblings(from, to) {
                let known = between.entry(from).or_default().entry(to).or_default();
                known.extend(names.iter().cloned());
            }
        }
    }
    between
}

#[test]
fn no_modules_with_the_same_parent_form_a_cycle() {
    let files = files();
    let violations = cycles(&between_siblings(&imports(&files)));
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

/// A crate with these modules.
fn crate_of(sources: &[(&str, &str)]) -> Vec<File> {
    let path = |name: &str| format!("crates/a/src/{name}.rs");
    let files = sources.iter();
    files
        .map(|(name, text)| File::new(&path(name), text))
        .collect()
}

/// The cycles in a crate with these modules.
fn cycles_in(sources: &[(&str, &str)]) -> Vec<String> {
    cycles(&imports(&crate_of(sources)))
}

#[test]
fn detects_a_cycle_and_names_its_imports() {
    let found = cycles_in(&[
        ("lib", "mod plan; mod step; mod time;"),
        (
            "plan",
            "use crate::step::{Step, run}; pub struct Plan(Step);",
        ),
        (
            "step",
            "use super::time::now; pub struct Step; pub fn run() { crate::plan::Plan; }",
        ),
        ("time", "pub fn now() {}"),
    ]);
    assert_eq!(
        found,
        ["import cycle of 2 modules\n  \
          crates/a/src/plan.rs -> crates/a/src/step.rs: Step, run\n  \
          crates/a/src/step.rs -> crates/a/src/plan.rs: Plan"]
    );
}

#[test]
fn detects_every_form_of_import() {
    for reference in [
        "use crate::b::B;",
        "use super::b::B as Other;",
        "use super::b; fn a() -> b::B {}",
        "use super::*; fn a() -> b::B {}",
        "use crate::B;",
        "use super::b::*; fn a(_: &B) {}",
        "fn a() { use crate::b; b::B; }",
        "fn a() { println!(\"{}\", [crate::b::B.x]); }",
        "#[serde(with = \"crate::b::B\")] struct C;",
        "impl crate::b::B {}",
        "use crate::b::from_macro;",
    ] {
        let found = cycles_in(&[
            ("lib", "mod a; mod b; pub use b::B;"),
            ("a", &format!("pub struct A; {reference}")),
            ("b", "define! {} pub struct B; fn b() -> crate::a::A {}"),
        ]);
        assert_eq!(found.len(), 1, "{reference}");
    }
}

#[test]
fn detects_a_cycle_through_a_re_export() {
    for re_export in [
        "pub use d::D;",
        "pub use d::*;",
        "pub(crate) use d::{D as E, D};",
    ] {
        let found = cycles_in(&[
            ("lib", "mod a; mod b;"),
            ("a", "pub struct A; fn a() -> crate::b::D {}"),
            (
                "b",
                &format!("mod d; {re_export} fn b() -> crate::a::A {{}}"),
            ),
            ("b/d", "pub struct D;"),
        ]);
        let edge = "crates/a/src/a.rs -> crates/a/src/b.rs: D";
        assert!(found.iter().any(|cycle| cycle.contains(edge)), "{found:?}");
    }
    let found = cycles_in(&[
        ("lib", "mod a; mod b;"),
        ("a", "pub struct A(crate::b::B);"),
        ("b", "mod d; pub use d::D; pub struct B;"),
        ("b/d", "pub struct D(crate::a::A);"),
    ]);
    assert_eq!(found.len(), 1);
}

#[test]
fn accepts_items_of_an_enclosing_module_and_tests() {
    let found = cycles_in(&[
        ("lib", "mod a; mod b; pub use a::A;"),
        (
            "a",
            "mod c; pub struct A; fn a() { c::run(); } #[cfg(test)] mod tests { use crate::b::B; }",
        ),
        ("a/c", "use super::A; use crate::A as Same; pub fn run() {}"),
        ("b", "pub struct B(crate::A); #[cfg(test)] use crate::a;"),
    ]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn detects_a_cycle_through_a_child_module() {
    let found = cycles_in(&[
        ("lib", "mod a; mod b;"),
        ("a", "mod c; pub struct A; fn a() { c::run(); }"),
        ("a/c", "pub fn run() { crate::b::B; }"),
        ("b", "pub struct B(crate::a::A);"),
    ]);
    assert_eq!(found.len(), 1);
}

#[test]
fn detects_a_cycle_between_modules_whose_files_form_none() {
    let files = crate_of(&[
        ("lib", "mod a;"),
        ("a", "mod b; mod bc;"),
        ("a/b", "pub mod d; pub struct B(crate::a::bc::C);"),
        ("a/b/d", "pub struct D;"),
        ("a/bc", "pub struct C(super::b::d::D);"),
    ]);
    let imports = imports(&files);
    assert_eq!(cycles(&imports), [""; 0]);
    assert_eq!(
        cycles(&between_siblings(&imports)),
        ["import cycle of 2 modules\n  \
          crates/a/src/a/b -> crates/a/src/a/bc: C\n  \
          crates/a/src/a/bc -> crates/a/src/a/b: D"]
    );
}
