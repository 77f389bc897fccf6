//! A call that was given up looks like a success nowhere: on every surface that shows it, it says first
//! that it was interrupted, then why, and that its result is not its own.

use onward_testbed::Cluster;
use serde_json::{Value, json};

use crate::events::Ear;
use crate::house::{House, Server};
use crate::sessions::Tool;

/// What would be read as a success.
const GOOD: [&str; 4] = ["completed", "succeeded", "success", "✓"];

/// One call that had begun and one that had not, of a process that lives.
async fn begun(house: House) -> (Server, Tool) {
    let tool = Tool::start();
    let server = house.serve();
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

/// Both of them, given up: their process is dead.
async fn interrupted(test: &str) -> Server {
    let (server, mut tool) = begun(House::new(test)).await;
    tool.kill();
    let recover = server.post("/api/v1/sessions/h-1/recover", json!({}));
    recover.await.done();
    server
}

#[track_caller]
fn is_interrupted(call: &Value, cause: &str) {
    assert_eq!(call["status"], "interrupted", "{call}");
    assert_eq!(call["cause"], cause, "{call}");
    assert_eq!(call["synthetic"], true, "{call}");
    assert_eq!(call["late"], false, "{call}");
    assert!(
        call["endedAt"].is_null(),
        "it ended at no time that is known: {call}"
    );
    looks_like_no_success(&call.to_string());
}

#[track_caller]
fn looks_like_no_success(text: &str) {
    for good in GOOD {
        assert!(!text.contains(good), "`{good}` in {text}");
    }
}

#[tokio::test]
async fn in_the_api_an_interrupted_call_is_no_success() {
    let server = interrupted("lost-api").await;
    let session = server.get("/api/v1/sessions/h-1").await.done();
    is_interrupted(&session["calls"][0], "outcome_unknown");
    is_interrupted(&session["calls"][1], "not_started");
}

#[tokio::test]
async fn in_the_health_of_a_session_an_interrupted_call_is_no_success() {
    let server = interrupted("lost-health").await;
    let health = server.get("/api/v1/sessions/h-1/health").await.done();
    let calls = &health["calls"];
    assert_eq!(
        (&calls["interrupted"], &calls["running"]),
        (&json!(2), &json!(0))
    );
    is_interrupted(&calls["list"][0], "outcome_unknown");
    is_interrupted(&calls["list"][1], "not_started");
}

#[tokio::test]
async fn at_the_terminal_an_interrupted_call_is_no_success() {
    let server = interrupted("lost-terminal").await;
    for arguments in [
        vec!["session", "show", "h-1"],
        vec!["session", "show", "h-1", "--calls"],
    ] {
        let text = server.house.prints(&arguments);
        for words in [
            "interrupted just now: it had begun, and nobody knows how far it came",
            "interrupted just now: it never began",
        ] {
            assert!(text.contains(words), "{text}");
        }
        looks_like_no_success(&text);
    }
    let json = server.house.prints(&["--json", "session", "show", "h-1"]);
    let session: Value = serde_json::from_str(&json).expect("JSON");
    is_interrupted(&session["calls"][0], "outcome_unknown");
    is_interrupted(&session["calls"][1], "not_started");
}

#[tokio::test]
async fn on_the_page_of_its_session_an_interrupted_call_is_no_success() {
    let server = interrupted("lost-page").await;
    let page = server.get("/sessions/h-1").await.text;
    for words in [
        "2 calls were interrupted",
        "it had begun, and nobody knows how far it came",
        "it never began",
        "the process is gone",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(page.matches("badge interrupted").count(), 2, "{page}");
    let main = page.split_once("<main").expect("a page").1;
    looks_like_no_success(main);
}

/// Whoever listens hears that calls were given up without asking.
async fn is_heard(house: House) {
    let (server, mut tool) = begun(house).await;
    let mut ear = Ear::open(&server, None).await;
    tool.kill();
    loop {
        let heard = ear.next().await.expect("it goes on");
        assert_eq!(
            heard,
            "event: session_changed\ndata: {\"sessionId\":\"h-1\"}"
        );
        // What was told of the time before is told again.
        let session = server.get("/api/v1/sessions/h-1").await.done();
        if session["calls"][0]["status"] != "running" {
            is_interrupted(&session["calls"][0], "outcome_unknown");
            is_interrupted(&session["calls"][1], "not_started");
            return;
        }
    }
}

#[tokio::test]
async fn the_event_stream_tells_that_calls_were_given_up() {
    is_heard(House::new("lost-events")).await;
}

#[tokio::test]
async fn the_event_stream_tells_that_calls_were_given_up_on_postgresql() {
    is_heard(House::new("lost-events-postgres").on(Cluster::shared().database())).await;
}
