//! Standard input and output on a bad day: what is no message, what is too long, who hangs up, who is
//! told to stop.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use serde_json::json;

use crate::agent::{Agent, ERAS, Era, Refusal, done};
use crate::place::Place;
use crate::works;

#[test]
fn garbage_is_answered_with_an_error_and_passed_over() {
    for era in ERAS {
        let place = Place::file();
        let mut agent = Agent::start(&place, era);
        for line in [
            &b"garbage"[..],
            b"{",
            b"[]",
            b"[1, 2]",
            b"\"text\"",
            b"null",
            b"{}",
            b"\xff\xfe\x00",
            b"{\"jsonrpc\": \"2.0\"}",
        ] {
            agent.write(line);
            let answer = agent.hear();
            let code = answer["error"]["code"].as_i64();
            assert!(matches!(code, Some(-32700 | -32600)), "{answer}");
        }
        // Empty lines are no messages, and no mistakes either.
        agent.write(b"");
        agent.write(b"  \r");
        assert_eq!(agent.call("ping", json!({}))["message"], "pong");
    }
}

#[test]
fn what_comes_before_the_handshake_ends_nothing() {
    let place = Place::file();
    let mut command = place.onward();
    let mut agent = Agent::of(command.arg("mcp"), Era::Stateless, json!({}));
    for line in [
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 9, "result": {} }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 4 } }),
    ] {
        agent.say(&line);
    }
    assert_eq!(agent.call("ping", json!({}))["message"], "pong");
}

#[test]
fn a_message_that_cannot_be_read_is_answered_to_whoever_sent_it() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    // Deeper than a reader of JSON goes; the id at the beginning, and at the end.
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    agent.write(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"ping\",\"params\":{deep}}}")
            .as_bytes(),
    );
    let answer = agent.hear();
    assert_eq!(answer["id"], 77, "{answer}");
    assert_eq!(answer["error"]["code"], -32700);
    agent.write(
        format!("{{\"method\":\"ping\",\"params\":{deep},\"jsonrpc\":\"2.0\",\"id\":\"a\"}}")
            .as_bytes(),
    );
    assert_eq!(agent.hear()["id"], "a");
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let plan = works::created(&mut agent, 1);
    let (step, _) = works::next(&mut agent, &plan);
    let text = "x".repeat(33 * 1024 * 1024);
    let id = agent.send_call(
        "submit_step_result",
        json!({ "stepId": step, "resultSummary": text }),
    );
    let answer = agent.answer_to(id);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("33554432 bytes"), "{answer}");
    // A long line that is not too long is a call like any other.
    let text = "x".repeat(4 * 1024 * 1024);
    let refused = agent.refused(
        "submit_step_result",
        json!({ "stepId": step, "resultSummary": text }),
    );
    assert_eq!(refused.paths(), ["resultSummary"]);
    assert_eq!(agent.call("ping", json!({}))["message"], "pong");
}

#[test]
fn calls_that_are_sent_at_once_are_all_answered() {
    for era in ERAS {
        let place = Place::file();
        let mut agent = Agent::start(&place, era);
        let plan = works::created(&mut agent, 40);
        let ids: Vec<u64> = (0..40)
            .map(|_| agent.send_call("get_next_step", json!({ "planId": plan })))
            .collect();
        let mut steps = std::collections::BTreeSet::new();
        for _ in &ids {
            let answer = agent.hear();
            assert!(ids.contains(&answer["id"].as_u64().unwrap()), "{answer}");
            let step = done("get_next_step", &answer);
            assert_eq!(step["status"], "step_started");
            steps.insert(step["stepId"].to_string());
        }
        assert_eq!(steps.len(), 40, "nobody gets a step twice");
    }
}

#[test]
fn whoever_hangs_up_gets_every_answer_first() {
    for era in ERAS {
        let place = Place::file();
        let mut agent = Agent::start(&place, era);
        let plan = works::created(&mut agent, 20);
        for _ in 0..20 {
            agent.send_call("get_next_step", json!({ "planId": plan }));
        }
        agent.hang_up();
        let rest = agent.rest();
        assert_eq!(rest.len(), 20);
        assert!(agent.wait().success());
        let status = place.json(&["plan", "show", &plan]);
        assert_eq!(status["counts"]["inProgress"], 20);
        let logged = place.calls();
        let asked = logged.iter().filter(|call| call.tool == "get_next_step");
        assert_eq!(asked.count(), 20, "and every call is in the log");
    }
}

#[test]
fn a_last_line_may_end_with_the_input() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    agent.send_call("ping", json!({}));
    drop(agent.hear());
    agent.write_without_end(br#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
    agent.hang_up();
    assert_eq!(
        agent.rest(),
        [json!({ "jsonrpc": "2.0", "id": 5, "result": {} })]
    );
    assert!(agent.wait().success());
}

#[test]
fn every_call_but_ping_is_in_the_log_when_it_has_ended() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let plan = works::created(&mut agent, 1);
    let (step, token) = works::next(&mut agent, &plan);
    agent.call("ping", json!({}));
    agent.refused("get_plan_status", json!({ "planid": plan }));
    agent.call(
        "submit_step_result",
        json!({ "stepId": step, "claimToken": token, "resultSummary": "x".repeat(501), "sessionId": "s1" }),
    );
    assert!(agent.end().success());
    let calls = place.calls();
    let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(
        tools,
        [
            "submit_step_result",
            "get_plan_status",
            "get_next_step",
            "create_research_plan"
        ]
    );
    assert_eq!(calls[0].session.as_deref(), Some("s1"));
    assert_eq!(calls[0].request["resultSummary"], "[501 chars]");
    assert_eq!(calls[0].request["claimToken"], "[token]");
    assert_eq!(calls[0].response["stepStatus"], "completed");
    assert!(!calls[0].is_error && calls[1].is_error);
    assert_eq!(calls[1].response["error"]["code"], "invalid_input");
    assert_eq!(calls[0].actor, "user:ada");
}

#[test]
fn it_ends_when_it_is_told_to_and_what_runs_is_finished() {
    for signal in ["TERM", "INT"] {
        let place = Place::file();
        let mut agent = Agent::start(&place, Era::Handshake);
        let plan = works::created(&mut agent, 5);
        agent.ask("resources/subscribe", json!({ "uri": "onward://plans" }));
        for _ in 0..5 {
            agent.send_call("get_next_step", json!({ "planId": plan }));
        }
        // All of them were taken in once the last one was answered.
        agent.call("ping", json!({}));
        let told = std::process::Command::new("kill")
            .args([&format!("-{signal}"), &agent.pid().to_string()])
            .status();
        assert!(told.expect("there is a `kill`").success());
        // Its input stays open: it ends by itself.
        assert!(agent.wait().success(), "{signal}");
        assert_eq!(
            place.json(&["plan", "show", &plan])["counts"]["inProgress"],
            5
        );
    }
}

#[test]
fn a_call_that_is_cancelled_is_not_answered_and_harms_nobody() {
    let place = Place::file();
    let mut agent = Agent::with(&place, Era::Handshake, &[], json!({ "elicitation": {} }));
    let plan = works::created(&mut agent, 1);
    let (step, _) = works::next(&mut agent, &plan);
    // A review whose form nobody fills in: the longest call that there is.
    let id = agent.send_call(
        "request_user_review",
        json!({ "stepId": step, "summary": "Look" }),
    );
    let form = agent.note("elicitation/create");
    agent.say(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": id },
    }));
    assert_eq!(agent.call("ping", json!({}))["message"], "pong");
    // The form's answer comes too late, and is nobody's.
    agent.say(&json!({
        "jsonrpc": "2.0",
        "id": form["id"],
        "result": { "action": "accept", "content": { "decision": "approve" } },
    }));
    let status = agent.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["status"], "awaiting_review");
    agent.hang_up();
    let answers = agent.rest();
    assert!(
        answers.iter().all(|answer| answer["id"] != id),
        "{answers:?}"
    );
}

#[test]
fn two_servers_on_one_file_work_on_one_plan() {
    let place = Place::file();
    let mut one = Agent::start(&place, Era::Handshake);
    let mut other = Agent::start(&place, Era::Stateless);
    let plan = works::created(&mut one, 20);
    for agent in [&mut one, &mut other] {
        for _ in 0..10 {
            agent.send_call("get_next_step", json!({ "planId": plan }));
        }
    }
    let mut steps = std::collections::BTreeSet::new();
    for agent in [&mut one, &mut other] {
        for _ in 0..10 {
            steps.insert(done("get_next_step", &agent.hear())["stepId"].to_string());
        }
    }
    assert_eq!(steps.len(), 20);
}

#[test]
fn it_ends_when_nobody_takes_its_answers_any_more() {
    let place = Place::file();
    let mut command = place.onward();
    let mut child = command
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let mut input = child.stdin.take().expect("it has an input");
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    input.write_all(ping.as_bytes()).expect("it takes a line");
    // Its input stays open: it ends by itself.
    assert!(child.wait().expect("it ends").success());
    drop(input);
}

#[test]
fn a_client_may_give_it_sockets_or_files_instead_of_pipes() {
    const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    let place = Place::file();
    let (mut ours, theirs) = UnixStream::pair().expect("sockets can be made");
    let theirs = OwnedFd::from(theirs);
    let mut child = place
        .onward()
        .arg("mcp")
        .stdin(theirs.try_clone().expect("it can be given twice"))
        .stdout(theirs)
        .spawn()
        .expect("the binary starts");
    ours.write_all(PING).expect("it takes a line");
    let mut said = String::new();
    BufReader::new(&ours)
        .read_line(&mut said)
        .expect("it answers");
    assert_eq!(said, PONG);
    drop(ours);
    assert!(child.wait().expect("it ends").success());

    let (asked, answered) = (place.path("asked"), place.path("answered"));
    std::fs::write(&asked, PING).expect("a file can be written");
    let ended = place
        .onward()
        .arg("mcp")
        .stdin(File::open(&asked).expect("it is there"))
        .stdout(File::create(&answered).expect("it can be made"))
        .status();
    assert!(ended.expect("the binary starts").success());
    let said = std::fs::read_to_string(answered).expect("it is there");
    assert_eq!(said, PONG);
}

#[test]
fn errors_may_go_where_answers_go() {
    let place = Place::file();
    let (mut ours, theirs) = UnixStream::pair().expect("sockets can be made");
    let theirs = OwnedFd::from(theirs);
    let again = || theirs.try_clone().expect("it can be given again");
    let mut child = place
        .onward()
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(again())
        .stderr(again())
        .spawn()
        .expect("the binary starts");
    drop(theirs);
    let mut input = child.stdin.take().expect("it has an input");
    input
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n")
        .expect("it takes a line");
    drop(input);
    let mut said = String::new();
    ours.read_to_string(&mut said).expect("it answers and ends");
    assert!(said.contains("\"result\":{}"), "{said}");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn it_serves_the_tenant_that_it_is_told_to_and_no_other() {
    let place = Place::file();
    place.run(&["tenant", "create", "acme"]);
    let mut local = Agent::start(&place, Era::Handshake);
    let plan = works::created(&mut local, 1);
    let mut command = place.onward();
    command.args(["--tenant", "acme", "mcp"]);
    let mut acme = Agent::of(&mut command, Era::Handshake, json!({}));
    assert_eq!(acme.call("ping", json!({}))["tenant"], "acme");
    let theirs = acme.refused("get_plan_status", json!({ "planId": plan }));
    let never = "00000000-0000-4000-8000-000000000000";
    let nobodys = acme.refused("get_plan_status", json!({ "planId": never }));
    let bytes = |refused: &Refusal, id: &str| refused.error.to_string().replace(id, "…");
    assert_eq!(bytes(&theirs, &plan), bytes(&nobodys, never));
    let uri = format!("onward://plan/{plan}");
    let read = acme.ask("resources/read", json!({ "uri": uri }));
    assert_eq!(read["error"]["code"], -32002);
    assert_eq!(
        acme.call("list_active_plans", json!({}))["plans"],
        json!([])
    );
}

#[test]
fn a_server_that_cannot_start_says_so_and_nothing_else() {
    let place = Place::file();
    let mut command = place.onward();
    let output = command
        .args(["--tenant", "nobody", "mcp"])
        .output()
        .expect("the binary starts");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.starts_with("error: no tenant `nobody`"), "{told}");
}
