//! Interrupted calls are reported as interrupted everywhere (API, health, CLI, pages, events), with
//! the cause and a synthetic result, and never as a success.

use onward_testbed::{Cluster, Program, Server, ToolProcess};
use serde_json::{Value, json};

use crate::events::EventStream;
use crate::program;

/// Texts that report a success.
const SUCCESS_TEXTS: [&str; 4] = ["completed", "succeeded", "success", "✓"];

/// Records one running and one requested call of a live process.
async fn start_calls(setup: Program) -> (Server, ToolProcess) {
    let tool = ToolProcess::start();
    let server = setup.serve();
    for (command, status) in [("deploy", "running"), ("notify", "requested")] {
        let call = json!({
            "tool": "Bash", "input": { "command": command }, "status": status, "batch": 1,
            "owner": { "processId": tool.id() }, "timeoutMs": 3_600_000,
        });
        let recorded = server.post("/api/v1/sessions/h-1/calls", call).await;
        assert_eq!(recorded.status.as_u16(), 201, "{recorded:?}");
    }
    (server, tool)
}

/// Records both calls, kills their process and interrupts them.
async fn interrupt_calls(test: &str) -> Server {
    let (server, mut tool) = start_calls(program(test)).await;
    tool.kill();
    let recover = server.post("/api/v1/sessions/h-1/recover", json!({}));
    recover.await.expect_success();
    server
}

#[track_caller]
fn assert_interrupted(call: &Value, cause: &str) {
    assert_eq!(call["status"], "interrupted", "{call}");
    assert_eq!(call["cause"], cause, "{call}");
    assert_eq!(call["synthetic"], true, "{call}");
    assert_eq!(call["late"], false, "{call}");
    assert!(call["endedAt"].is_null(), "the end time is unknown: {call}");
    assert_no_success(&call.to_string());
}

#[track_caller]
fn assert_no_success(text: &str) {
    for success in SUCCESS_TEXTS {
        assert!(!text.contains(success), "`{success}` in {text}");
    }
}

#[tokio::test]
async fn the_api_reports_interrupted_calls() {
    let server = interrupt_calls("lost-api").await;
    let session = server.get("/api/v1/sessions/h-1").await.expect_success();
    assert_interrupted(&session["calls"][0], "outcome_unknown");
    assert_interrupted(&session["calls"][1], "not_started");
}

#[tokio::test]
async fn session_health_reports_interrupted_calls() {
    let server = interrupt_calls("lost-health").await;
    let health = server
        .get("/api/v1/sessions/h-1/health")
        .await
        .expect_success();
    let calls = &health["calls"];
    assert_eq!(
        (&calls["interrupted"], &calls["running"]),
        (&json!(2), &json!(0))
    );
    assert_interrupted(&calls["list"][0], "outcome_unknown");
    assert_interrupted(&calls["list"][1], "not_started");
}

#[tokio::test]
async fn the_command_line_reports_interrupted_calls() {
    let server = interrupt_calls("lost-terminal").await;
    for arguments in [
        vec!["session", "show", "h-1"],
        vec!["session", "show", "h-1", "--calls"],
    ] {
        let text = server.program().run_ok(&arguments);
        assert!(text.matches("killed").count() >= 2, "{text}");
        assert_no_success(&text);
    }
    let json = server
        .program()
        .run_ok(&["--json", "session", "show", "h-1"]);
    let session: Value = serde_json::from_str(&json).expect("valid JSON");
    assert_interrupted(&session["calls"][0], "outcome_unknown");
    assert_interrupted(&session["calls"][1], "not_started");
}

/// Formats a text as the pages do: escaped, and without backticks.
fn escape(text: &str) -> String {
    let escape = |character: char| match character {
        '`' => String::new(),
        '"' | '&' | '\'' | '<' | '>' => format!("&#{};", u32::from(character)),
        _ => character.to_string(),
    };
    text.chars().map(escape).collect()
}

#[tokio::test]
async fn the_session_page_reports_interrupted_calls() {
    let server = interrupt_calls("lost-page").await;
    let page = server.get("/sessions/h-1").await.text().to_owned();
    let session = server.get("/api/v1/sessions/h-1").await.expect_success();
    for call in session["calls"].as_array().expect("list of calls") {
        let synthetic = call["toldModel"].as_str().expect("value is a string");
        assert!(page.contains(&escape(synthetic)), "{synthetic}: {page}");
        let grounds = call["grounds"].as_str().expect("value is a string");
        assert!(page.contains(&escape(grounds)), "{grounds}: {page}");
    }
    let started_at = session["calls"][0]["startedAt"].as_str();
    let clock = "<time data-as=\"clock\" datetime=";
    let last_activity = format!("{clock}\"{}\"", started_at.expect("value is a string"));
    assert!(page.contains(&last_activity), "{last_activity}: {page}");
    assert_eq!(page.matches(clock).count(), 1, "only one call started");
    assert_eq!(page.matches("badge interrupted").count(), 2, "{page}");
    let main = page.split_once("<main").expect("page has content").1;
    assert_no_success(main);
}

/// The server finds the dead process and sends an event.
async fn streams_interruptions(setup: Program) {
    let (server, mut tool) = start_calls(setup).await;
    let mut events = EventStream::open(&server, None).await;
    tool.kill();
    loop {
        let event = events.next().await.expect("stream is open");
        assert_eq!(
            event,
            "event: session_changed\ndata: {\"sessionId\":\"h-1\"}"
        );
        // Events of the recorded calls can arrive before those of the interruptions.
        let session = server.get("/api/v1/sessions/h-1").await.expect_success();
        let calls = session["calls"].as_array().expect("list of calls");
        if calls.iter().all(|call| call["status"] == "interrupted") {
            assert_interrupted(&session["calls"][0], "outcome_unknown");
            assert_interrupted(&session["calls"][1], "not_started");
            return;
        }
    }
}

#[tokio::test]
async fn streams_an_event_when_calls_are_interrupted() {
    streams_interruptions(program("lost-events")).await;
}

#[tokio::test]
async fn streams_an_event_when_calls_are_interrupted_on_postgresql() {
    streams_interruptions(
        program("lost-events-postgres").with_database(Cluster::shared().database()),
    )
    .await;
}
