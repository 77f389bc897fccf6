//! Claude Code's logs: what is one step, what is one turn, and what is neither.

use serde_json::{Value, json};

use crate::desk::{Row, Scratch, fixture, judge, row};

const NAME: &str = "claude-code.jsonl";

fn judged(args: &[&str]) -> Vec<Row> {
    let run = judge(&[args, &["--json", NAME]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.rows()
}

fn the(turn: &str, rows: &[Row]) -> Row {
    let id = format!("{NAME}{turn}");
    let found = rows.iter().find(|(other, ..)| *other == id);
    found.expect("the turn is there").clone()
}

#[test]
fn lines_that_share_a_message_id_are_one_step_and_notes_end_no_turn() {
    // Five lines of the first response with results in between, an edit, a compaction with its
    // summary, notes of the harness, a subagent, an error of the API, the answer.
    let rows = judged(&[]);
    assert_eq!(the("#0", &rows), row("claude-code.jsonl#0", 4, None));
}

#[test]
fn a_subagent_has_turns_of_its_own() {
    let rows = judged(&[]);
    assert_eq!(
        the("@a7#0", &rows),
        row("claude-code.jsonl@a7#0", 10, Some(7))
    );
}

#[test]
fn the_same_answer_again_and_again_is_a_stall() {
    let rows = judged(&[]);
    assert_eq!(the("#1", &rows), row("claude-code.jsonl#1", 10, Some(8)));
}

#[test]
fn a_result_that_stands_before_its_call_belongs_to_it() {
    for rule in ["plain", "default"] {
        let rows = judged(&["--rule", rule]);
        assert_eq!(the("#2", &rows), row("claude-code.jsonl#2", 9, None));
    }
}

#[test]
fn accepted_edits_change_the_outside_and_refused_ones_do_not() {
    let rows = judged(&["--rule", "plain"]);
    assert_eq!(the("#3", &rows), row("claude-code.jsonl#3", 10, None));
    assert_eq!(the("#4", &rows), row("claude-code.jsonl#4", 10, Some(7)));
}

#[test]
fn a_prompt_without_an_answer_and_lines_that_stand_there_twice_are_no_turns() {
    assert_eq!(judged(&[]).len(), 6);
}

#[test]
fn a_torn_last_line_is_left_out_with_a_warning() {
    let scratch = Scratch::new("torn");
    let whole = fixture(NAME);
    let last = whole.lines().next_back().expect("a line");
    let torn = format!("{whole}{}", &last[..last.len() / 2]);
    let path = scratch.file("torn.jsonl", torn);
    let run = judge(&["--json", &path]);
    assert_eq!(run.code, Some(0));
    assert_eq!(run.rows().len(), 6);
    let number = whole.lines().count() + 1;
    assert!(
        run.stderr.starts_with(&format!(
            "warning: `{path}`, line {number}: the last line is torn, and left out\n"
        )),
        "{}",
        run.stderr
    );
}

#[test]
fn a_broken_line_before_the_last_is_an_error_with_its_number() {
    let scratch = Scratch::new("broken");
    let mut lines: Vec<_> = fixture(NAME).lines().map(str::to_owned).collect();
    lines[4].truncate(20);
    let path = scratch.file("broken.jsonl", lines.join("\n"));
    let run = judge(&["--json", &path]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr
            .starts_with(&format!("error: `{path}`, line 5: not JSON: ")),
        "{}",
        run.stderr
    );
}

/// A log of its own: a prompt, then the given lines, each the child of the one before.
fn log(lines: &[Value]) -> String {
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "Go on."}});
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
    let scratch = Scratch::new(test);
    let path = scratch.file("session.jsonl", text);
    let run = judge(&["--json", "--rule", "plain", &path]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let rows = run.rows().into_iter();
    rows.map(|(_, steps, stalled_at)| (steps, stalled_at))
        .collect()
}

#[test]
fn an_edit_that_repeats_the_last_one_changes_nothing() {
    let edit = json!({"file_path": "a", "old_string": "b", "new_string": "c"});
    let lines: Vec<_> = (0..9)
        .flat_map(|n| [call(n, "Edit", &edit), result(n, "Updated.")])
        .collect();
    assert_eq!(judged_log("repeated", &log(&lines)), [(9, Some(8))]);
}

#[test]
fn files_that_are_moved_are_a_change_and_commands_that_read_are_none() {
    let of = |command: &dyn Fn(usize) -> String| -> Vec<Value> {
        (0..9)
            .flat_map(|n| {
                let input = json!({"command": command(n)});
                [call(n, "Bash", &input), result(n, "")]
            })
            .collect()
    };
    let moves = of(&|n| format!("git mv a{n} b{n}"));
    assert_eq!(judged_log("moves", &log(&moves)), [(9, None)]);
    let reads = of(&|n| format!("ls a{n} 2>/dev/null | head"));
    assert_eq!(judged_log("reads", &log(&reads)), [(9, Some(7))]);
}

/// A command in the background, then waiting: a line every five seconds.
fn waiting(notice: Option<&str>) -> String {
    let start = json!({"command": "make", "run_in_background": true});
    let mut lines = vec![
        call(0, "Bash", &start),
        result(
            0,
            "Command running in background with ID: b1. Output goes to b1.output",
        ),
    ];
    if let Some(notice) = notice {
        lines.push(json!({"type": "user", "message": {"role": "user", "content": notice}}));
    }
    for n in 1..20 {
        lines.push(call(n, "Bash", &json!({"command": "sleep 5"})));
        lines.push(result(n, ""));
    }
    for (number, line) in lines.iter_mut().enumerate() {
        let (minutes, seconds) = (number * 5 / 60, number * 5 % 60);
        line["timestamp"] = json!(format!("2026-03-01T10:{minutes:02}:{seconds:02}.000Z"));
    }
    log(&lines)
}

#[test]
fn waiting_for_a_background_command_goes_by_the_clock_until_it_is_over() {
    let judged = |test: &str, text: &str| {
        let scratch = Scratch::new(test);
        let path = scratch.file("session.jsonl", text);
        judge(&["--json", &path]).rows()[0].2
    };
    assert_eq!(judged("waits", &waiting(None)), None);
    let over = "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n\
                </task-notification>";
    assert_eq!(judged("over", &waiting(Some(over))), Some(8));
    let other = over.replace("b1", "b2");
    assert_eq!(judged("other", &waiting(Some(&other))), None);
}

#[test]
fn a_server_that_was_started_long_ago_hides_no_loop() {
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
        // The result of the first call comes at once.
        lines[1]["timestamp"] = lines[0]["timestamp"].clone();
        let scratch = Scratch::new(test);
        let path = scratch.file("session.jsonl", log(&lines));
        judge(&["--json", &path]).rows()[0].2
    };
    assert_eq!(judged("soon", 5), None, "it may be waited for");
    // The first answer, short and new, counts half.
    assert_eq!(judged("late", 600), Some(9));
}

#[test]
fn a_command_that_is_started_again_and_again_gets_nowhere() {
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
    let scratch = Scratch::new("restarts");
    let path = scratch.file("session.jsonl", log(&lines));
    assert_eq!(judge(&["--json", &path]).rows()[0].2, Some(8));
}

#[test]
fn the_parents_of_a_cut_log_are_not_waited_for() {
    let lines: Vec<_> = (0..100)
        .flat_map(|n| [call(n, "Bash", &json!({"command": "true"})), result(n, "")])
        .collect();
    let whole = log(&lines);
    let cut: Vec<_> = whole.lines().skip(1).collect();
    assert_eq!(judged_log("cut", &cut.join("\n")), [(100, Some(7))]);
}

#[test]
fn side_chains_without_an_agents_id_are_told_by_their_parents() {
    // Two subagents at once, line by line in turn, as older versions wrote them.
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
