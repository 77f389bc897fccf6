//! Each format is told by what is inside, whatever the file is called and however it is packed.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::desk::{Row, Scratch, fixture, judge, row};

const FORMATS: [(&str, &str); 5] = [
    ("turns", "turns.jsonl"),
    ("claude-code", "claude-code.jsonl"),
    ("swe-agent", "swe-agent.traj"),
    ("openai", "openai.json"),
    ("anthropic", "anthropic.json"),
];

/// What is judged of a copy under a name that says nothing; the ids without that name.
fn anonymous(test: &str, bytes: &[u8], args: &[&str]) -> Vec<Row> {
    let scratch = Scratch::new(test);
    let path = scratch.file("session", bytes);
    let run = judge(&[args, &["--json", path.as_str()]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let cut = |(id, steps, at): Row| (id.replace(&path, ""), steps, at);
    run.rows().into_iter().map(cut).collect()
}

fn named(name: &str) -> Vec<Row> {
    let run = judge(&["--json", name]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let cut = |(id, steps, at): Row| (id.replace(name, ""), steps, at);
    run.rows().into_iter().map(cut).collect()
}

#[test]
fn turns_are_judged_under_their_own_ids() {
    assert_eq!(
        judge(&["--json", "turns.jsonl"]).rows(),
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
fn a_task_is_waited_for_in_every_format_and_without_a_clock_each_wait_counts_half() {
    let bash = |input: serde_json::Value, output: &str| {
        serde_json::json!({"calls": [{"tool": "Bash", "input": input, "ok": true, "output": output}],
            "changed": false})
    };
    let wait = || bash(serde_json::json!({"command": "sleep 5"}), "");
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
fn a_run_of_swe_agent_is_one_turn() {
    assert_eq!(
        judge(&["--json", "swe-agent.traj"]).rows(),
        [row("swe-agent.traj", 13, Some(9))]
    );
    // The refused edits fail, so even the first of them is no news to the plain rule.
    assert_eq!(
        judge(&["--json", "--rule", "plain", "swe-agent.traj"]).rows(),
        [row("swe-agent.traj", 13, Some(8))]
    );
}

#[test]
fn messages_are_turns_from_one_prompt_to_the_next() {
    for name in ["openai.json", "anthropic.json"] {
        assert_eq!(
            judge(&["--json", name]).rows(),
            [
                row(&format!("{name}#0"), 11, None),
                row(&format!("{name}#1"), 10, Some(8)),
            ]
        );
    }
}

#[test]
fn errors_in_messages_are_failures() {
    for name in ["openai.json", "anthropic.json"] {
        let run = judge(&["--json", "--rule", "plain", name]);
        assert_eq!(run.rows()[1], row(&format!("{name}#1"), 10, Some(7)));
    }
}

#[test]
fn the_name_of_a_file_does_not_matter() {
    for (format, name) in FORMATS {
        let test = format!("name-{format}");
        let rows = anonymous(&test, fixture(name).as_bytes(), &[]);
        assert_eq!(rows, named(name), "{format}");
    }
}

#[test]
fn a_format_that_is_named_is_not_guessed() {
    for (format, name) in FORMATS {
        let test = format!("named-{format}");
        let rows = anonymous(&test, fixture(name).as_bytes(), &["--format", format]);
        assert_eq!(rows, named(name), "{format}");
    }
    let run = judge(&["--format", "turns", "claude-code.jsonl"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("line 1: not a turn"), "{}", run.stderr);
}

#[test]
fn packed_files_are_unpacked() {
    for (format, name) in FORMATS {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed
            .write_all(fixture(name).as_bytes())
            .expect("memory can be written to");
        let packed = packed.finish().expect("memory can be written to");
        let rows = anonymous(&format!("packed-{format}"), &packed, &[]);
        assert_eq!(rows, named(name), "{format}");
    }
}

#[test]
fn messages_may_stand_in_lists_in_records_and_line_by_line() {
    for (format, name) in [("openai", "openai.json"), ("anthropic", "anthropic.json")] {
        let document: serde_json::Value =
            serde_json::from_str(&fixture(name)).expect("the fixture is JSON");
        let list = document.get("messages").unwrap_or(&document);
        let messages = list.as_array().expect("a list of messages");
        let lines: Vec<_> = messages.iter().map(ToString::to_string).collect();
        let record = serde_json::json!({ "messages": list }).to_string();
        for (way, text) in [
            ("list", list.to_string()),
            ("record", record.clone()),
            ("lines", lines.join("\n")),
        ] {
            let rows = anonymous(&format!("{format}-{way}"), text.as_bytes(), &[]);
            assert_eq!(rows, named(name), "{format} as {way}");
        }
        // A list is a conversation of its own, also where it lacks its prompt.
        let answered = messages
            .iter()
            .position(|message| message["role"] == "assistant");
        let headless = &messages[answered.expect("an answer")..];
        let headless = serde_json::Value::from(headless).to_string();
        let twice = format!("{}\n{headless}\n", lines[..20].join("\n"));
        let rows = anonymous(&format!("{format}-twice"), twice.as_bytes(), &[]);
        assert_eq!(rows.len(), 3, "{rows:?}");
        assert_eq!(rows[1..], [row("#1", 11, None), row("#2", 10, Some(8))]);
    }
}

#[test]
fn a_mark_of_byte_order_is_no_part_of_the_text() {
    let text = format!("\u{feff}{}", fixture("turns.jsonl"));
    let rows = anonymous("mark", text.as_bytes(), &[]);
    assert_eq!(rows, named("turns.jsonl"));
}
