//! Whatever is wrong, the agent goes on: exit code 0, nothing on standard output, one line on standard
//! error.

use onward_testbed::Cluster;

use crate::desk::{Answer, Desk};

#[track_caller]
fn is_let_go_with(answer: &Answer, why: &str) {
    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (Some(0), ""),
        "{answer:?}"
    );
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    assert!(answer.stderr.contains(why), "{answer:?}");
}

#[test]
fn arguments_that_make_no_sense() {
    let desk = Desk::new("arguments", "codex");
    for (arguments, why) in [
        (&["hook"] as &[&str], "AGENT"),
        (&["hook", "clippy"], "clippy"),
        (&["hook", "codex", "extra"], "extra"),
        (&["hook", "codex", "--loud"], "--loud"),
        (&["hook", "codex", "--json", "--color", "blue"], "blue"),
        (&["--json", "--database", "hook", "hook", "x"], "'x'"),
        (&["--unheard-of", "hook", "codex"], "--unheard-of"),
    ] {
        is_let_go_with(&desk.send(arguments, b"{}"), why);
    }
    // Another command is not excused.
    let answer = desk.send(&["--config", "hook", "plan", "lost"], b"");
    assert_eq!(answer.code, Some(2));
}

#[test]
fn input_that_makes_no_sense() {
    let desk = Desk::new("input", "claude-code");
    let hook = ["hook", "claude-code"];
    for (input, why) in [
        (b"" as &[u8], "no JSON"),
        (b"garbage", "no JSON"),
        (b"{\"hook_event_name\":\"Stop\"", "no JSON"),
        (b"[]", "no JSON object"),
        (b"\xff\xfe", "no JSON"),
        (b"{\"hook_event_name\":\"Stop\"}", "names no session"),
        (
            b"{\"hook_event_name\":\"Stop\",\"session_id\":7}",
            "names no session",
        ),
    ] {
        is_let_go_with(&desk.send(&hook, input), why);
    }
    let deep = "[".repeat(100_000);
    is_let_go_with(&desk.send(&hook, deep.as_bytes()), "no JSON");
    // What is of no use here is no mistake.
    desk.send(&hook, b"{}").is_silent();
    desk.tell("notification").is_silent();
    let odd = br#"{"hook_event_name":"PostToolBatch","session_id":"s","tool_calls":[1,{"tool_name":[]}]}"#;
    assert_eq!(desk.send(&hook, odd).code, Some(0));
}

#[test]
fn a_configuration_that_cannot_be_read() {
    let desk = Desk::new("configuration", "codex");
    let file = desk.work().join("onward.toml");
    std::fs::write(&file, "[loop_control]\nprogress_stall_threshold = 0\n").unwrap();
    is_let_go_with(&desk.tell("prompt"), "from 1 to 1000");
}

#[test]
fn a_database_that_cannot_be_used() {
    let desk = Desk::new("no-folder", "codex");
    std::fs::write(desk.folder.join("file"), "no folder").unwrap();
    let inside = desk.folder.join("file/onward.db").display().to_string();
    is_let_go_with(&desk.on(inside).tell("prompt"), "database");

    let desk = Desk::new("no-database", "codex");
    let letter = desk.folder.join("letter.txt");
    std::fs::write(&letter, "Dear Sir or Madam, ".repeat(100)).unwrap();
    let letter = letter.display().to_string();
    is_let_go_with(&desk.on(letter).tell("prompt"), "database");

    let desk = Desk::new("no-server", "codex");
    let nowhere = "postgres://nobody@127.0.0.1:1/none".to_owned();
    is_let_go_with(&desk.on(nowhere).tell("prompt"), "database");
}

#[test]
fn a_file_that_somebody_else_holds() {
    let desk = Desk::new("held", "codex");
    desk.tell("prompt").is_silent();
    let holds = rusqlite::Connection::open(desk.folder.join("onward.db")).unwrap();
    holds.execute_batch("BEGIN IMMEDIATE").unwrap();
    is_let_go_with(&desk.tell("idle"), "too long");
    // A call is recorded before it is made; where that cannot be, it is made all the same.
    is_let_go_with(&desk.tell("before"), "too long");
    holds.execute_batch("ROLLBACK").unwrap();
    desk.tell("idle").is_silent();
}

#[test]
fn an_agent_that_says_nothing_and_never_ends() {
    let desk = Desk::new("endless", "codex");
    let mut child = desk.onward(&["hook", "codex"]).spawn().unwrap();
    let stdin = child.stdin.take();
    let answer = Answer::of(child.wait_with_output().unwrap());
    is_let_go_with(&answer, "too long");
    drop(stdin);
}

#[test]
fn a_state_that_cannot_be_read_begins_anew_in_one_line() {
    let desk = Desk::new("unreadable", "codex");
    desk.tell("prompt").is_silent();
    desk.tell("idle").is_silent();
    let file = rusqlite::Connection::open(desk.folder.join("onward.db")).unwrap();
    file.execute_batch("UPDATE session_agents SET state = 'x'")
        .unwrap();
    is_let_go_with(&desk.tell("idle"), "begins anew");
    desk.tell("idle").is_silent();
}

#[test]
fn on_a_server_all_is_the_same() {
    let desk = Desk::new("server", "claude-code").on(Cluster::shared().database());
    desk.tell("prompt").is_silent();
    desk.idle(8);
    assert!(desk.tell("before").stdout.contains("\"deny\""));
}
