//! Claude Code's logs: rows by `message.id`, order by `parentUuid`, side chains apart.

use serde_json::{Value, json};

use crate::desk::{Scratch, answers, calls, line, log, result, results, says, values, way_up};

const UNKNOWN: &str = "The outcome of this call is unknown: it had begun, and no result was received. \
    Check what it did before making it again; only a call that merely reads may simply be repeated.";

#[test]
fn a_dangling_call_gets_a_line_that_claude_code_would_read() {
    let scratch = Scratch::new("dangling");
    let before = [
        says("u1", "", "Go."),
        calls("u2", "u1", "m1", &["t1"]),
        says("u3", "u2", "Well?"),
        answers("u4", "u3", "Then."),
    ];
    let after = scratch.repaired(&before);
    assert_eq!(after.len(), 5);
    let new = &after[2];
    let uuid = new["uuid"].as_str().expect("an id");
    assert_eq!(uuid.len(), 36);
    assert_eq!(
        *new,
        json!({
            "parentUuid": "u2", "isSidechain": false, "userType": "external", "cwd": "/pier",
            "sessionId": "5e55", "version": "2.1.0", "type": "user",
            "message": {"role": "user", "content": [
                {"type": "tool_result", "content": UNKNOWN, "is_error": true, "tool_use_id": "t1"}
            ]},
            "uuid": uuid, "timestamp": "2026-03-01T10:00:00.000Z",
            "toolUseResult": format!("Error: {UNKNOWN}"), "sourceToolAssistantUUID": "u2",
            "onward": {"synthetic": true, "cause": "outcome_unknown"},
        })
    );
    // What followed the call follows its result; all else is as it was.
    let mut expected = before.to_vec();
    expected[2]["parentUuid"] = uuid.into();
    expected.insert(2, new.clone());
    assert_eq!(after, expected);
}

#[test]
fn lines_that_share_a_message_id_are_one_row_and_all_of_its_calls_are_answered() {
    let scratch = Scratch::new("batch");
    let after = scratch.repaired(&[
        says("u1", "", "Go."),
        calls("u2", "u1", "m1", &["t1"]),
        calls("u3", "u2", "m1", &["t2"]),
        calls("u4", "u3", "m1", &["t3"]),
        result("u5", "u3", "t2", "ok"),
        answers("u6", "u5", "Then."),
    ]);
    // The way up from the end meets the row, its own result, and both new ones.
    let way: Vec<String> = way_up(&after)
        .iter()
        .flat_map(|line| results(line))
        .map(str::to_owned)
        .collect();
    assert_eq!(way, ["t3", "t1", "t2"]);
    assert_eq!(after.len(), 8);
}

#[test]
fn results_between_the_lines_of_one_row_are_nothing_wrong() {
    let scratch = Scratch::new("between");
    scratch.write(
        "a.jsonl",
        log(&[
            calls("u1", "", "m1", &["t1"]),
            result("u2", "u1", "t1", "ok"),
            calls("u3", "u2", "m1", &["t2"]),
            result("u4", "u3", "t2", "ok"),
            answers("u5", "u4", "Then."),
        ]),
    );
    assert_eq!(scratch.found("a.jsonl"), []);
}

#[test]
fn a_line_that_stands_before_its_parent_comes_after_it() {
    let scratch = Scratch::new("order");
    scratch.write(
        "a.jsonl",
        log(&[
            says("u1", "", "Go."),
            answers("u4", "u3", "Then."),
            result("u3", "u2", "t1", "ok"),
            calls("u2", "u1", "m1", &["t1"]),
        ]),
    );
    assert_eq!(scratch.found("a.jsonl"), []);
}

#[test]
fn the_last_row_is_judged_by_the_clock_and_by_its_own_timeout() {
    let scratch = Scratch::new("clock");
    let mut call = calls("u2", "u1", "m1", &["t1"]);
    let lines = |call: &Value| log(&[says("u1", "", "Go."), call.clone()]);
    scratch.write("a.jsonl", lines(&call));
    assert_eq!(scratch.found("a.jsonl"), [(2, "stale".to_owned())]);
    // A clock that is ahead makes nobody late, nor does a timeout that is longer than the world is old.
    call["timestamp"] = "2999-01-01T00:00:00.000Z".into();
    scratch.write("a.jsonl", lines(&call));
    assert_eq!(scratch.found("a.jsonl"), []);
    call["timestamp"] = "2026-03-01T10:00:00.000Z".into();
    call["message"]["content"][0]["input"]["timeout"] = json!(1e15);
    scratch.write("a.jsonl", lines(&call));
    assert_eq!(scratch.found("a.jsonl"), []);
    // A subagent has no timeout, and a call without a time no verdict.
    call["message"]["content"][0]["name"] = "Task".into();
    scratch.write("a.jsonl", lines(&call));
    assert_eq!(scratch.found("a.jsonl"), []);
    call["message"]["content"][0]["name"] = "Read".into();
    call["timestamp"] = Value::Null;
    scratch.write("a.jsonl", lines(&call));
    assert_eq!(scratch.found("a.jsonl"), []);
}

#[test]
fn whoever_says_that_the_session_is_over_has_all_calls_answered() {
    let scratch = Scratch::new("ended");
    let mut call = calls("u2", "u1", "m1", &["t1", "t2"]);
    call["timestamp"] = "2999-01-01T00:00:00.000Z".into();
    scratch.write("a.jsonl", log(&[says("u1", "", "Go."), call]));
    let run = scratch.run(&["check", "a.jsonl"]);
    assert_eq!(run.code, Some(0));
    assert!(
        run.stderr
            .starts_with("2 calls without a result may still run; with `--ended`")
    );
    let run = scratch.run(&["repair", "--ended", "--in-place", "a.jsonl"]);
    assert_eq!(run.code, Some(0));
    let lines = values(&scratch.read("a.jsonl"));
    let new: Vec<&Value> = lines[2..].iter().collect();
    assert_eq!(new.len(), 2);
    assert_eq!(new[0]["parentUuid"], "u2");
    assert_eq!(new[1]["parentUuid"], new[0]["uuid"]);
}

#[test]
fn progress_that_the_log_shows_is_a_sign_of_life() {
    let scratch = Scratch::new("progress");
    let mut sign = line("u3", "u2", "progress", Value::Null);
    sign["parentToolUseID"] = "t1".into();
    sign["timestamp"] = "2999-01-01T00:00:00.000Z".into();
    scratch.write(
        "a.jsonl",
        log(&[
            says("u1", "", "Go."),
            calls("u2", "u1", "m1", &["t1"]),
            sign,
        ]),
    );
    assert_eq!(scratch.found("a.jsonl"), []);
}

#[test]
fn a_result_without_a_call_becomes_text_and_the_rest_of_its_line_stays() {
    let scratch = Scratch::new("orphan");
    let after = scratch.repaired(&[
        result("u1", "", "gone", "lost"),
        answers("u2", "u1", "Then."),
    ]);
    assert_eq!(
        after[0]["message"]["content"],
        json!([{"type": "text", "text": "[Result of `gone`, a tool call that is not part of this conversation]\nlost"}])
    );
    assert_eq!(after[0]["uuid"], "u1");
    assert_eq!(after.len(), 2);
}

#[test]
fn a_second_result_goes_and_what_followed_it_still_meets_the_first() {
    let scratch = Scratch::new("doubled");
    let after = scratch.repaired(&[
        calls("u1", "", "m1", &["t1"]),
        result("u2", "u1", "t1", "first"),
        // Beside the first one, not after it.
        result("u3", "u1", "t1", "second"),
        answers("u4", "u3", "Then."),
    ]);
    let way: Vec<&Value> = way_up(&after).iter().map(|line| &line["uuid"]).collect();
    assert_eq!(way, ["u4", "u2", "u1"]);
    let after = scratch.repaired(&[
        calls("u1", "", "m1", &["t1"]),
        result("u2", "u1", "t1", "first"),
        says("u3", "u2", "Hm."),
        result("u4", "u3", "t1", "late"),
        answers("u5", "u4", "Then."),
    ]);
    let way: Vec<&Value> = way_up(&after).iter().map(|line| &line["uuid"]).collect();
    assert_eq!(way, ["u5", "u3", "u2", "u1"]);
}

#[test]
fn a_session_that_holds_its_lines_twice_is_not_doubled() {
    let scratch = Scratch::new("twice");
    let lines = [
        calls("u1", "", "m1", &["t1"]),
        result("u2", "u1", "t1", "ok"),
        answers("u3", "u2", "Then."),
    ];
    scratch.write("a.jsonl", log(&[&lines[..], &lines[..]].concat()));
    assert_eq!(scratch.found("a.jsonl"), []);
}

#[test]
fn side_chains_stand_apart_and_keep_their_agent() {
    let scratch = Scratch::new("side");
    let aside = |mut line: Value| {
        line["isSidechain"] = true.into();
        line["agentId"] = "a1".into();
        line
    };
    let after = scratch.repaired(&[
        says("u1", "", "Go."),
        calls("u2", "u1", "m1", &["t1"]),
        aside(says("s1", "", "Look.")),
        aside(calls("s2", "s1", "m2", &["t2"])),
        result("u3", "u2", "t1", "ok"),
        answers("u4", "u3", "Then."),
        aside(answers("s3", "s2", "Seen.")),
    ]);
    assert_eq!(after.len(), 8);
    let new = after
        .iter()
        .find(|line| line["onward"].is_object())
        .expect("a new line");
    assert_eq!(
        (&new["parentUuid"], &new["agentId"]),
        (&json!("s2"), &json!("a1"))
    );
    assert_eq!(new["isSidechain"], true);
    // The session's own later rows are no proof for a subagent.
    scratch.write(
        "b.jsonl",
        log(&[
            aside(json!({"type": "assistant", "uuid": "s1", "message": {"id": "m", "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "Task", "input": {}}]}})),
            says("u1", "", "Go."),
            answers("u2", "u1", "Then."),
        ]),
    );
    assert_eq!(scratch.found("b.jsonl"), []);
}

#[test]
fn a_blank_line_of_a_person_and_a_doubled_tail_go() {
    let scratch = Scratch::new("blank");
    let mut mirror = answers("u5", "u4", "Then.");
    mirror["message"]["id"] = "other".into();
    let after = scratch.repaired(&[
        says("u1", "", "Go."),
        says("u2", "u1", " "),
        says("u3", "u2", "Well?"),
        answers("u4", "u3", "Then."),
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
fn every_byte_that_is_no_part_of_the_repair_stays() {
    let scratch = Scratch::new("bytes");
    let odd = "{ \"type\":\"summary\" , \"n\":1.0e2 }\n\n{\"uuid\":\"u0\",  \"z\":1, \"a\":\"\\u0041\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"Go.\"}}\r\n";
    let call = calls("u1", "u0", "m1", &["t1"]);
    let then = answers("u2", "u1", "Then.");
    scratch.write("a.jsonl", format!("{odd}{call}\n{then}"));
    assert_eq!(scratch.run(&["repair", "a.jsonl"]).code, Some(0));
    let after = scratch.read("a.repaired.jsonl");
    let rest = after.strip_prefix(odd).expect("what was odd stays odd");
    assert!(rest.starts_with(&format!("{call}\n{{\"parentUuid\":\"u1\"")));
}
