//! Claude Code logs: steps, turns, subagents and background tasks.

use onward_testbed::TestDir;
use serde_json::{Value, json};

use crate::harness::{Row, file, fixture, judge, row, rows};

const NAME: &str = "claude-code.jsonl";

fn judged(args: &[&str]) -> Vec<Row> {
    let run = judge(&[args, &["--json", NAME]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    rows(&run)
}

fn find(turn: &str, rows: &[Row]) -> Row {
    let id = format!("{NAME}{turn}");
    let found = rows.iter().find(|(other, ..)| *other == id);
    found.expect("turn found").clone()
}

#[test]
fn groups_lines_by_message_id_and_ignores_harness_messages() {
    // Five lines of the first response with results in between, an edit, a compaction with its
    // summary, harness messages, a subagent, an API error and the answer.
    let rows = judged(&[]);
    assert_eq!(find("#0", &rows), row("claude-code.jsonl#0", 4, None));
}

#[test]
fn reads_subagents_as_separate_turns() {
    let rows = judged(&[]);
    assert_eq!(
        find("@a7#0", &rows),
        row("claude-code.jsonl@a7#0", 10, Some(7))
    );
}

#[test]
fn detects_repeated_results() {
    let rows = judged(&[]);
    assert_eq!(find("#1", &rows), row("claude-code.jsonl#1", 10, Some(8)));
}

#[test]
fn matches_a_result_that_precedes_its_call() {
    for rule in ["plain", "default"] {
        let rows = judged(&["--rule", rule]);
        assert_eq!(find("#2", &rows), row("claude-code.jsonl#2", 9, None));
    }
}

#[test]
fn counts_only_successful_edits_as_changes() {
    let rows = judged(&["--rule", "plain"]);
    assert_eq!(find("#3", &rows), row("claude-code.jsonl#3", 10, None));
    assert_eq!(find("#4", &rows), row("claude-code.jsonl#4", 10, Some(7)));
}

#[test]
fn ignores_unanswered_prompts_and_repeated_lines() {
    assert_eq!(judged(&[]).len(), 6);
}

#[test]
fn skips_a_truncated_last_line_with_a_warning() {
    let dir = TestDir::new("truncated");
    let whole = fixture(NAME);
    let last = whole.lines().next_back().expect("last line");
    let truncated = format!("{whole}{}", &last[..last.len() / 2]);
    let path = file(&dir, "truncated.jsonl", truncated);
    let run = judge(&["--json", &path]);
    assert_eq!(run.code, Some(0));
    assert_eq!(rows(&run).len(), 6);
    let number = whole.lines().count() + 1;
    assert!(
        run.stderr
            .starts_with(&format!("warning: `{path}`, line {number}: ")),
        "{}",
        run.stderr
    );
}

/// A log with a prompt and the given lines, each the child of the previous one.
fn log(lines: &[Value]) -> String {
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "Continue."}});
    let mut text = String::new();
    for (number, line) in std::iter::once(&prompt).chain(lines).enumerate() {
        let mut line = line.clone();
        line["uuid"] = json!(format!("u{number}"));
        if line.get("parentUuid").is_none() {
            line["parentUuid"] = match number {
                0 => Value::Null,
                _ => json!(format!("u{}", number - 1)),
            };
        }
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn call(number: usize, tool: &str, input: &Value) -> Value {
    json!({"type": "assistant", "message": {"id": format!("m{number}"), "role": "assistant",
        "content": [{"type": "tool_use", "id": format!("t{number}"), "name": tool, "input": input}]}})
}

fn result(number: usize, content: &str) -> Value {
    json!({"type": "user", "message": {"role": "user",
        "content": [{"type": "tool_result", "tool_use_id": format!("t{number}"), "content": content}]}})
}

fn judged_log(test: &str, text: &str) -> Vec<(u64, Option<u64>)> {
    let dir = TestDir::new(test);
    let path = file(&dir, "session.jsonl", text);
    let run = judge(&["--json", "--rule", "plain", &path]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let rows = rows(&run).into_iter();
    rows.map(|(_, steps, stalled_at)| (steps, stalled_at))
        .collect()
}

#[test]
fn counts_a_repeated_edit_as_no_change() {
    let edit = json!({"file_path": "a", "old_string": "b", "new_string": "c"});
    let lines: Vec<_> = (0..9)
        .flat_map(|n| [call(n, "Edit", &edit), result(n, "Updated.")])
        .collect();
    assert_eq!(judged_log("repeated", &log(&lines)), [(9, Some(8))]);
}

#[test]
fn counts_moved_files_as_a_change_and_reads_as_none() {
    let lines = |command: &dyn Fn(usize) -> String| -> Vec<Value> {
        (0..9)
            .flat_map(|n| {
                let input = json!({"command": command(n)});
                [call(n, "Bash", &input), result(n, "")]
            })
            .collect()
    };
    let moves = lines(&|n| format!("git mv a{n} b{n}"));
    assert_eq!(judged_log("moves", &log(&moves)), [(9, None)]);
    let reads = lines(&|n| format!("ls a{n} 2>/dev/null | head"));
    assert_eq!(judged_log("reads", &log(&reads)), [(9, Some(7))]);
}

/// A background command and waiting, with a line every five seconds.
fn waiting(notification: Option<&str>) -> String {
    let start = json!({"command": "make", "run_in_background": true});
    let mut lines = vec![
        call(0, "Bash", &start),
        result(
            0,
            "Command running in background with ID: b1. Output goes to b1.output",
        ),
    ];
    if let Some(notification) = notification {
        lines.push(json!({"type": "user", "message": {"role": "user", "content": notification}}));
    }
    for n in 1..20 {
        lines.push(call(n, "Bash", &json!({"command": "sleep 2"})));
        lines.push(result(n, ""));
    }
    for (number, line) in lines.iter_mut().enumerate() {
        let (minutes, seconds) = (number * 5 / 60, number * 5 % 60);
        line["timestamp"] = json!(format!("2026-03-01T10:{minutes:02}:{seconds:02}.000Z"));
    }
    log(&lines)
}

#[test]
fn waits_for_a_background_command_by_the_clock_until_it_ends() {
    let judged = |test: &str, text: &str| {
        let dir = TestDir::new(test);
        let path = file(&dir, "session.jsonl", text);
        rows(&judge(&["--json", &path]))[0].2
    };
    assert_eq!(judged("waits", &waiting(None)), None);
    let ended = "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n\
                </task-notification>";
    assert_eq!(judged("ended", &waiting(Some(ended))), Some(8));
    let other = ended.replace("b1", "b2");
    assert_eq!(judged("other", &waiting(Some(&other))), None);
}

#[test]
fn detects_a_loop_despite_an_old_background_server() {
    let start = json!({"command": "npm run dev", "run_in_background": true});
    let sent = "Command running in background with ID: b1. Output goes to b1.output";
    let mut lines = vec![call(0, "Bash", &start), result(0, sent)];
    for n in 1..40 {
        lines.push(call(n, "Bash", &json!({"command": "git status"})));
        lines.push(result(n, "On branch main, nothing to commit"));
    }
    let judged = |test: &str, since: usize| {
        let mut lines = lines.clone();
        for (number, line) in lines.iter_mut().enumerate() {
            let second = number.min(1) * since + number;
            let (minutes, seconds) = (second / 60, second % 60);
            line["timestamp"] = json!(format!("2026-03-01T10:{minutes:02}:{seconds:02}.000Z"));
        }
        // The first call returns immediately.
        lines[1]["timestamp"] = lines[0]["timestamp"].clone();
        let dir = TestDir::new(test);
        let path = file(&dir, "session.jsonl", log(&lines));
        rows(&judge(&["--json", &path]))[0].2
    };
    assert_eq!(judged("soon", 5), None, "the agent may be waiting for it");
    // The first result, short and new, counts half.
    assert_eq!(judged("late", 600), Some(9));
}

#[test]
fn detects_a_background_command_that_is_started_repeatedly() {
    let start = json!({"command": "make", "run_in_background": true});
    let lines: Vec<_> = (0..12)
        .flat_map(|n| {
            let name = char::from(b'a' + u8::try_from(n).unwrap());
            let sent = format!(
                "Command running in background with ID: {name}. Output is being written to: /x/{name}.output"
            );
            [call(n, "Bash", &start), result(n, &sent)]
        })
        .collect();
    let dir = TestDir::new("restarts");
    let path = file(&dir, "session.jsonl", log(&lines));
    assert_eq!(rows(&judge(&["--json", &path]))[0].2, Some(8));
}

#[test]
fn does_not_wait_for_the_parents_of_a_truncated_log() {
    let lines: Vec<_> = (0..100)
        .flat_map(|n| [call(n, "Bash", &json!({"command": "true"})), result(n, "")])
        .collect();
    let whole = log(&lines);
    let cut: Vec<_> = whole.lines().skip(1).collect();
    assert_eq!(judged_log("cut", &cut.join("\n")), [(100, Some(7))]);
}

#[test]
fn identifies_side_chains_without_agent_id_by_their_parents() {
    // Two concurrent subagents with alternating lines, as in older versions.
    let mut text = log(&[]);
    for agent in ["x", "y"] {
        text.push_str(&format!(
            "{}\n",
            json!({"type": "user", "uuid": agent, "parentUuid": null, "isSidechain": true,
                "message": {"role": "user", "content": "Look around."}})
        ));
    }
    for n in 0..5 {
        for agent in ["x", "y"] {
            let parent = match n {
                0 => agent.to_owned(),
                _ => format!("{agent}{}", n - 1),
            };
            text.push_str(&format!(
                "{}\n",
                json!({"type": "assistant", "uuid": format!("{agent}{n}"), "parentUuid": parent,
                    "isSidechain": true, "message": {"id": format!("{agent}{n}"), "role": "assistant",
                    "content": [{"type": "tool_use", "id": format!("t{agent}{n}"), "name": "Bash",
                        "input": {"command": "true"}}]}})
            ));
        }
    }
    assert_eq!(judged_log("chains", &text), [(5, None), (5, None)]);
}
