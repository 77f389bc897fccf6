//! Missing, empty and invalid files: messages and exit codes.

use onward_testbed::TestDir;

use crate::harness::{file, fixture, judge, rows};

#[test]
fn reports_a_missing_file() {
    let run = judge(&["missing.jsonl"]);
    assert_eq!(run.stdout, "");
    assert!(
        run.stderr.starts_with("error: `missing.jsonl`") && run.stderr.contains("\nhint: "),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(3));
}

#[test]
fn judges_the_other_files() {
    let run = judge(&["--json", "missing.jsonl", "claude-code.jsonl"]);
    assert!(!rows(&run).is_empty());
    assert_eq!(run.code, Some(3));
}

#[test]
fn rejects_a_directory() {
    let run = judge(&["."]);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.starts_with("error: `.`"), "{}", run.stderr);
    assert_eq!(run.code, Some(1));
}

#[test]
fn warns_about_an_empty_file() {
    let dir = TestDir::new("empty");
    for (name, text) in [("empty.jsonl", ""), ("blank.jsonl", "\n  \n")] {
        let path = file(&dir, name, text);
        let run = judge(&[&path]);
        assert_eq!(run.stdout, "");
        let warning = format!("warning: `{path}`");
        assert!(run.stderr.starts_with(&warning), "{}", run.stderr);
        assert!(run.stderr.ends_with("turns: 0, steps: 0, stuck: 0\n"));
        assert_eq!(run.code, Some(0));
    }
}

#[test]
fn lists_the_supported_formats_for_an_unknown_one() {
    let run = judge(&["unknown.jsonl"]);
    assert_eq!(run.stdout, "");
    let hint = run.stderr.lines().nth(1).expect("hint printed");
    for format in ["turns", "claude-code", "openai", "anthropic"] {
        assert!(hint.contains(format), "{format}: {}", run.stderr);
    }
    assert_eq!(run.code, Some(1));
}

#[test]
fn reports_the_line_that_is_not_json() {
    let dir = TestDir::new("prose");
    let path = file(&dir, "prose.md", "\n# The harbour\n");
    let run = judge(&[&path]);
    assert!(
        run.stderr
            .starts_with(&format!("error: `{path}`, line 2: ")),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("\nhint: "), "{}", run.stderr);
    assert_eq!(run.code, Some(1));
}

#[test]
fn judges_the_turns_before_an_invalid_line_and_reports_it() {
    let dir = TestDir::new("turns");
    let mut lines: Vec<_> = fixture("turns.jsonl").lines().map(str::to_owned).collect();
    lines[2] = "{\"id\": \"half".to_owned();
    let path = file(&dir, "half.jsonl", lines.join("\n"));
    let run = judge(&["--json", &path]);
    assert_eq!(rows(&run).len(), 2);
    assert!(
        run.stderr
            .starts_with(&format!("error: `{path}`, line 3: ")),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));

    lines[2] = "{\"id\": \"no steps\"}".to_owned();
    let path = file(&dir, "no-steps.jsonl", lines.join("\n"));
    let run = judge(&["--json", &path]);
    assert!(
        run.stderr
            .starts_with(&format!("error: `{path}`, line 3: "))
            && run.stderr.contains("`steps`"),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn rejects_a_truncated_gzip_file() {
    let dir = TestDir::new("truncated-gzip");
    let path = file(&dir, "cut.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b]);
    let run = judge(&[&path]);
    assert!(
        run.stderr.starts_with("error: ") && run.stderr.contains(&path),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn does_not_panic_on_unexpected_values() {
    let dir = TestDir::new("unexpected");
    let documents = [
        "null",
        "7",
        "\"a\"",
        "[]",
        "[1, \"a\", null]",
        "{}",
        "{\"messages\": 7}",
        "{\"role\": \"assistant\", \"tool_calls\": [1, {\"function\": 2}], \"content\": 3}",
        "{\"role\": \"user\", \"content\": [1, [2], {\"type\": \"tool_result\"}]}",
        "{\"type\": \"assistant\", \"message\": {\"content\": [7, \"a\", {\"type\": \"tool_use\"}]}}",
        "{\"type\": \"user\", \"message\": {\"content\": {\"a\": 1}}, \"uuid\": 3}",
        "{\"id\": \"a\", \"steps\": []}",
        "{\"id\": \"a\", \"steps\": [{\"calls\": 3}]}",
    ];
    for format in ["turns", "claude-code", "openai", "anthropic"] {
        for (number, document) in documents.iter().enumerate() {
            let path = file(&dir, &format!("{number}.json"), document);
            for args in [&["--format", format, &path] as &[&str], &[&path]] {
                let run = judge(args);
                assert!(
                    matches!(run.code, Some(0 | 1)),
                    "{format}: {document}: {run:?}"
                );
            }
        }
    }
}
