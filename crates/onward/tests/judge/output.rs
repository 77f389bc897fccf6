//! The output: text, JSON, totals, and colour.

use std::process::Stdio;

use onward_testbed::TestDir;
use serde_json::{Value, json};

use crate::harness::{command, file, fixture, judge, row, rows};

#[test]
fn prints_an_aligned_line_per_turn() {
    let run = judge(&["turns.jsonl"]);
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 9);
    assert!(
        lines[0].starts_with(
            "harbour/true                  looping since response 8 of 12: 8 responses in a row \
             without progress ("
        ),
        "{}",
        lines[0]
    );
    assert_eq!(
        lines[1],
        "harbour/reading               ok, 10 responses, all with progress"
    );
    assert_eq!(lines[8], "8 turns, 79 responses, 3 looping");
    assert_eq!(run.stderr, "");
    assert_eq!(run.code, Some(0));
}

#[test]
fn prints_a_json_object_per_turn() {
    let run = judge(&["--json", "turns.jsonl"]);
    for value in run.json_lines() {
        let object = value.as_object().expect("JSON object");
        let keys: Vec<_> = object.keys().map(String::as_str).collect();
        assert_eq!(keys, ["evidence", "id", "stalled_at", "steps", "why"]);
        assert!(value["why"].is_string());
    }
    assert!(
        run.stdout
            .starts_with("{\"id\":\"harbour/true\",\"steps\":12,\"stalled_at\":7,\"why\":\""),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("\"stalled_at\":null"));
    assert_eq!(run.stderr, "8 turns, 79 responses, 3 looping\n");
}

#[test]
fn each_idle_call_has_a_reason() {
    let run = judge(&["--json", "turns.jsonl"]);
    let stuck = &run.json_lines()[0];
    let evidence = stuck["evidence"].as_array().expect("list of idle calls");
    assert_eq!(evidence.len(), 8);
    for (step, call) in evidence.iter().enumerate() {
        assert_eq!(call["step"], step);
        assert_eq!(call["reason"], "no_op");
    }
}

#[test]
fn switches_parts_of_the_rule_off() {
    let stalled = |args: &[&str]| rows(&judge(args))[0].clone();
    assert_eq!(stalled(&["--json", "turns.jsonl"]).2, Some(7));
    let without = stalled(&["--json", "turns.jsonl", "--without", "no_ops"]);
    assert_ne!(without.2, Some(7));
    let unknown = judge(&["turns.jsonl", "--without", "tides"]);
    assert_eq!(unknown.code, Some(2));
}

#[test]
fn reads_times_and_texts_of_steps() {
    let dir = TestDir::new("judge-times");
    let call =
        r#"{"tool":"Bash","input":{"command":"sleep 60; cat state"},"ok":true,"output":"running"}"#;
    let steps = |seconds: u32| -> String {
        let steps: Vec<String> = (0..12)
            .map(|nth| format!(r#"{{"calls":[{call}],"at":{}}}"#, nth * seconds))
            .collect();
        format!(r#"{{"id":"a","steps":[{}]}}"#, steps.join(","))
    };
    let short = file(&dir, "short.jsonl", steps(65));
    assert_eq!(rows(&judge(&["--json", &short])), [row("a", 12, None)]);
    let long = file(&dir, "long.jsonl", steps(305));
    assert_eq!(rows(&judge(&["--json", &long])), [row("a", 12, Some(6))]);
    let limit = judge(&["--json", &short, "--wait-minutes", "2"]);
    assert_eq!(rows(&limit), [row("a", 12, Some(2))]);

    let text = "I will now look at the file again. It must be there. Let me check it once more. ";
    let answer = format!(
        r#"{{"id":"b","steps":[{{"calls":[],"text":"{}"}}]}}"#,
        text.repeat(6)
    );
    let answer = file(&dir, "text.jsonl", answer);
    let run = judge(&["--json", &answer]);
    assert!(
        run.json_lines()[0]["text_loop"].is_string(),
        "{}",
        run.stdout
    );
}

#[test]
fn finds_repeated_texts_in_the_sessions_of_agents() {
    let dir = TestDir::new("judge-texts");
    let text = "I will now look at the file again. It must be there. Let me check it once more. ";
    let text = text.repeat(6);
    let user = json!({ "role": "user", "content": "go" });
    let blocks = json!([{ "type": "text", "text": text }]);
    let answer = json!({ "role": "assistant", "content": blocks });
    let at = "2026-11-17T00:00:00Z";
    let lines = |lines: &[Value]| {
        lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let sessions = [
        (
            "claude-code",
            lines(&[
                json!({ "type": "user", "uuid": "1", "parentUuid": null, "message": user, "timestamp": at }),
                json!({ "type": "assistant", "uuid": "2", "parentUuid": "1", "message": answer, "timestamp": at }),
            ]),
        ),
        (
            "codex",
            lines(&[
                json!({ "timestamp": at, "type": "event_msg", "payload": { "type": "user_message" } }),
                json!({ "timestamp": at, "type": "response_item", "payload": {
                "type": "message", "role": "assistant", "content": blocks,
            } }),
            ]),
        ),
        (
            "kimi",
            lines(&[
                json!({ "type": "turn.prompt", "input": [] }),
                json!({ "type": "context.append_loop_event", "event": { "type": "step.begin" } }),
                json!({ "type": "context.append_loop_event", "event": {
                "type": "content.part", "part": { "type": "text", "text": text },
            } }),
            ]),
        ),
        (
            "copilot",
            lines(&[
                json!({ "type": "user.message", "data": { "content": "go" } }),
                json!({ "type": "assistant.message", "data": { "content": text } }),
            ]),
        ),
        (
            "gemini",
            json!({ "sessionId": "s", "messages": [
            { "id": "1", "type": "user", "content": "go" },
            { "id": "2", "type": "gemini", "content": text },
        ] })
            .to_string(),
        ),
        (
            "opencode",
            json!({ "info": {}, "messages": [
            { "info": { "role": "user" }, "parts": [{ "type": "text", "text": "go" }] },
            { "info": { "role": "assistant" }, "parts": blocks },
        ] })
            .to_string(),
        ),
        (
            "openai",
            json!([user, { "role": "assistant", "content": text }]).to_string(),
        ),
        ("anthropic", json!([user, answer]).to_string()),
    ];
    for (format, session) in sessions {
        let session = file(&dir, format, session);
        let run = judge(&["--json", "--format", format, &session]);
        assert!(
            run.json_lines()[0]["text_loop"].is_string(),
            "{format}: {}",
            run.stdout
        );
    }
}

#[test]
fn accepts_global_flags_before_the_command() {
    let before = std::process::Command::new(env!("CARGO_BIN_EXE_onward"))
        .args(["--json", "-q", "transcript", "judge", "openai.json"])
        .current_dir(crate::harness::fixtures())
        .output()
        .expect("binary started");
    let after = judge(&["openai.json", "--json", "-q"]);
    assert_eq!(String::from_utf8_lossy(&before.stdout), after.stdout);
    assert_eq!(after.stderr, "");
}

#[test]
fn selects_the_rule_by_name() {
    let stalled = |args: &[&str]| rows(&judge(args))[2].clone();
    assert_eq!(
        stalled(&["--json", "--rule", "plain", "turns.jsonl"]),
        row("harbour/edits", 10, Some(8))
    );
    assert_eq!(
        stalled(&["--json", "--rule", "default", "turns.jsonl"]),
        row("harbour/edits", 10, None)
    );
    assert_eq!(
        stalled(&["--json", "turns.jsonl"]),
        row("harbour/edits", 10, None)
    );
}

#[test]
fn applies_a_lower_threshold() {
    let rows = rows(&judge(&["--json", "--threshold", "3", "turns.jsonl"]));
    assert_eq!(rows[0], row("harbour/true", 12, Some(2)));
    assert_eq!(rows[3], row("lagoon/four", 6, Some(3)));
    assert_eq!(rows[5], row("lagoon/again", 20, Some(3)));
}

#[test]
fn rejects_invalid_flag_values() {
    for (args, named) in [
        (
            &["--threshold", "0", "turns.jsonl"] as &[&str],
            "--threshold",
        ),
        (&["--rule", "strict", "turns.jsonl"], "--rule"),
        (&["--format", "xml", "turns.jsonl"], "--format"),
        (&[], "<FILE>"),
    ] {
        let run = judge(args);
        assert_eq!(run.stdout, "");
        assert!(
            run.stderr.starts_with("error: ") && run.stderr.contains(named),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("\nhint: "), "{}", run.stderr);
        assert_eq!(run.code, Some(2), "{args:?}");
    }
}

#[test]
fn truncates_the_start_of_a_long_id_in_text_output() {
    let dir = TestDir::new("a-directory-with-a-name-that-is-rather-long");
    let path = file(&dir, "session.json", fixture("openai.json"));
    let run = judge(&[&path]);
    let id: String = run.stdout.chars().take(28).collect();
    assert!(
        id.starts_with('…') && id.ends_with("session.json#0"),
        "{id}"
    );
    assert_eq!(rows(&judge(&["--json", &path]))[0].0, format!("{path}#0"));
}

#[test]
fn prints_colour_only_on_a_terminal_or_on_request() {
    assert!(!judge(&["turns.jsonl"]).stdout.contains('\u{1b}'));
    let coloured = judge(&["--color", "always", "turns.jsonl"]).stdout;
    assert!(
        coloured.contains("\u{1b}[31mlooping\u{1b}[0m since response 8"),
        "{coloured}"
    );
    assert!(
        !judge(&["--color", "never", "turns.jsonl"])
            .stdout
            .contains('\u{1b}')
    );
}

#[cfg(target_os = "linux")]
#[test]
fn fails_if_standard_output_is_full() {
    let full = std::fs::File::create("/dev/full").expect("/dev/full opened");
    let run = command(&["turns.jsonl"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("binary started");
    assert_eq!(run.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(stderr.starts_with("error: "), "{stderr}");
}

#[test]
fn succeeds_if_the_reader_closes_the_pipe() {
    let mut child = command(&["turns.jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("binary started");
    drop(child.stdout.take());
    let run = child.wait_with_output().expect("binary exited");
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
    assert_eq!(run.status.code(), Some(0));
}
