//! How it starts, what it says about itself, and how it ends.

use reqwest::Method;
use serde_json::json;

use crate::house::{House, send};

#[tokio::test]
async fn it_prints_one_line_with_its_address_when_it_is_ready() {
    let server = House::new("ready").serve();
    assert_eq!(
        server.line,
        format!("onward is listening on {}\n", server.url)
    );
    assert!(server.url.starts_with("http://127.0.0.1:"));
    assert!(!server.url.ends_with(":0"));
    assert_eq!(
        server.get("/healthz").await.done(),
        json!({ "status": "ok" })
    );

    let server = House::new("ready-json").serve_with(&["--json", "serve", "--bind", "127.0.0.1:0"]);
    let line: serde_json::Value = serde_json::from_str(&server.line).expect("JSON");
    assert_eq!(line, json!({ "url": server.url }));
}

#[tokio::test]
async fn the_configuration_says_where_and_the_flag_counts_more() {
    let server = House::new("bind")
        .configured("[serve]\nbind = \"192.0.2.1:1\"")
        .serve();
    assert!(server.get("/readyz").await.status.is_success());
    let server = House::new("bind-configured")
        .configured("[serve]\nbind = \"127.0.0.1:0\"")
        .serve_with(&["serve"]);
    assert!(server.get("/readyz").await.status.is_success());
}

#[tokio::test]
async fn an_address_that_is_taken_or_none_is_refused() {
    let server = House::new("taken").serve();
    let taken = server.url.trim_start_matches("http://");
    let output = server.house.run(&["serve", "--bind", taken]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("hint: choose another one with `--bind`"),
        "{told}"
    );
    for wrong in ["7171", "localhost", "host:1", "127.0.0.1:99999"] {
        let output = server.house.run(&["serve", "--bind", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

#[tokio::test]
async fn where_there_is_nothing_it_names_what_there_is() {
    let server = House::new("nowhere").serve();
    for path in [
        "/nowhere",
        "/api",
        "/api/v2/plans",
        "/api/v1/plan",
        "/mcp/x",
    ] {
        let problem = server.get(path).await.refused(404, "invalid_input");
        let hint = problem["hint"].as_str().expect("a text");
        assert!(
            hint.contains("`/mcp`") && hint.contains("`/api/v1`"),
            "{hint}"
        );
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|text| text.contains(path))
        );
    }
    let put = send(server.ask(Method::PUT, "/api/v1/plans")).await;
    put.refused(405, "invalid_input");
}

#[tokio::test]
async fn both_signals_end_it_well() {
    for signal in ["-TERM", "-INT"] {
        let mut server = House::new(&format!("signal{signal}")).serve();
        let made = server.post("/api/v1/plans", plan()).await.done();
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(0), "{}", server.house.told());
        assert_eq!(server.house.told(), "", "a good end is quiet");
        let id = made["planId"].as_str().expect("an id");
        let shown = server.house.prints(&["--json", "plan", "show", id]);
        assert!(shown.contains(id));
        // What was called is in the log of calls, which is written after the answers.
        let log = rows(&server.house);
        assert_eq!(log, ["create_research_plan"], "the log is flushed");
    }
}

/// The tools that were called, as the database remembers them.
fn rows(house: &House) -> Vec<String> {
    calls(house).into_iter().map(|(tool, _)| tool).collect()
}

#[tokio::test]
async fn a_token_is_in_its_answer_and_not_in_the_log_of_calls() {
    let mut server = House::new("log-of-calls").serve();
    let asked = json!({ "name": "ci", "role": "agent" });
    let made = server.post("/api/v1/tokens", asked).await.done();
    let token = made["token"].as_str().expect("a token");
    assert_eq!(
        server.get_as(token, "/api/v1/plans").await.status.as_u16(),
        200
    );
    server.get("/api/v1/tokens").await.done();
    server.signal("-TERM");
    assert_eq!(server.ended().code(), Some(0));
    let calls = calls(&server.house);
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(
        calls.iter().all(|(_, said)| !said.contains(token)),
        "{calls:?}"
    );
}

/// The calls with what was said, as the database remembers them.
fn calls(house: &House) -> Vec<(String, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let folder = house.folder.clone();
    let read = std::thread::spawn(move || {
        runtime.expect("a runtime").block_on(async {
            let address = onward_engine::Address::File(folder.join("onward.db"));
            let engine = onward_engine::Engine::open(&address, Default::default());
            let engine = engine.await.expect("it opens");
            let caller = onward_engine::Caller::local("test");
            let calls = engine.calls(&caller, 100).await.expect("it reads");
            engine.close().await;
            calls
                .into_iter()
                .map(|call| (call.tool, format!("{} {}", call.request, call.response)))
                .collect()
        })
    });
    read.join().expect("it reads")
}

pub(crate) fn plan() -> serde_json::Value {
    json!({
        "name": "Tides",
        "researchQuestion": "Why are there two a day?",
        "steps": [
            { "stepType": "search", "instructions": "Find three sources." },
            { "stepType": "synthesize", "instructions": "Write the answer." },
        ],
    })
}

#[tokio::test]
async fn a_database_that_goes_away_is_not_ready_and_comes_back() {
    let cluster = onward_testbed::Cluster::start();
    let server = House::new("away").on(cluster.database()).serve();
    assert_eq!(
        server.get("/readyz").await.done(),
        json!({ "status": "ready" })
    );
    cluster.stop();
    server.get("/readyz").await.refused(503, "unavailable");
    assert!(
        server.get("/healthz").await.status.is_success(),
        "the process lives"
    );
    server
        .get("/api/v1/plans")
        .await
        .refused(503, "unavailable");
    cluster.restart();
    let back = server.get("/readyz").await;
    assert_eq!(back.done(), json!({ "status": "ready" }));
}
