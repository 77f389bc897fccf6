//! Missing, empty and invalid files: messages and exit codes.

use onward_testbed::TestDir;

use crate::harness::{file, fixture, judge, rows};

const FORMATS: [&str; 10] = [
    "turns",
    "claude-code",
    "codex",
    "opencode",
    "copilot",
    "kimi",
    "gemini",
    "openai",
    "openai-responses",
    "anthropic",
];

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
        assert!(run.stderr.ends_with("0 turns, 0 responses, 0 looping\n"));
        assert_eq!(run.code, Some(0));
    }
}

#[test]
fn lists_the_supported_formats_for_an_unknown_one() {
    let run = judge(&["unknown.jsonl"]);
    assert_eq!(run.stdout, "");
    let hint = run.stderr.lines().nth(1).expect("hint printed");
    for format in FORMATS {
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
fn reports_and_skips_an_invalid_line() {
    let dir = TestDir::new("turns");
    for invalid in ["{\"id\": \"half", "{\"id\": \"no steps\"}"] {
        let mut lines: Vec<_> = fixture("turns.jsonl").lines().map(str::to_owned).collect();
        lines[2] = invalid.to_owned();
        let path = file(&dir, "half.jsonl", lines.join("\n"));
        let run = judge(&["--json", &path]);
        assert_eq!(rows(&run).len(), lines.len() - 1);
        let warning = format!("warning: `{path}`, line 3: ");
        assert!(run.stderr.starts_with(&warning), "{}", run.stderr);
        assert_eq!(run.code, Some(0));
    }
}

#[test]
fn reports_and_skips_an_invalid_line_of_every_log() {
    let dir = TestDir::new("logs");
    for name in [
        "claude-code.jsonl",
        "codex.jsonl",
        "copilot.jsonl",
        "kimi.jsonl",
        "gemini.jsonl",
    ] {
        let text = fixture(name);
        for (place, number) in [(0, 1), (3, 4)] {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.insert(place, "{\"timestamp\": \"2026-");
            let path = file(&dir, name, lines.join("\n"));
            let run = judge(&["--json", &path]);
            assert_eq!(run.code, Some(0), "{name}: {run:?}");
            let warning = format!("warning: `{path}`, line {number}: ");
            assert!(run.stderr.starts_with(&warning), "{name}: {}", run.stderr);
            assert_eq!(
                rows(&run).len(),
                rows(&judge(&["--json", name])).len(),
                "{name}"
            );
        }
    }
    // Messages on lines.
    let document: serde_json::Value =
        serde_json::from_str(&fixture("openai.json")).expect("JSON fixture");
    let messages = document.get("messages").unwrap_or(&document);
    let messages = messages.as_array().expect("list of messages");
    let mut lines: Vec<String> = messages.iter().map(ToString::to_string).collect();
    lines.insert(2, "{".to_owned());
    let path = file(&dir, "messages.jsonl", lines.join("\n"));
    let run = judge(&["--json", &path]);
    assert_eq!((rows(&run).len(), run.code), (2, Some(0)), "{run:?}");
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
        "{\"type\": \"response_item\", \"payload\": {\"call_id\": 1, \"type\": [\"function_call\"]}}",
        "{\"type\": \"compacted\", \"payload\": {\"replacement_history\": [1, {}]}}",
        "{\"info\": {\"id\": \"a\"}, \"messages\": [{\"info\": {\"role\": \"assistant\"}, \"parts\": [1, {\"type\": \"tool\"}]}]}",
        "{\"type\": \"assistant.message\", \"data\": {\"toolRequests\": [1, {\"arguments\": 2}]}}",
        "{\"type\": \"context.append_loop_event\", \"event\": {\"type\": \"tool.call\"}}",
        "{\"type\": \"gemini\", \"id\": \"a\", \"toolCalls\": [1, {\"result\": {\"a\": 1}}]}",
        "{\"$set\": {\"messages\": [1]}}",
        "{\"id\": \"a\", \"steps\": []}",
        "{\"id\": \"a\", \"steps\": [{\"calls\": 3}]}",
    ];
    for format in FORMATS {
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
