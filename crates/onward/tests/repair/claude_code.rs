//! Claude Code logs: rows by `message.id`, order by `parentUuid`, separate side chains.

use onward_core::call::Cause;
use onward_core::call::message::for_model;
use serde_json::{Value, json};

use crate::harness::{
    Harness, call_line, line, log, parse_lines, path_to_root, result_ids, result_line, text_line,
    user_line,
};

#[test]
fn adds_a_result_line_for_a_dangling_call() {
    let dir = Harness::new("dangling");
    let before = [
        user_line("u1", "", "Go."),
        call_line("u2", "u1", "m1", &["t1"]),
        user_line("u3", "u2", "Well?"),
        text_line("u4", "u3", "Then."),
    ];
    let after = dir.repaired(&before);
    assert_eq!(after.len(), 5);
    let new = &after[2];
    let uuid = new["uuid"].as_str().expect("uuid is a string");
    assert_eq!(uuid.len(), 36);
    let text = for_model(Cause::OutcomeUnknown, None);
    assert_eq!(
        *new,
        json!({
            "parentUuid": "u2", "isSidechain": false, "userType": "external", "cwd": "/pier",
            "sessionId": "5e55", "version": "2.1.0", "type": "user",
            "message": {"role": "user", "content": [
                {"type": "tool_result", "content": text, "is_error": true, "tool_use_id": "t1"}
            ]},
            "uuid": uuid, "timestamp": "2026-03-01T10:00:00.000Z",
            "toolUseResult": format!("Error: {text}"), "sourceToolAssistantUUID": "u2",
            "onward": {"synthetic": true, "cause": "outcome_unknown"},
        })
    );
    // The line after the call is now the child of the result; the others are unchanged.
    let mut expected = before.to_vec();
    expected[2]["parentUuid"] = uuid.into();
    expected.insert(2, new.clone());
    assert_eq!(after, expected);
}

#[test]
fn adds_results_for_all_calls_of_a_row() {
    let dir = Harness::new("batch");
    let after = dir.repaired(&[
        user_line("u1", "", "Go."),
        call_line("u2", "u1", "m1", &["t1"]),
        call_line("u3", "u2", "m1", &["t2"]),
        call_line("u4", "u3", "m1", &["t3"]),
        result_line("u5", "u3", "t2", "ok"),
        text_line("u6", "u5", "Then."),
    ]);
    // The path to the root contains the recorded result and both new ones.
    let path: Vec<String> = path_to_root(&after)
        .iter()
        .flat_map(|line| result_ids(line))
        .map(str::to_owned)
        .collect();
    assert_eq!(path, ["t3", "t1", "t2"]);
    assert_eq!(after.len(), 8);
}

#[test]
fn accepts_results_between_the_lines_of_a_row() {
    let dir = Harness::new("between");
    dir.write(
        "a.jsonl",
        log(&[
            call_line("u1", "", "m1", &["t1"]),
            result_line("u2", "u1", "t1", "ok"),
            call_line("u3", "u2", "m1", &["t2"]),
            result_line("u4", "u3", "t2", "ok"),
            text_line("u5", "u4", "Then."),
        ]),
    );
    assert_eq!(dir.findings("a.jsonl"), []);
}

#[test]
fn accepts_lines_before_their_parents() {
    let dir = Harness::new("order");
    dir.write(
        "a.jsonl",
        log(&[
            user_line("u1", "", "Go."),
            text_line("u4", "u3", "Then."),
            result_line("u3", "u2", "t1", "ok"),
            call_line("u2", "u1", "m1", &["t1"]),
        ]),
    );
    assert_eq!(dir.findings("a.jsonl"), []);
}

#[test]
fn checks_the_last_row_against_the_timeout() {
    let dir = Harness::new("clock");
    let mut call = call_line("u2", "u1", "m1", &["t1"]);
    let lines = |call: &Value| log(&[user_line("u1", "", "Go."), call.clone()]);
    dir.write("a.jsonl", lines(&call));
    assert_eq!(dir.findings("a.jsonl"), [(2, "stale".to_owned())]);
    // A timestamp in the future is not stale.
    call["timestamp"] = "2999-01-01T00:00:00.000Z".into();
    dir.write("a.jsonl", lines(&call));
    assert_eq!(dir.findings("a.jsonl"), []);
    call["timestamp"] = "2026-03-01T10:00:00.000Z".into();
    // Claude Code limits the timeout of a command.
    call["message"]["content"][0]["input"]["timeout"] = json!(1e15);
    dir.write("a.jsonl", lines(&call));
    assert_eq!(dir.findings("a.jsonl"), [(2, "stale".to_owned())]);
    // A subagent has no timeout, and a call without a timestamp is never stale.
    call["message"]["content"][0]["name"] = "Task".into();
    dir.write("a.jsonl", lines(&call));
    assert_eq!(dir.findings("a.jsonl"), []);
    call["message"]["content"][0]["name"] = "Read".into();
    call["timestamp"] = Value::Null;
    dir.write("a.jsonl", lines(&call));
    assert_eq!(dir.findings("a.jsonl"), []);
}

#[test]
fn adds_results_for_all_calls_of_an_ended_session() {
    let dir = Harness::new("ended");
    let mut call = call_line("u2", "u1", "m1", &["t1", "t2"]);
    call["timestamp"] = "2999-01-01T00:00:00.000Z".into();
    dir.write("a.jsonl", log(&[user_line("u1", "", "Go."), call]));
    let run = dir.run(&["check", "a.jsonl"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("`--ended`"), "{run:?}");
    let run = dir.run(&["repair", "--ended", "--in-place", "a.jsonl"]);
    assert_eq!(run.code, Some(0));
    let lines = parse_lines(&dir.read("a.jsonl"));
    let new: Vec<&Value> = lines[2..].iter().collect();
    assert_eq!(new.len(), 2);
    assert_eq!(new[0]["parentUuid"], "u2");
    assert_eq!(new[1]["parentUuid"], new[0]["uuid"]);
}

#[test]
fn counts_progress_as_activity_of_a_call() {
    let dir = Harness::new("progress");
    let mut progress = line("u3", "u2", "progress", Value::Null);
    progress["parentToolUseID"] = "t1".into();
    progress["timestamp"] = "2999-01-01T00:00:00.000Z".into();
    dir.write(
        "a.jsonl",
        log(&[
            user_line("u1", "", "Go."),
            call_line("u2", "u1", "m1", &["t1"]),
            progress,
        ]),
    );
    assert_eq!(dir.findings("a.jsonl"), []);
}

#[test]
fn converts_an_orphaned_result_to_text() {
    let dir = Harness::new("orphan");
    let after = dir.repaired(&[
        result_line("u1", "", "missing", "lost"),
        text_line("u2", "u1", "Then."),
    ]);
    let blocks = after[0]["message"]["content"].as_array();
    let blocks = blocks.expect("content is a list");
    let text = blocks[0]["text"].as_str().expect("text is a string");
    assert_eq!((blocks.len(), &blocks[0]["type"]), (1, &json!("text")));
    assert!(
        text.contains("`missing`") && text.ends_with("\nlost"),
        "{text}"
    );
    assert_eq!(after[0]["uuid"], "u1");
    assert_eq!(after.len(), 2);
}

#[test]
fn removes_a_duplicate_result_and_keeps_the_first_on_the_path() {
    let dir = Harness::new("duplicate");
    let after = dir.repaired(&[
        call_line("u1", "", "m1", &["t1"]),
        result_line("u2", "u1", "t1", "first"),
        // A sibling of the first result.
        result_line("u3", "u1", "t1", "second"),
        text_line("u4", "u3", "Then."),
    ]);
    let path: Vec<&Value> = path_to_root(&after)
        .iter()
        .map(|line| &line["uuid"])
        .collect();
    assert_eq!(path, ["u4", "u2", "u1"]);
    let after = dir.repaired(&[
        call_line("u1", "", "m1", &["t1"]),
        result_line("u2", "u1", "t1", "first"),
        user_line("u3", "u2", "Hm."),
        result_line("u4", "u3", "t1", "late"),
        text_line("u5", "u4", "Then."),
    ]);
    let path: Vec<&Value> = path_to_root(&after)
        .iter()
        .map(|line| &line["uuid"])
        .collect();
    assert_eq!(path, ["u5", "u3", "u2", "u1"]);
}

#[test]
fn ignores_repeated_lines() {
    let dir = Harness::new("twice");
    let lines = [
        call_line("u1", "", "m1", &["t1"]),
        result_line("u2", "u1", "t1", "ok"),
        text_line("u3", "u2", "Then."),
    ];
    dir.write("a.jsonl", log(&[&lines[..], &lines[..]].concat()));
    assert_eq!(dir.findings("a.jsonl"), []);
}

#[test]
fn repairs_side_chains_separately() {
    let dir = Harness::new("side");
    let sidechain = |mut line: Value| {
        line["isSidechain"] = true.into();
        line["agentId"] = "a1".into();
        line
    };
    let after = dir.repaired(&[
        user_line("u1", "", "Go."),
        call_line("u2", "u1", "m1", &["t1"]),
        sidechain(user_line("s1", "", "Look.")),
        sidechain(call_line("s2", "s1", "m2", &["t2"])),
        result_line("u3", "u2", "t1", "ok"),
        text_line("u4", "u3", "Then."),
        sidechain(text_line("s3", "s2", "Seen.")),
    ]);
    assert_eq!(after.len(), 8);
    let new = after
        .iter()
        .find(|line| line["onward"].is_object())
        .expect("new line");
    assert_eq!(
        (&new["parentUuid"], &new["agentId"]),
        (&json!("s2"), &json!("a1"))
    );
    assert_eq!(new["isSidechain"], true);
    // Later rows of the session do not end a call of a subagent.
    dir.write(
        "b.jsonl",
        log(&[
            sidechain(json!({"type": "assistant", "uuid": "s1", "message": {"id": "m", "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "Task", "input": {}}]}})),
            user_line("u1", "", "Go."),
            text_line("u2", "u1", "Then."),
        ]),
    );
    assert_eq!(dir.findings("b.jsonl"), []);
}

#[test]
fn removes_blank_user_rows_and_a_duplicate_tail() {
    let dir = Harness::new("blank");
    let mut mirror = text_line("u5", "u4", "Then.");
    mirror["message"]["id"] = "other".into();
    let after = dir.repaired(&[
        user_line("u1", "", "Go."),
        user_line("u2", "u1", " "),
        user_line("u3", "u2", "Well?"),
        text_line("u4", "u3", "Then."),
        mirror,
    ]);
    let left: Vec<(&Value, &Value)> = after
        .iter()
        .map(|line| (&line["uuid"], &line["parentUuid"]))
        .collect();
    let (u1, u3, u4) = (json!("u1"), json!("u3"), json!("u4"));
    assert_eq!(left, [(&u1, &Value::Null), (&u3, &u1), (&u4, &u3)]);
}

#[test]
fn copies_other_lines_byte_for_byte() {
    let dir = Harness::new("bytes");
    let unusual = "{ \"type\":\"summary\" , \"n\":1.0e2 }\n\n{\"uuid\":\"u0\",  \"z\":1, \"a\":\"\\u0041\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"Go.\"}}\r\n";
    let call = call_line("u1", "u0", "m1", &["t1"]);
    let then = text_line("u2", "u1", "Then.");
    dir.write("a.jsonl", format!("{unusual}{call}\n{then}"));
    assert_eq!(dir.run(&["repair", "a.jsonl"]).code, Some(0));
    let after = dir.read("a.repaired.jsonl");
    let rest = after
        .strip_prefix(unusual)
        .expect("unusual lines unchanged");
    assert!(rest.starts_with(&format!("{call}\n{{\"parentUuid\":\"u1\"")));
}

#[test]
fn moves_a_misplaced_result_after_its_call() {
    let dir = Harness::new("misplaced");
    let before = [
        user_line("u1", "", "Go."),
        call_line("u2", "u1", "m1", &["t1"]),
        user_line("u3", "u2", "Well?"),
        text_line("u4", "u3", "Then."),
        result_line("u5", "u4", "t1", "late"),
        text_line("u6", "u5", "Now."),
    ];
    dir.write("a.jsonl", log(&before));
    assert_eq!(dir.findings("a.jsonl"), [(5, "misplaced".to_owned())]);
    let after = dir.repaired(&before);
    let path: Vec<&Value> = path_to_root(&after)
        .iter()
        .map(|line| &line["uuid"])
        .collect();
    assert_eq!(path, ["u6", "u4", "u3", "u5", "u2", "u1"]);
    // The result keeps its content.
    let mut moved = before[4].clone();
    moved["parentUuid"] = "u2".into();
    assert_eq!(after[2], moved);
    assert_eq!(after.len(), before.len());
}

#[test]
fn moves_a_misplaced_result_out_of_a_line_with_text() {
    let dir = Harness::new("misplaced-block");
    let mut late = result_line("u4", "u3", "t1", "late");
    let text = json!({"type": "text", "text": "And now?"});
    late["message"]["content"]
        .as_array_mut()
        .expect("list")
        .push(text.clone());
    let after = dir.repaired(&[
        call_line("u1", "", "m1", &["t1"]),
        user_line("u2", "u1", "Well?"),
        text_line("u3", "u2", "Then."),
        late,
    ]);
    assert_eq!(result_ids(&after[1]), ["t1"]);
    assert_eq!(after[1]["parentUuid"], "u1");
    assert_eq!(after[2]["parentUuid"], after[1]["uuid"]);
    assert_eq!(after[4]["uuid"], "u4");
    assert_eq!(after[4]["message"]["content"], json!([text]));
}

#[test]
fn renames_a_duplicate_id_in_a_row_together_with_its_result() {
    let dir = Harness::new("duplicate-id");
    let before = [
        user_line("u1", "", "Go."),
        call_line("u2", "u1", "m1", &["t1", "t1"]),
        result_line("u3", "u2", "t1", "first"),
        result_line("u4", "u3", "t1", "second"),
        text_line("u5", "u4", "Then."),
    ];
    dir.write("a.jsonl", log(&before));
    assert_eq!(dir.findings("a.jsonl"), [(2, "doubled_id".to_owned())]);
    let after = dir.repaired(&before);
    let mut expected = before.to_vec();
    expected[1]["message"]["content"][1]["id"] = "t1_2".into();
    expected[3]["message"]["content"][0]["tool_use_id"] = "t1_2".into();
    assert_eq!(after, expected);
}
