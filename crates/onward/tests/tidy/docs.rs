//! Markdown files: valid links, well-formed decision records, and limits on length.

use std::collections::BTreeSet;

use crate::tree::{File, assert_no_violations, files};

/// Documents with a maximum number of lines.
const MAX_LINES: [(&str, usize); 2] = [("ARCHITECTURE.md", 300), ("README.md", 150)];
const DECISIONS: &str = "docs/decisions/";

fn too_long(file: &File) -> Vec<String> {
    let lines = file.text.lines().count();
    MAX_LINES
        .iter()
        .filter(|(path, limit)| file.path == *path && lines > *limit)
        .map(|(path, limit)| format!("{path}: {lines} lines; the limit is {limit}"))
        .collect()
}

/// A decision record is `docs/decisions/NNNN-name.md` with a numbered title, a status and three
/// sections, and is linked from the README of that folder.
fn malformed_decisions(files: &[File]) -> Vec<String> {
    let index = format!("{DECISIONS}README.md");
    let listed: Vec<_> = files
        .iter()
        .filter(|file| file.path == index)
        .flat_map(|file| links(&file.text))
        .map(|(_, target)| target)
        .collect();
    let mut violations = Vec::new();
    let mut numbers = BTreeSet::new();
    for file in files
        .iter()
        .filter(|file| file.path.starts_with(DECISIONS) && file.path != index)
    {
        let number = file.name().split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|b| b.is_ascii_digit()) {
            violations.push(format!("{}: not named `NNNN-name.md`", file.path));
            continue;
        }
        if !numbers.insert(number) {
            violations.push(format!("{}: number {number} is taken", file.path));
        }
        if !file.text.starts_with(&format!("# {number}: ")) {
            violations.push(file.at(0, &format!("the title does not start with `# {number}: `")));
        }
        for part in ["Status: ", "## Context", "## Decision", "## Consequences"] {
            if !file.text.lines().any(|line| line.starts_with(part)) {
                violations.push(format!("{}: no line starts with `{part}`", file.path));
            }
        }
        if !listed.contains(&file.name()) {
            violations.push(format!("{}: is not linked from {index}", file.path));
        }
    }
    violations
}

fn broken_links(files: &[File]) -> Vec<String> {
    let mut existing = BTreeSet::from([""]);
    for file in files {
        existing.insert(&file.path);
        existing.extend(
            file.path
                .match_indices('/')
                .map(|(end, _)| &file.path[..end]),
        );
    }
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.is_markdown()) {
        for (number, target) in links(&file.text) {
            let external = target.contains("://") || target.starts_with("mailto:");
            let path = target.split('#').next().unwrap_or_default();
            if external || path.is_empty() {
                continue;
            }
            if !resolved(&file.path, path).is_some_and(|path| existing.contains(path.as_str())) {
                violations.push(file.at(number, &format!("`{target}` is a broken link")));
            }
        }
    }
    violations
}

/// The target of a link in `from`, relative to the root. `None` outside the repository.
fn resolved(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Every link target with its line: `[a](target)`, `[a]: target`, `src="target"`,
/// `href="target"`. Code is skipped.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(links_in(line).into_iter().map(|target| (number, target)));
        }
    }
    found
}

fn links_in(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    if let Some((_, target)) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
    {
        targets.push(target.trim());
    }
    // Every second part between backticks is code.
    for prose in line.split('`').step_by(2) {
        for (opening, closing) in [("](", ')'), ("src=\"", '"'), ("href=\"", '"')] {
            for (start, _) in prose.match_indices(opening) {
                let rest = &prose[start + opening.len()..];
                // A title may follow: `[a](target "title")`.
                targets.push(rest.split([closing, ' ']).next().unwrap_or_default());
            }
        }
    }
    targets
}

#[test]
fn no_document_is_too_long() {
    assert_no_violations(too_long);
}

#[test]
fn detects_a_document_that_is_one_line_too_long() {
    for (path, limit) in MAX_LINES {
        let with_lines = |lines: usize| File::new(path, &"a\n".repeat(lines));
        assert!(too_long(&with_lines(limit)).is_empty(), "{path}");
        assert_eq!(too_long(&with_lines(limit + 1)).len(), 1, "{path}");
    }
}

#[test]
fn every_decision_is_well_formed_and_linked() {
    assert_eq!(malformed_decisions(&files()), [""; 0]);
}

#[test]
fn detects_a_malformed_decision() {
    let good = "# 0001: A\n\nStatus: accepted\n\n## Context\n\n## Decision\n\n## Consequences\n";
    let index = File::new("docs/decisions/README.md", "- [0001](0001-a.md)\n");
    let with = |path: &str, text: &str| {
        let index = File::new(&index.path, &index.text);
        malformed_decisions(&[index, File::new(path, text)])
    };
    let path = "docs/decisions/0001-a.md";
    assert_eq!(with(path, good), [""; 0]);
    assert_eq!(
        with("docs/decisions/0001-b.md", good).len(),
        1,
        "not listed"
    );
    assert_eq!(with("docs/decisions/a.md", good).len(), 1, "no number");
    for part in [
        "# 0001: ",
        "Status: ",
        "## Context",
        "## Decision",
        "## Consequences",
    ] {
        assert_eq!(
            with(path, &good.replace(part, "")).len(),
            1,
            "without `{part}`"
        );
    }
    let twice = [
        File::new(&index.path, "[a](0001-a.md) [b](0001-b.md)"),
        File::new(path, good),
        File::new("docs/decisions/0001-b.md", good),
    ];
    assert_eq!(
        malformed_decisions(&twice),
        ["docs/decisions/0001-b.md: number 0001 is taken"]
    );
}

#[test]
fn every_link_between_files_is_valid() {
    assert_eq!(broken_links(&files()), [""; 0]);
}

#[test]
fn detects_a_broken_link_in_every_syntax() {
    let dead = [
        "[a](gone.md)",
        "![a](gone.png \"title\")",
        "[a]: gone.md",
        "<img src=\"gone.svg\">",
        "<a href=\"gone.md\">",
        "[a](../../outside.md)",
        "`code` and [a](gone.md#part)",
    ];
    for line in dead {
        let file = File::new("docs/a.md", &format!("first\n{line}\n"));
        assert_eq!(broken_links(&[file]).len(), 1, "{line}");
    }
}

#[test]
fn accepts_valid_and_external_links() {
    let text = "[a](b.md) [a](../README.md#top) [a](#here) [a](../docs) [a](./b.md \"title\")\n\
                [a](https://example.org/gone) `[a](gone.md)`\n\
                ```\n[a](gone.md)\n```\n";
    let files = [
        File::new("docs/a.md", text),
        File::new("docs/b.md", ""),
        File::new("README.md", ""),
    ];
    assert_eq!(broken_links(&files), [""; 0]);
}
