//! Source files: header comment, name, length, unfinished code and banners.

use crate::tree::{File, assert_no_violations};

const MAX_LINES: usize = 600;

/// File names that do not describe the content.
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

/// Whether the file is code. Documents may mention unfinished work.
fn is_source(file: &File) -> bool {
    let by_ending = [".rs", ".sql", ".toml", ".js", ".css", ".html"];
    file.is_script() || by_ending.iter().any(|ending| file.path.ends_with(ending))
}

fn missing_header(file: &File) -> Vec<String> {
    if !file.is_rust() || file.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![file.at(0, "does not start with a `//!` comment")]
}

fn vague_name(file: &File) -> Vec<String> {
    let Some(stem) = file.name().strip_suffix(".rs") else {
        return Vec::new();
    };
    let numbered = stem
        .rsplit_once("_v")
        .is_some_and(|(_, rest)| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
    if VAGUE.contains(&stem) || numbered {
        vec![format!(
            "{}: the name does not describe the content",
            file.path
        )]
    } else {
        Vec::new()
    }
}

fn too_long(file: &File) -> Vec<String> {
    let lines = file.text.lines().count();
    if file.is_rust() && lines > MAX_LINES {
        vec![format!(
            "{}: {lines} lines; the limit is {MAX_LINES}",
            file.path
        )]
    } else {
        Vec::new()
    }
}

fn unfinished(file: &File) -> Vec<String> {
    source_lines(file)
        .filter_map(|(number, line)| {
            let word = UNFINISHED.iter().find(|word| contains_word(line, word))?;
            Some(file.at(number, &format!("`{word}`")))
        })
        .collect()
}

fn banners(file: &File) -> Vec<String> {
    source_lines(file)
        .filter(|(_, line)| is_banner(line))
        .map(|(number, _)| file.at(number, "banner comment; split the file instead"))
        .collect()
}

fn source_lines(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.text.lines().enumerate().filter(|_| is_source(file))
}

/// Whether `line` contains `word` as a whole word.
fn contains_word(line: &str, word: &str) -> bool {
    let within = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        // `!` is a word boundary.
        !before.is_some_and(within) && (word.ends_with('!') || !after.is_some_and(within))
    })
}

/// Whether a comment starts with four or more of the same line character.
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
fn every_rust_file_starts_with_a_header() {
    assert_no_violations(missing_header);
}

#[test]
fn detects_a_missing_header() {
    let bad = File::new("a.rs", "use std::fmt;\n//! Late.\n");
    assert_eq!(missing_header(&bad).len(), 1);
    let good = File::new("a.rs", "//! Purpose.\n");
    assert!(missing_header(&good).is_empty());
}

#[test]
fn no_rust_file_has_a_vague_name() {
    assert_no_violations(vague_name);
}

#[test]
fn detects_a_vague_name() {
    for name in [
        "plan/mod.rs",
        "src/util.rs",
        "types.rs",
        "src/plan_v2.rs",
        "a/service.rs",
    ] {
        assert_eq!(vague_name(&File::new(name, "")).len(), 1, "{name}");
    }
    for name in [
        "src/modify.rs",
        "src/utility_bill.rs",
        "common.md",
        "src/plan_v.rs",
    ] {
        assert!(vague_name(&File::new(name, "")).is_empty(), "{name}");
    }
}

#[test]
fn no_rust_file_is_too_long() {
    assert_no_violations(too_long);
}

#[test]
fn detects_a_file_that_is_one_line_too_long() {
    let with_lines = |lines: usize| File::new("a.rs", &"//!\n".repeat(lines));
    assert!(too_long(&with_lines(MAX_LINES)).is_empty());
    assert_eq!(too_long(&with_lines(MAX_LINES + 1)).len(), 1);
}

#[test]
fn no_source_is_unfinished() {
    assert_no_violations(unfinished);
}

#[test]
fn detects_unfinished_code() {
    for word in UNFINISHED {
        let bad = File::new("a.rs", &format!("fn a() {{}}\n    {word}(\"later\")\n"));
        assert_eq!(unfinished(&bad), [format!("a.rs:2: `{word}`")]);
    }
    let longer = format!(
        "fn {}list() {{}}\nlet a = \"{}X\";\n",
        UNFINISHED[2], UNFINISHED[4]
    );
    assert!(unfinished(&File::new("a.rs", &longer)).is_empty());
    assert!(unfinished(&File::new("a.md", UNFINISHED[2])).is_empty());
}

#[test]
fn no_comment_is_a_banner() {
    assert_no_violations(banners);
}

#[test]
fn detects_a_banner_in_every_language() {
    for (path, mark) in [
        ("a.rs", "//"),
        ("a.sql", "--"),
        ("script/a", "#"),
        ("a.css", "/*"),
    ] {
        for stroke in ["=", "-", "*", "#"] {
            let bad = format!("{mark} {} Part two\n", stroke.repeat(4));
            assert_eq!(banners(&File::new(path, &bad)).len(), 1, "{bad}");
        }
    }
    let good = "//! | a | b |\n//! |---|---|\n//! # Examples\n// --- three\nlet a = 1 - -1;\n";
    assert!(banners(&File::new("a.rs", good)).is_empty());
}
