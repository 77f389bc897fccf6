//! How a source file reads: its first line, its name, its length, and what it must not contain.

use crate::tree::{File, every_file_keeps};

const LONGEST: usize = 600;

/// Names that say nothing about what is inside.
const VAGUE: [&str; 9] = [
    "common", "helper", "helpers", "manager", "mod", "service", "types", "util", "utils",
];

const UNFINISHED: [&str; 5] = [
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Written by a person and read by a machine; prose may speak about anything.
fn is_source(file: &File) -> bool {
    let by_ending = [".rs", ".sql", ".toml", ".js", ".css", ".html"];
    file.is_script() || by_ending.iter().any(|ending| file.path.ends_with(ending))
}

fn opens_without_a_purpose(file: &File) -> Vec<String> {
    if !file.is_rust() || file.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![file.at(0, "does not open with `//!` and what it is for")]
}

fn has_a_vague_name(file: &File) -> Vec<String> {
    let Some(stem) = file.name().strip_suffix(".rs") else {
        return Vec::new();
    };
    let numbered = stem
        .rsplit_once("_v")
        .is_some_and(|(_, rest)| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
    if VAGUE.contains(&stem) || numbered {
        vec![format!(
            "{}: the name does not say what is inside",
            file.path
        )]
    } else {
        Vec::new()
    }
}

fn is_too_long(file: &File) -> Vec<String> {
    let lines = file.text.lines().count();
    if file.is_rust() && lines > LONGEST {
        vec![format!(
            "{}: {lines} lines, and {LONGEST} is the most",
            file.path
        )]
    } else {
        Vec::new()
    }
}

fn is_unfinished(file: &File) -> Vec<String> {
    lines_of_source(file)
        .filter_map(|(number, line)| {
            let word = UNFINISHED.iter().find(|word| contains_word(line, word))?;
            Some(file.at(number, &format!("`{word}`")))
        })
        .collect()
}

fn has_a_banner(file: &File) -> Vec<String> {
    lines_of_source(file)
        .filter(|(_, line)| is_banner(line))
        .map(|(number, _)| file.at(number, "a banner: let the file be about one thing"))
        .collect()
}

fn lines_of_source(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.text.lines().enumerate().filter(|_| is_source(file))
}

/// Whether `word` stands in `line` by itself, not as a part of a longer word.
fn contains_word(line: &str, word: &str) -> bool {
    let within = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        // What ends in `!` ends by itself.
        !before.is_some_and(within) && (word.ends_with('!') || !after.is_some_and(within))
    })
}

/// A comment that opens with four or more of the same stroke.
fn is_banner(line: &str) -> bool {
    let line = line.trim_start();
    let Some(words) = ["//", "#", "--", "/*"]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
    else {
        return false;
    };
    let words = words.trim_start_matches(['/', '!']).trim_start();
    "=-*#~_"
        .chars()
        .any(|stroke| words.starts_with(&stroke.to_string().repeat(4)))
}

#[test]
fn every_rust_file_opens_with_what_it_is_for() {
    every_file_keeps(opens_without_a_purpose);
}

#[test]
fn a_rust_file_that_opens_with_code_is_found() {
    let bad = File::imagined("a.rs", "use std::fmt;\n//! Late.\n");
    assert_eq!(opens_without_a_purpose(&bad).len(), 1);
    let good = File::imagined("a.rs", "//! What it is for.\n");
    assert!(opens_without_a_purpose(&good).is_empty());
}

#[test]
fn every_rust_file_is_named_after_what_is_inside() {
    every_file_keeps(has_a_vague_name);
}

#[test]
fn a_name_that_says_nothing_is_found() {
    for name in [
        "plan/mod.rs",
        "src/util.rs",
        "types.rs",
        "src/plan_v2.rs",
        "a/service.rs",
    ] {
        assert_eq!(
            has_a_vague_name(&File::imagined(name, "")).len(),
            1,
            "{name}"
        );
    }
    for name in [
        "src/modify.rs",
        "src/utility_bill.rs",
        "common.md",
        "src/plan_v.rs",
    ] {
        assert!(
            has_a_vague_name(&File::imagined(name, "")).is_empty(),
            "{name}"
        );
    }
}

#[test]
fn no_rust_file_is_so_long_that_it_holds_two_things() {
    every_file_keeps(is_too_long);
}

#[test]
fn a_file_one_line_too_long_is_found() {
    let of_lines = |lines: usize| File::imagined("a.rs", &"//!\n".repeat(lines));
    assert!(is_too_long(&of_lines(LONGEST)).is_empty());
    assert_eq!(is_too_long(&of_lines(LONGEST + 1)).len(), 1);
}

#[test]
fn nothing_is_left_for_later_in_the_sources() {
    every_file_keeps(is_unfinished);
}

#[test]
fn a_note_to_do_it_later_is_found() {
    for word in UNFINISHED {
        let bad = File::imagined("a.rs", &format!("fn a() {{}}\n    {word}(\"later\")\n"));
        assert_eq!(is_unfinished(&bad), [format!("a.rs:2: `{word}`")]);
    }
    let longer = format!(
        "fn {}list() {{}}\nlet a = \"{}X\";\n",
        UNFINISHED[2], UNFINISHED[4]
    );
    assert!(is_unfinished(&File::imagined("a.rs", &longer)).is_empty());
    assert!(is_unfinished(&File::imagined("a.md", UNFINISHED[2])).is_empty());
}

#[test]
fn no_comment_is_a_banner() {
    every_file_keeps(has_a_banner);
}

#[test]
fn a_banner_is_found_in_every_kind_of_source() {
    for (path, mark) in [
        ("a.rs", "//"),
        ("a.sql", "--"),
        ("script/a", "#"),
        ("a.css", "/*"),
    ] {
        for stroke in ["=", "-", "*", "#"] {
            let bad = format!("{mark} {} Part two\n", stroke.repeat(4));
            assert_eq!(has_a_banner(&File::imagined(path, &bad)).len(), 1, "{bad}");
        }
    }
    let good = "//! | a | b |\n//! |---|---|\n//! # Examples\n// --- three\nlet a = 1 - -1;\n";
    assert!(has_a_banner(&File::imagined("a.rs", good)).is_empty());
}
