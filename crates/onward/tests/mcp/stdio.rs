//! The stdio transport with invalid and oversized messages, disconnects and termination signals.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use onward_testbed::mcp_client::{Client, ERAS, Era, Rejection, rejection, success};
use serde_json::json;

use crate::engine::{logged_requests, with_engine};
use crate::fixtures;
use crate::program;

#[test]
fn rejects_invalid_messages_and_continues() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::start(&dir, era);
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
            client.write_line(line);
            let response = client.receive();
            let code = response["error"]["code"].as_i64();
            assert!(matches!(code, Some(-32700 | -32600)), "{response}");
        }
        // Blank lines are ignored.
        client.write_line(b"");
        client.write_line(b"  \r");
        assert_eq!(client.call("ping", json!({}))["message"], "pong");
    }
}

#[test]
fn ignores_messages_before_the_handshake() {
    let dir = program();
    let mut command = dir.command(&[]);
    let mut client = Client::from_command(command.arg("mcp"), Era::Stateless, json!({}));
    for line in [
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 9, "result": {} }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 4 } }),
    ] {
        client.send_message(&line);
    }
    assert_eq!(client.call("ping", json!({}))["message"], "pong");
}

#[test]
fn an_unparsable_request_gets_an_error_with_its_id() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    // Nested deeper than the JSON parser allows, with the id first and last.
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    client.write_line(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"ping\",\"params\":{deep}}}")
            .as_bytes(),
    );
    let response = client.receive();
    assert_eq!(response["id"], 77, "{response}");
    assert_eq!(response["error"]["code"], -32700);
    client.write_line(
        format!("{{\"method\":\"ping\",\"params\":{deep},\"jsonrpc\":\"2.0\",\"id\":\"a\"}}")
            .as_bytes(),
    );
    assert_eq!(client.receive()["id"], "a");
}

#[test]
fn rejects_an_oversized_message_and_continues() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 1);
    let (step, _) = fixtures::claim_step(&mut client, &plan);
    let text = "x".repeat(33 * 1024 * 1024);
    let id = client.send_call(
        "submit_step_result",
        json!({ "stepId": step, "resultSummary": text }),
    );
    let response = client.response_to(id);
    assert_eq!(response["error"]["code"], -32600, "{response}");
    assert_eq!(response["error"]["data"]["limit"], 32 * 1024 * 1024);
    // A long message below the limit is processed.
    let text = "x".repeat(4 * 1024 * 1024);
    let rejected = client.call_rejected(
        "submit_step_result",
        json!({ "stepId": step, "resultSummary": text }),
    );
    assert_eq!(rejected.paths(), ["resultSummary"]);
    assert_eq!(client.call("ping", json!({}))["message"], "pong");
}

#[test]
fn responds_to_all_concurrent_calls() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::start(&dir, era);
        let plan = fixtures::create_plan(&mut client, 40);
        let ids: Vec<u64> = (0..40)
            .map(|_| client.send_call("get_next_step", json!({ "planId": plan })))
            .collect();
        let mut steps = std::collections::BTreeSet::new();
        for _ in &ids {
            let response = client.receive();
            assert!(
                ids.contains(&response["id"].as_u64().unwrap()),
                "{response}"
            );
            let step = success("get_next_step", &response);
            assert_eq!(step["status"], "step_started");
            steps.insert(step["stepId"].to_string());
        }
        assert_eq!(steps.len(), 40, "no step is claimed twice");
    }
}

#[test]
fn sends_all_responses_after_the_input_is_closed() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::start(&dir, era);
        let plan = fixtures::create_plan(&mut client, 20);
        for _ in 0..20 {
            client.send_call("get_next_step", json!({ "planId": plan }));
        }
        client.close_input();
        let rest = client.remaining();
        assert_eq!(rest.len(), 20);
        assert!(client.wait().success());
        let status = dir.run_json(&["--json", "plan", "show", &plan]);
        assert_eq!(status["counts"]["inProgress"], 20);
        let logged = logged_requests(&dir);
        let calls = logged.iter().filter(|call| call.tool == "get_next_step");
        assert_eq!(calls.count(), 20, "every call is logged");
    }
}

#[test]
fn accepts_a_last_line_without_a_newline() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    client.send_call("ping", json!({}));
    drop(client.receive());
    client.write(br#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
    client.close_input();
    assert_eq!(
        client.remaining(),
        [json!({ "jsonrpc": "2.0", "id": 5, "result": {} })]
    );
    assert!(client.wait().success());
}

#[test]
fn logs_every_call_except_ping() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 1);
    let (step, token) = fixtures::claim_step(&mut client, &plan);
    client.call("ping", json!({}));
    client.call_rejected("get_plan_status", json!({ "planid": plan }));
    client.call(
        "submit_step_result",
        json!({ "stepId": step, "claimToken": token, "resultSummary": "x".repeat(501), "sessionId": "s1" }),
    );
    assert!(client.close().success());
    let calls = logged_requests(&dir);
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
    assert_eq!(calls[0].actor, "user:ann");
}

#[test]
fn completes_running_calls_on_a_termination_signal() {
    for signal in ["TERM", "INT"] {
        let dir = program();
        let mut client = Client::start(&dir, Era::Handshake);
        let plan = fixtures::create_plan(&mut client, 5);
        client.request("resources/subscribe", json!({ "uri": "onward://plans" }));
        for _ in 0..5 {
            client.send_call("get_next_step", json!({ "planId": plan }));
        }
        // The response to a later call proves that all of them were received.
        client.call("ping", json!({}));
        let killed = std::process::Command::new("kill")
            .args([&format!("-{signal}"), &client.pid().to_string()])
            .status();
        assert!(killed.expect("`kill` runs").success());
        // It exits although its input is open.
        assert!(client.wait().success(), "{signal}");
        assert_eq!(
            dir.run_json(&["--json", "plan", "show", &plan])["counts"]["inProgress"],
            5
        );
    }
}

#[test]
fn sends_no_response_to_a_cancelled_call() {
    let dir = program();
    let mut client = Client::with_options(&dir, Era::Handshake, &[], json!({ "elicitation": {} }));
    let plan = fixtures::create_plan(&mut client, 1);
    let (step, _) = fixtures::claim_step(&mut client, &plan);
    // A review with an unanswered form.
    let id = client.send_call(
        "request_user_review",
        json!({ "stepId": step, "summary": "Check" }),
    );
    let form = client.notification("elicitation/create");
    client.send_message(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": id },
    }));
    assert_eq!(client.call("ping", json!({}))["message"], "pong");
    let closed = client.notification("notifications/cancelled");
    assert_eq!(closed["params"]["requestId"], form["id"]);
    // The answer to the form arrives too late.
    client.send_message(&json!({
        "jsonrpc": "2.0",
        "id": form["id"],
        "result": { "action": "accept", "content": { "decision": "approve" } },
    }));
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["status"], "awaiting_review");
    client.close_input();
    let responses = client.remaining();
    assert!(
        responses.iter().all(|response| response["id"] != id),
        "{responses:?}"
    );
}

#[test]
fn two_servers_share_a_sqlite_file() {
    let dir = program();
    let mut one = Client::start(&dir, Era::Handshake);
    let mut other = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut one, 20);
    for client in [&mut one, &mut other] {
        for _ in 0..10 {
            client.send_call("get_next_step", json!({ "planId": plan }));
        }
    }
    let mut steps = std::collections::BTreeSet::new();
    for client in [&mut one, &mut other] {
        for _ in 0..10 {
            steps.insert(success("get_next_step", &client.receive())["stepId"].to_string());
        }
    }
    assert_eq!(steps.len(), 20);
}

#[test]
fn exits_if_the_output_is_closed() {
    let dir = program();
    let mut command = dir.command(&[]);
    let mut child = command
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("binary starts");
    drop(child.stdout.take());
    let mut input = child.stdin.take().expect("stdin is piped");
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let written = input.write_all(ping.as_bytes());
    written.expect("server reads its input");
    // It exits although its input is open.
    assert!(child.wait().expect("server exits").success());
    drop(input);
}

#[test]
fn accepts_sockets_and_files_instead_of_pipes() {
    const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    let dir = program();
    let (mut ours, theirs) = UnixStream::pair().expect("socket pair");
    let theirs = OwnedFd::from(theirs);
    let mut child = dir
        .command(&[])
        .arg("mcp")
        .stdin(theirs.try_clone().expect("socket clones"))
        .stdout(theirs)
        .spawn()
        .expect("binary starts");
    ours.write_all(PING).expect("server reads its input");
    let mut received = String::new();
    BufReader::new(&ours)
        .read_line(&mut received)
        .expect("server responds");
    assert_eq!(received, PONG);
    drop(ours);
    assert!(child.wait().expect("server exits").success());

    let (input, output) = (dir.dir.join("input"), dir.dir.join("output"));
    std::fs::write(&input, PING).expect("file is written");
    let status = dir
        .command(&[])
        .arg("mcp")
        .stdin(File::open(&input).expect("file opens"))
        .stdout(File::create(&output).expect("file is created"))
        .status();
    assert!(status.expect("binary starts").success());
    let received = std::fs::read_to_string(output).expect("file is readable");
    assert_eq!(received, PONG);
}

#[test]
fn stderr_and_stdout_may_share_a_socket() {
    let dir = program();
    let (mut ours, theirs) = UnixStream::pair().expect("socket pair");
    let theirs = OwnedFd::from(theirs);
    let again = || theirs.try_clone().expect("socket clones");
    let mut child = dir
        .command(&[])
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(again())
        .stderr(again())
        .spawn()
        .expect("binary starts");
    drop(theirs);
    let mut input = child.stdin.take().expect("stdin is piped");
    input
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n")
        .expect("server reads its input");
    drop(input);
    let mut received = String::new();
    let read = ours.read_to_string(&mut received);
    read.expect("server responds and exits");
    assert!(received.contains("\"result\":{}"), "{received}");
    assert!(child.wait().expect("server exits").success());
}

#[test]
fn serves_only_the_selected_tenant() {
    let dir = program();
    dir.run_ok(&["tenant", "create", "acme"]);
    let mut local = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut local, 1);
    let mut command = dir.command(&[]);
    command.args(["--tenant", "acme", "mcp"]);
    let mut acme = Client::from_command(&mut command, Era::Handshake, json!({}));
    assert_eq!(acme.call("ping", json!({}))["tenant"], "acme");
    let foreign = acme.call_rejected("get_plan_status", json!({ "planId": plan }));
    let id = "00000000-0000-4000-8000-000000000000";
    let unknown = acme.call_rejected("get_plan_status", json!({ "planId": id }));
    let error = |rejected: &Rejection, id: &str| rejected.error.to_string().replace(id, "ID");
    assert_eq!(error(&foreign, &plan), error(&unknown, id));
    let uri = format!("onward://plan/{plan}");
    let read = acme.request("resources/read", json!({ "uri": uri }));
    assert_eq!(read["error"]["code"], -32002);
    assert_eq!(
        acme.call("list_active_plans", json!({}))["plans"],
        json!([])
    );
}

#[test]
fn a_failed_start_writes_nothing_to_stdout() {
    let dir = program();
    let mut command = dir.command(&[]);
    let output = command
        .args(["--tenant", "unknown", "mcp"])
        .output()
        .expect("binary starts");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("error: "), "{stderr}");
    assert!(stderr.contains("`unknown`"), "{stderr}");
}

#[test]
fn keeps_work_that_the_parser_rejects() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    for field in [
        format!("\"result\":{deep}"),
        "\"result\":{\"n\":1e999}".to_owned(),
        "\"result\":{\"text\":\"\\ud800\"}".to_owned(),
        "\"stepExecutionReport\":{\"text\":\"\\ud800\"}".to_owned(),
    ] {
        let dir = program();
        let mut client = Client::start(&dir, Era::Handshake);
        let plan = fixtures::create_plan(&mut client, 1);
        let (step, token) = fixtures::claim_step(&mut client, &plan);
        let arguments = format!(
            "{{\"stepId\":\"{step}\",\"claimToken\":\"{token}\",\"resultSummary\":\"s\",{field}}}"
        );
        let params = format!("{{\"name\":\"submit_step_result\",\"arguments\":{arguments}}}");
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/call\",\"params\":{params}}}"
        );
        client.write_line(line.as_bytes());
        let response = client.response_to(77);
        let rejected = rejection("submit_step_result", &response);
        assert_eq!(rejected.code, "invalid_input", "{response}");
        let (path, value) = field.split_once(':').expect("a field");
        assert_eq!(rejected.paths(), [path.trim_matches('"')], "{response}");
        let kept = rejected.error["details"]["keptArtifactId"].as_str();
        let kept = kept.expect("the work is kept").parse().expect("an id");
        let kept = with_engine(&dir, async |engine, caller| {
            engine
                .artifact(caller, kept)
                .await
                .expect("artifact")
                .content
        });
        let kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
        assert_eq!(kept[path.trim_matches('"')], value);
        // The claim still works.
        let submit = json!({ "stepId": step, "claimToken": token, "resultSummary": "s" });
        client.call("submit_step_result", submit);
    }
}

#[test]
fn core_hints_name_only_core_tools() {
    let dir = program();
    let mut client = Client::with_options(&dir, Era::Handshake, &["--tools", "core"], json!({}));
    let plan = fixtures::create_plan(&mut client, 1);
    let unknown = "00000000-0000-4000-8000-000000000000";
    let remove = json!({ "planId": plan, "action": "remove_step", "stepId": unknown });
    let rejected = client.call_rejected("modify_plan", remove);
    assert_eq!(rejected.code, "step_not_found");
    let hint = rejected.error["hint"].as_str().expect("a hint");
    assert!(hint.contains("`get_research_context`"), "{hint}");
    let long = fixtures::create_plan(&mut client, 60);
    let status = client.call("get_plan_status", json!({ "planId": long }));
    let more = status["more"].as_str().expect("omitted steps");
    assert!(!more.contains("list_plan_steps"), "{more}");
    fixtures::claim_step(&mut client, &plan);
    let other = json!({ "planId": plan, "sessionId": "other" });
    let next = client.call("get_next_step", other);
    assert_eq!(next["status"], "no_pending_steps");
    let hint = next["hint"].as_str().expect("a hint");
    assert!(hint.contains("includeStalled"), "{hint}");
}
