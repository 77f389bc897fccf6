//! Detection of each format by the content, regardless of the file name and the compression.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use onward_testbed::TestDir;

use crate::harness::{Row, file, fixture, judge, row, rows};

const FORMATS: [(&str, &str); 10] = [
    ("turns", "turns.jsonl"),
    ("claude-code", "claude-code.jsonl"),
    ("codex", "codex.jsonl"),
    ("opencode", "opencode.json"),
    ("copilot", "copilot.jsonl"),
    ("kimi", "kimi.jsonl"),
    ("gemini", "gemini.jsonl"),
    ("openai", "openai.json"),
    ("openai-responses", "openai-responses.json"),
    ("anthropic", "anthropic.json"),
];

/// The turns of a file with a neutral name; the ids without that name.
fn anonymous(test: &str, bytes: &[u8], args: &[&str]) -> Vec<Row> {
    let dir = TestDir::new(test);
    let path = file(&dir, "session", bytes);
    let run = judge(&[args, &["--json", path.as_str()]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let cut = |(id, steps, at): Row| (id.replace(&path, ""), steps, at);
    rows(&run).into_iter().map(cut).collect()
}

fn named(name: &str) -> Vec<Row> {
    let run = judge(&["--json", name]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let cut = |(id, steps, at): Row| (id.replace(name, ""), steps, at);
    rows(&run).into_iter().map(cut).collect()
}

#[test]
fn reads_turns_with_their_ids() {
    assert_eq!(
        rows(&judge(&["--json", "turns.jsonl"])),
        [
            row("harbour/true", 12, Some(7)),
            row("harbour/reading", 10, None),
            row("harbour/edits", 10, None),
            row("lagoon/four", 6, None),
            row("lagoon/writing", 9, None),
            row("lagoon/again", 20, Some(8)),
            row("lagoon/refused", 10, Some(8)),
            row("nowhere/bare", 2, None),
        ]
    );
}

#[test]
fn counts_waiting_for_a_background_task_half_without_timestamps() {
    let bash = |input: serde_json::Value, output: &str| {
        serde_json::json!({"calls": [{"tool": "Bash", "input": input, "ok": true, "output": output}],
            "changed": false})
    };
    let wait = || bash(serde_json::json!({"command": "sleep 2"}), "");
    let turn = |first: serde_json::Value| {
        let steps: Vec<_> = std::iter::once(first)
            .chain((0..20).map(|_| wait()))
            .collect();
        serde_json::json!({"id": "a", "steps": steps}).to_string()
    };
    let start = bash(
        serde_json::json!({"command": "make"}),
        "Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID 42\nOutput:\n",
    );
    let runs = anonymous("runs", turn(start).as_bytes(), &["--format", "turns"]);
    assert_eq!(runs[0].2, Some(16));
    let nothing = anonymous("nothing", turn(wait()).as_bytes(), &["--format", "turns"]);
    assert_eq!(nothing[0].2, Some(7));
}

#[test]
fn reads_messages_as_turns_between_prompts() {
    for name in ["openai.json", "anthropic.json"] {
        assert_eq!(
            rows(&judge(&["--json", name])),
            [
                row(&format!("{name}#0"), 11, None),
                row(&format!("{name}#1"), 10, Some(8)),
            ]
        );
    }
}

#[test]
fn reads_the_turns_of_agents_between_prompts() {
    for name in [
        "codex.jsonl",
        "opencode.json",
        "copilot.jsonl",
        "kimi.jsonl",
        "gemini.jsonl",
        "openai-responses.json",
    ] {
        let turns = rows(&judge(&["--json", name]));
        let ids: Vec<(&str, u64)> = turns.iter().map(|(id, n, _)| (id.as_str(), *n)).collect();
        let expected = [(&*format!("{name}#0"), 4), (&*format!("{name}#1"), 12)];
        assert_eq!(ids, expected);
        // Three files are read, then the same call fails twelve times.
        assert_eq!(turns[0].2, None, "{name}");
        assert!(turns[1].2.is_some(), "{name}");
    }
}

#[test]
fn reads_errors_in_messages_as_failures() {
    for name in ["openai.json", "anthropic.json"] {
        let run = judge(&["--json", "--rule", "plain", name]);
        assert_eq!(rows(&run)[1], row(&format!("{name}#1"), 10, Some(7)));
    }
}

#[test]
fn ignores_the_file_name() {
    for (format, name) in FORMATS {
        let test = format!("name-{format}");
        let rows = anonymous(&test, fixture(name).as_bytes(), &[]);
        assert_eq!(rows, named(name), "{format}");
    }
}

#[test]
fn uses_the_format_of_the_flag() {
    for (format, name) in FORMATS {
        let test = format!("named-{format}");
        let rows = anonymous(&test, fixture(name).as_bytes(), &["--format", format]);
        assert_eq!(rows, named(name), "{format}");
    }
    // The warnings about all lines precede the error.
    let run = judge(&["--format", "turns", "claude-code.jsonl"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr
            .contains("\nerror: `claude-code.jsonl`, line 1: "),
        "{}",
        run.stderr
    );
}

#[test]
fn reads_gzip_files() {
    for (format, name) in FORMATS {
        let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
        compressed
            .write_all(fixture(name).as_bytes())
            .expect("written to memory");
        let compressed = compressed.finish().expect("written to memory");
        let rows = anonymous(&format!("compressed-{format}"), &compressed, &[]);
        assert_eq!(rows, named(name), "{format}");
    }
}

#[test]
fn reads_messages_in_lists_records_and_lines() {
    for (format, name) in [("openai", "openai.json"), ("anthropic", "anthropic.json")] {
        let document: serde_json::Value =
            serde_json::from_str(&fixture(name)).expect("JSON fixture");
        let list = document.get("messages").unwrap_or(&document);
        let messages = list.as_array().expect("list of messages");
        let lines: Vec<_> = messages.iter().map(ToString::to_string).collect();
        let record = serde_json::json!({ "messages": list }).to_string();
        for (layout, text) in [
            ("list", list.to_string()),
            ("record", record.clone()),
            ("lines", lines.join("\n")),
        ] {
            let rows = anonymous(&format!("{format}-{layout}"), text.as_bytes(), &[]);
            assert_eq!(rows, named(name), "{format} as {layout}");
        }
        // A list is a separate conversation, even without a prompt.
        let first = messages
            .iter()
            .position(|message| message["role"] == "assistant");
        let headless = &messages[first.expect("assistant message")..];
        let headless = serde_json::Value::from(headless).to_string();
        let twice = format!("{}\n{headless}\n", lines[..20].join("\n"));
        let rows = anonymous(&format!("{format}-twice"), twice.as_bytes(), &[]);
        assert_eq!(rows.len(), 3, "{rows:?}");
        assert_eq!(rows[1..], [row("#1", 11, None), row("#2", 10, Some(8))]);
    }
}

#[test]
fn ignores_a_byte_order_mark() {
    let text = format!("\u{feff}{}", fixture("turns.jsonl"));
    let rows = anonymous("mark", text.as_bytes(), &[]);
    assert_eq!(rows, named("turns.jsonl"));
}
