//! Files that are not what they should be: what is said, and how it ends.

use crate::desk::{Scratch, fixture, judge};

#[test]
fn a_file_that_does_not_exist_is_not_found() {
    let run = judge(&["gone.jsonl"]);
    assert_eq!(run.stdout, "");
    assert_eq!(
        run.stderr,
        "error: `gone.jsonl` does not exist\nhint: check the path\n\
         turns: 0, steps: 0, stalled: 0\n"
    );
    assert_eq!(run.code, Some(3));
}

#[test]
fn the_other_files_are_judged_all_the_same() {
    let run = judge(&["--json", "gone.jsonl", "swe-agent.traj"]);
    assert_eq!(run.rows().len(), 1);
    assert_eq!(run.code, Some(3));
}

#[test]
fn a_folder_is_an_error() {
    let run = judge(&["."]);
    assert_eq!(run.stdout, "");
    assert!(
        run.stderr.starts_with("error: `.` is a folder\n"),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn an_empty_file_has_no_turns() {
    let scratch = Scratch::new("empty");
    for (name, text) in [("empty.jsonl", ""), ("blank.jsonl", "\n  \n")] {
        let path = scratch.file(name, text);
        let run = judge(&[&path]);
        assert_eq!(run.stdout, "");
        assert_eq!(
            run.stderr,
            format!("warning: `{path}` is empty\nturns: 0, steps: 0, stalled: 0\n")
        );
        assert_eq!(run.code, Some(0));
    }
}

#[test]
fn an_unknown_format_is_answered_with_those_that_there_are() {
    let run = judge(&["unknown.jsonl"]);
    assert_eq!(run.stdout, "");
    assert!(
        run.stderr.starts_with(
            "error: `unknown.jsonl` is in no format that can be read\n\
             hint: it can be one of: turns, claude-code, swe-agent, openai, anthropic\n"
        ),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn a_file_that_is_no_json_is_an_error_with_its_line() {
    let scratch = Scratch::new("prose");
    let path = scratch.file("prose.md", "\n# The harbour\n");
    let run = judge(&[&path]);
    assert!(
        run.stderr
            .starts_with(&format!("error: `{path}`, line 2: not JSON: ")),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("\nhint: "), "{}", run.stderr);
    assert_eq!(run.code, Some(1));
}

#[test]
fn a_broken_turn_is_an_error_with_its_line_after_the_turns_before_it() {
    let scratch = Scratch::new("turns");
    let mut lines: Vec<_> = fixture("turns.jsonl").lines().map(str::to_owned).collect();
    lines[2] = "{\"id\": \"half".to_owned();
    let path = scratch.file("half.jsonl", lines.join("\n"));
    let run = judge(&["--json", &path]);
    assert_eq!(run.rows().len(), 2);
    assert!(
        run.stderr
            .starts_with(&format!("error: `{path}`, line 3: not JSON: ")),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));

    lines[2] = "{\"id\": \"no steps\"}".to_owned();
    let path = scratch.file("no-steps.jsonl", lines.join("\n"));
    let run = judge(&["--json", &path]);
    assert!(
        run.stderr.starts_with(&format!(
            "error: `{path}`, line 3: not a turn: missing field `steps`"
        )),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn a_packed_file_that_is_cut_short_is_an_error() {
    let scratch = Scratch::new("cut-pack");
    let path = scratch.file("cut.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b]);
    let run = judge(&[&path]);
    assert!(
        run.stderr
            .starts_with(&format!("error: `{path}` cannot be read: ")),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn strange_values_are_refused_and_never_a_panic() {
    let scratch = Scratch::new("strange");
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
        "{\"trajectory\": [{}]}",
        "{\"trajectory\": [7]}",
        "{\"id\": \"a\", \"steps\": []}",
        "{\"id\": \"a\", \"steps\": [{\"calls\": 3}]}",
    ];
    for format in ["turns", "claude-code", "swe-agent", "openai", "anthropic"] {
        for (number, document) in documents.iter().enumerate() {
            let path = scratch.file(&format!("{number}.json"), document);
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
