//! Sessions and tool calls that a harness records over HTTP, and calls of killed processes.

use std::time::{Duration, Instant};

use onward_testbed::{Backend, Cluster, Database, Server, TIMEOUT, ToolProcess};
use serde_json::{Value, json};

use crate::events::EventStream;
use crate::program;

async fn record(server: &Server, call: Value) -> Value {
    let recorded = server.post("/api/v1/sessions/h-1/calls", call).await;
    assert_eq!(recorded.status.as_u16(), 201, "{recorded:?}");
    recorded.json()
}

async fn calls(server: &Server) -> Vec<Value> {
    let session = server.get("/api/v1/sessions/h-1").await.expect_success();
    session["calls"]
        .as_array()
        .expect("value is a list")
        .clone()
}

/// Waits until no call is open. Returns the calls.
async fn wait_until_settled(server: &Server) -> Vec<Value> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let calls = calls(server).await;
        if calls.iter().all(|call| call["ageMs"].is_null()) {
            return calls;
        }
        assert!(Instant::now() < deadline, "{calls:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn records_calls_and_streams_session_events() {
    let server = program("harness").serve();
    let mut events = EventStream::open(&server, None).await;
    let call = json!({
        "tool": "Bash", "callId": "c1", "input": { "command": "TOKEN=sesame make" },
        "timeoutMs": 1000, "batch": 3,
    });
    let call = record(&server, call).await;
    assert_eq!(
        events.next().await.as_deref(),
        Some("event: session_changed\ndata: {\"sessionId\":\"h-1\"}")
    );
    assert_eq!(call["status"], "requested");
    assert_eq!((&call["turn"], &call["position"]), (&json!(1), &json!(1)));
    assert_eq!(call["input"], "TOKEN=[secret] make");
    let at = "/api/v1/sessions/h-1/calls/1/1";
    let running = server
        .post(at, json!({ "change": "start" }))
        .await
        .expect_success();
    assert_eq!(running["status"], "running");
    assert!(running["staleAt"].is_string(), "{running}");
    assert!(
        events
            .next()
            .await
            .is_some_and(|event| event.contains("session_changed"))
    );
    let health = server
        .get("/api/v1/sessions/h-1/health")
        .await
        .expect_success();
    assert_eq!(health["calls"]["running"], 1);
    assert_eq!(health["calls"]["list"][0]["tool"], "Bash");
    let ended = json!({ "change": "complete", "result": "made" });
    let ended = server.post(at, ended).await.expect_success();
    assert_eq!(
        (&ended["result"], &ended["synthetic"]),
        (&json!("made"), &json!(false))
    );
    let again = server.post(at, json!({ "change": "fail" })).await;
    again.expect_problem(409, "illegal_transition");
    let list = server
        .get("/api/v1/sessions?limit=5")
        .await
        .expect_success();
    assert_eq!(list["sessions"][0]["sessionId"], "h-1");
}

#[tokio::test]
async fn rejects_invalid_calls_with_their_path() {
    let server = program("invalid-calls").serve();
    let at = "/api/v1/sessions/h-1/calls";
    for (call, path) in [
        (json!({ "tool": "" }), "tool"),
        (json!({ "tool": "a", "turn": 0 }), "turn"),
        (
            json!({ "tool": "a", "owner": { "processId": 999_999_999 } }),
            "owner.processId",
        ),
        (
            json!({ "tool": "a", "owner": { "processId": 1, "host": "" } }),
            "owner.host",
        ),
        (
            json!({ "tool": "a", "timeoutMs": 1, "noTimeout": true }),
            "timeoutMs",
        ),
        (json!({ "tool": "a", "colour": "red" }), "colour"),
    ] {
        let problem = server
            .post(at, call)
            .await
            .expect_problem(400, "invalid_input");
        assert_eq!(problem["details"]["issues"][0]["path"], path, "{problem}");
    }
    for suffix in ["", "/health"] {
        let missing = server
            .get(&format!("/api/v1/sessions/missing{suffix}"))
            .await;
        missing.expect_problem(404, "invalid_input");
    }
    record(&server, json!({ "tool": "a" })).await;
    let missing = server
        .post(&format!("{at}/1/7"), json!({ "change": "start" }))
        .await;
    missing.expect_problem(404, "invalid_input");
    let invalid = server
        .post(
            &format!("{at}/1/1"),
            json!({ "change": "start", "result": "x" }),
        )
        .await;
    invalid.expect_problem(400, "invalid_input");
}

/// A remote agent must not find out which processes run on the server's machine.
#[tokio::test]
async fn reveals_no_process_of_the_server_to_remote_agents() {
    let setup = program("remote-owner").with_config("[access]\nrequire_tokens = true");
    let token = setup.token("local", "agent", "agent");
    let server = setup.serve();
    let record = async |owner: Value| {
        let call = json!({ "tool": "a", "status": "running", "owner": owner });
        let response = server.post_as(&token, "/api/v1/sessions/h-1/calls", call);
        let call = response.await.expect_success();
        (call["owner"].clone(), call["status"].clone())
    };
    let own = std::process::id();
    for process in [own, 999_999_999] {
        let expected = json!({ "host": "remote/", "processId": process });
        let (owner, status) = record(json!({ "processId": process })).await;
        assert_eq!((owner, status), (expected, json!("running")));
    }
    // Even with the name of the server's host, an interruption proves nothing.
    let host = onward_engine::machine::owner(own).expect("running").host;
    let (owner, _) = record(json!({ "processId": 999_999_999, "host": host })).await;
    assert_eq!(owner["host"], format!("remote/{host}"));
    let recovered = server.post_as(&token, "/api/v1/sessions/h-1/recover", json!({}));
    assert_eq!(recovered.await.expect_success()["interrupted"], json!([]));
}

/// A tool process is killed while no server runs. The next server interrupts its calls.
async fn interrupts_calls_of_a_killed_process(test: &str, database: String) {
    let mut tool = ToolProcess::start();
    let server = program(test).with_database(database.clone()).serve();
    let owner = json!({ "processId": tool.id() });
    for (batch, status) in [(1, "running"), (1, "requested"), (1, "awaiting_approval")] {
        let call = json!({
            "tool": "Bash", "callId": "same", "batch": batch, "status": status, "owner": owner,
            "timeoutMs": 3_600_000,
        });
        record(&server, call).await;
    }
    drop(server);
    tool.kill();
    let server = program(&format!("{test}-again"))
        .with_database(database)
        .serve();
    let calls = wait_until_settled(&server).await;
    let outcome = |call: &Value| {
        let text = |field: &str| call[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("cause"), call["synthetic"] == true)
    };
    let interrupted = |cause: &str| ("interrupted".to_owned(), cause.to_owned(), true);
    let all: Vec<_> = calls.iter().map(outcome).collect();
    assert_eq!(
        all,
        [
            interrupted("outcome_unknown"),
            interrupted("not_started"),
            interrupted("not_started")
        ]
    );
    let model = calls[0]["toldModel"].as_str().expect("value is a string");
    assert!(!model.is_empty());
    assert!(calls[0]["grounds"].is_string(), "{}", calls[0]);
    // A late result is stored once; the synthetic result stays.
    let at = "/api/v1/sessions/h-1/calls/1/1";
    let late = json!({ "change": "complete", "result": "deployed" });
    let late = server.post(at, late.clone()).await.expect_success();
    assert_eq!(
        (&late["status"], &late["late"]),
        (&json!("completed"), &json!(true))
    );
    assert_eq!(
        (&late["result"], &late["toldModel"]),
        (&json!("deployed"), &json!(model))
    );
    let again = server
        .post(at, json!({ "change": "complete", "result": "again" }))
        .await;
    again.expect_problem(409, "illegal_transition");
}

#[tokio::test]
async fn startup_interrupts_calls_of_a_killed_process_on_a_file() {
    let database = Database::create(Backend::Sqlite);
    interrupts_calls_of_a_killed_process("killed", database.address()).await;
}

#[tokio::test]
async fn startup_interrupts_calls_of_a_killed_process_on_postgresql() {
    interrupts_calls_of_a_killed_process("killed-postgres", Cluster::shared().database()).await;
}

#[tokio::test]
async fn a_running_server_interrupts_calls_of_a_killed_process() {
    let mut tool = ToolProcess::start();
    let server = program("dies").serve();
    let owner = json!({ "processId": tool.id() });
    record(
        &server,
        json!({ "tool": "Task", "status": "running", "owner": owner }),
    )
    .await;
    let recovered = server
        .post("/api/v1/sessions/h-1/recover", json!({}))
        .await
        .expect_success();
    assert_eq!(
        recovered["interrupted"],
        json!([]),
        "the process is alive, and the call has no timeout"
    );
    tool.kill();
    assert_eq!(
        wait_until_settled(&server).await[0]["cause"],
        "outcome_unknown"
    );
}

#[tokio::test]
async fn agents_cannot_close_calls() {
    let setup = program("closes").with_config("[access]\nrequire_tokens = true");
    let agent = setup.token("local", "agent", "agent");
    let member = setup.token("local", "member", "member");
    let server = setup.serve();
    let call = json!({ "tool": "a", "status": "running" });
    let at = "/api/v1/sessions/h-1/calls";
    server.post_as(&agent, at, call).await.expect_success();
    let close = format!("{at}/1/1/close");
    let rejected = server.post_as(&agent, &close, json!({})).await;
    rejected.expect_problem(403, "forbidden");
    let closed = server
        .post_as(&member, &close, json!({}))
        .await
        .expect_success();
    assert_eq!(closed["status"], "interrupted");
    let grounds = closed["grounds"].as_str().expect("value is a string");
    assert!(grounds.contains("`token:member`"), "{grounds}");
}
