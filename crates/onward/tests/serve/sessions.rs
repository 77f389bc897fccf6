//! A harness of one's own tells of its calls over HTTP, and dies in the middle of one.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use onward_testbed::Cluster;
use serde_json::{Value, json};

use crate::events::Ear;
use crate::house::{House, Server};

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that runs a tool for as long as nobody kills it.
pub(crate) struct Tool(Child);

impl Tool {
    pub(crate) fn start() -> Self {
        let child = Command::new("sleep").arg("600").spawn();
        Self(child.expect("a process can be started"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// SIGKILL: it cannot say goodbye.
    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it is dead");
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        // It may be dead already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

async fn record(server: &Server, call: Value) -> Value {
    let recorded = server.post("/api/v1/sessions/h-1/calls", call).await;
    assert_eq!(recorded.status.as_u16(), 201, "{recorded:?}");
    recorded.json()
}

async fn calls(server: &Server) -> Vec<Value> {
    let session = server.get("/api/v1/sessions/h-1").await.done();
    session["calls"].as_array().expect("a list").clone()
}

/// The calls, once none of them is open any more.
async fn settled(server: &Server) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let calls = calls(server).await;
        if calls.iter().all(|call| call["ageMs"].is_null()) {
            return calls;
        }
        assert!(began.elapsed() < PATIENCE, "{calls:?}");
    }
}

#[tokio::test]
async fn a_harness_tells_of_its_calls_and_others_hear_of_them() {
    let server = House::new("harness").serve();
    let mut ear = Ear::open(&server, None).await;
    let call = json!({
        "tool": "Bash", "callId": "c1", "input": { "command": "TOKEN=sesame make" },
        "timeoutMs": 1000, "batch": 3,
    });
    let call = record(&server, call).await;
    assert_eq!(
        ear.next().await.as_deref(),
        Some("event: session_changed\ndata: {\"sessionId\":\"h-1\"}")
    );
    assert_eq!(call["status"], "requested");
    assert_eq!((&call["turn"], &call["position"]), (&json!(1), &json!(1)));
    assert_eq!(call["input"], "TOKEN=[secret] make");
    let at = "/api/v1/sessions/h-1/calls/1/1";
    let runs = server.post(at, json!({ "change": "start" })).await.done();
    assert_eq!(runs["status"], "running");
    assert!(runs["staleAt"].is_string(), "{runs}");
    assert!(
        ear.next()
            .await
            .is_some_and(|told| told.contains("session_changed"))
    );
    let health = server.get("/api/v1/sessions/h-1/health").await.done();
    assert_eq!(health["calls"]["running"], 1);
    assert_eq!(health["calls"]["list"][0]["tool"], "Bash");
    let ended = json!({ "change": "complete", "result": "made" });
    let ended = server.post(at, ended).await.done();
    assert_eq!(
        (&ended["result"], &ended["synthetic"]),
        (&json!("made"), &json!(false))
    );
    let again = server.post(at, json!({ "change": "fail" })).await;
    again.refused(409, "illegal_transition");
    let list = server.get("/api/v1/sessions?limit=5").await.done();
    assert_eq!(list["sessions"][0]["sessionId"], "h-1");
}

#[tokio::test]
async fn what_does_not_fit_a_call_is_said() {
    let server = House::new("misfits").serve();
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
        let problem = server.post(at, call).await.refused(400, "invalid_input");
        assert_eq!(problem["details"]["issues"][0]["path"], path, "{problem}");
    }
    for lost in ["", "/health"] {
        let lost = server.get(&format!("/api/v1/sessions/nobody{lost}")).await;
        lost.refused(404, "invalid_input");
    }
    record(&server, json!({ "tool": "a" })).await;
    let lost = server
        .post(&format!("{at}/1/7"), json!({ "change": "start" }))
        .await;
    lost.refused(404, "invalid_input");
    let odd = server
        .post(
            &format!("{at}/1/1"),
            json!({ "change": "start", "result": "x" }),
        )
        .await;
    odd.refused(400, "invalid_input");
}

/// A tool's process is killed while nobody watches; Onward starts again and finds out.
async fn killed(test: &str, database: String) {
    let mut tool = Tool::start();
    let server = House::new(test).on(database.clone()).serve();
    let owner = json!({ "processId": tool.0.id() });
    for (batch, status) in [(1, "running"), (1, "requested"), (1, "awaiting_approval")] {
        let call = json!({
            "tool": "Bash", "callId": "same", "batch": batch, "status": status, "owner": owner,
            "timeoutMs": 3_600_000,
        });
        record(&server, call).await;
    }
    drop(server);
    tool.kill();
    let server = House::new(&format!("{test}-again")).on(database).serve();
    let calls = settled(&server).await;
    let told = |call: &Value| {
        let text = |field: &str| call[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("cause"), call["synthetic"] == true)
    };
    let lost = |cause: &str| ("interrupted".to_owned(), cause.to_owned(), true);
    let all: Vec<_> = calls.iter().map(told).collect();
    assert_eq!(
        all,
        [
            lost("outcome_unknown"),
            lost("not_started"),
            lost("not_started")
        ]
    );
    let model = calls[0]["toldModel"].as_str().expect("a text");
    assert!(model.contains("Check what it did"), "{model}");
    let grounds = calls[0]["grounds"].as_str().expect("a text");
    assert!(grounds.contains("the process is gone"), "{grounds}");
    // It answers after all: kept, shown, and no second answer.
    let at = "/api/v1/sessions/h-1/calls/1/1";
    let late = json!({ "change": "complete", "result": "deployed" });
    let late = server.post(at, late.clone()).await.done();
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
    again.refused(409, "illegal_transition");
}

#[tokio::test]
async fn a_killed_tool_is_found_when_onward_starts_on_a_file() {
    let folder = format!("onward-killed-{}", std::process::id());
    let folder: PathBuf = std::env::temp_dir().join(folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let file = folder.join("onward.db").display().to_string();
    killed("killed", file).await;
    drop(std::fs::remove_dir_all(&folder));
}

#[tokio::test]
async fn a_killed_tool_is_found_when_onward_starts_on_postgresql() {
    killed("killed-postgres", Cluster::shared().database()).await;
}

#[tokio::test]
async fn a_tool_that_dies_under_a_running_server_is_found_without_being_asked() {
    let mut tool = Tool::start();
    let server = House::new("dies").serve();
    let owner = json!({ "processId": tool.0.id() });
    record(
        &server,
        json!({ "tool": "Task", "status": "running", "owner": owner }),
    )
    .await;
    let nothing = server
        .post("/api/v1/sessions/h-1/recover", json!({}))
        .await
        .done();
    assert_eq!(
        nothing["interrupted"],
        json!([]),
        "it lives, and has no clock"
    );
    tool.kill();
    assert_eq!(settled(&server).await[0]["cause"], "outcome_unknown");
}

#[tokio::test]
async fn closing_a_call_is_for_people() {
    let house = House::new("closes").configured("[access]\nrequire_tokens = true");
    let agent = house.token("local", "agent", "agent");
    let member = house.token("local", "member", "member");
    let server = house.serve();
    let call = json!({ "tool": "a", "status": "running" });
    let at = "/api/v1/sessions/h-1/calls";
    server.post_as(&agent, at, call).await.done();
    let close = format!("{at}/1/1/close");
    let refused = server.post_as(&agent, &close, json!({})).await;
    refused.refused(403, "forbidden");
    let closed = server.post_as(&member, &close, json!({})).await.done();
    assert_eq!(closed["status"], "interrupted");
    let grounds = closed["grounds"].as_str().expect("a text");
    assert!(
        grounds.starts_with("closed by hand by `token:member`"),
        "{grounds}"
    );
}
