//! What the Markdown files promise: links that lead somewhere, decisions that can be found, and
//! a map of the code that is short enough to be read.

use std::collections::BTreeSet;

use crate::tree::{File, files};

const LONGEST_ARCHITECTURE: usize = 300;
const DECISIONS: &str = "docs/decisions/";

fn architecture_is_too_long(files: &[File]) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.path == "ARCHITECTURE.md")
        .map(|file| file.text.lines().count())
        .filter(|lines| *lines > LONGEST_ARCHITECTURE)
        .map(|lines| format!("{lines} lines, and {LONGEST_ARCHITECTURE} is the most"))
        .collect()
}

/// A decision is `docs/decisions/NNNN-name.md`: its title carries the number, its status stands
/// right below, three sections follow, and the folder's README lists it.
fn decisions_out_of_form(files: &[File]) -> Vec<String> {
    let index = format!("{DECISIONS}README.md");
    let listed: Vec<_> = files
        .iter()
        .filter(|file| file.path == index)
        .flat_map(|file| links(&file.text))
        .map(|(_, target)| target)
        .collect();
    let mut broken = Vec::new();
    let mut numbers = BTreeSet::new();
    for file in files
        .iter()
        .filter(|file| file.path.starts_with(DECISIONS) && file.path != index)
    {
        let number = file.name().split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|b| b.is_ascii_digit()) {
            broken.push(format!("{}: is not named `NNNN-name.md`", file.path));
            continue;
        }
        if !numbers.insert(number) {
            broken.push(format!("{}: number {number} is taken", file.path));
        }
        if !file.text.starts_with(&format!("# {number}: ")) {
            broken.push(file.at(0, &format!("the title does not open with `# {number}: `")));
        }
        for part in ["Status: ", "## Context", "## Decision", "## Consequences"] {
            if !file.text.lines().any(|line| line.starts_with(part)) {
                broken.push(format!("{}: no line opens with `{part}`", file.path));
            }
        }
        if !listed.contains(&file.name()) {
            broken.push(format!("{}: is not linked from {index}", file.path));
        }
    }
    broken
}

fn links_that_lead_nowhere(files: &[File]) -> Vec<String> {
    let mut known = BTreeSet::from([""]);
    for file in files {
        known.insert(&file.path);
        known.extend(
            file.path
                .match_indices('/')
                .map(|(end, _)| &file.path[..end]),
        );
    }
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.is_markdown()) {
        for (number, target) in links(&file.text) {
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            let path = target.split('#').next().unwrap_or_default();
            if elsewhere || path.is_empty() {
                continue;
            }
            if !resolved(&file.path, path).is_some_and(|path| known.contains(path.as_str())) {
                broken.push(file.at(number, &format!("`{target}` leads nowhere")));
            }
        }
    }
    broken
}

/// The path from the root that a link in `from` means; none where it leaves the repository.
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
/// `href="target"`. What stands in code is not a link.
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
    // Between the first and the second backtick is code, and so on.
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
fn the_architecture_can_be_read_in_one_sitting() {
    assert_eq!(architecture_is_too_long(&files()), [""; 0]);
}

#[test]
fn an_architecture_that_nobody_will_read_is_found() {
    let of_lines = |lines: usize| [File::imagined("ARCHITECTURE.md", &"a\n".repeat(lines))];
    assert!(architecture_is_too_long(&of_lines(LONGEST_ARCHITECTURE)).is_empty());
    assert_eq!(
        architecture_is_too_long(&of_lines(LONGEST_ARCHITECTURE + 1)).len(),
        1
    );
}

#[test]
fn every_decision_has_its_form_and_is_listed() {
    assert_eq!(decisions_out_of_form(&files()), [""; 0]);
}

#[test]
fn a_decision_out_of_form_is_found() {
    let good = "# 0001: A\n\nStatus: accepted\n\n## Context\n\n## Decision\n\n## Consequences\n";
    let index = File::imagined("docs/decisions/README.md", "- [0001](0001-a.md)\n");
    let with = |path: &str, text: &str| {
        let index = File::imagined(&index.path, &index.text);
        decisions_out_of_form(&[index, File::imagined(path, text)])
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
        File::imagined(&index.path, "[a](0001-a.md) [b](0001-b.md)"),
        File::imagined(path, good),
        File::imagined("docs/decisions/0001-b.md", good),
    ];
    assert_eq!(
        decisions_out_of_form(&twice),
        ["docs/decisions/0001-b.md: number 0001 is taken"]
    );
}

#[test]
fn every_link_between_files_leads_somewhere() {
    assert_eq!(links_that_lead_nowhere(&files()), [""; 0]);
}

#[test]
fn a_link_to_nothing_is_found_in_every_spelling() {
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
        let file = File::imagined("docs/a.md", &format!("first\n{line}\n"));
        assert_eq!(links_that_lead_nowhere(&[file]).len(), 1, "{line}");
    }
}

#[test]
fn links_that_lead_somewhere_or_are_none_are_left_alone() {
    let text = "[a](b.md) [a](../README.md#top) [a](#here) [a](../docs) [a](./b.md \"title\")\n\
                [a](https://example.org/gone) `[a](gone.md)`\n\
                ```\n[a](gone.md)\n```\n";
    let files = [
        File::imagined("docs/a.md", text),
        File::imagined("docs/b.md", ""),
        File::imagined("README.md", ""),
    ];
    assert_eq!(links_that_lead_nowhere(&files), [""; 0]);
}
