//! Startup, readiness, unknown routes, shutdown and the request log.

use std::time::{Duration, Instant};

use onward_testbed::{Program, TIMEOUT, send};
use reqwest::Method;
use serde_json::json;

use crate::program;

#[tokio::test]
async fn prints_its_address_when_ready() {
    let server = program("ready").serve();
    assert_eq!(
        server.ready_line,
        format!("onward is listening on {}\n", server.url)
    );
    assert!(server.url.starts_with("http://127.0.0.1:"));
    assert!(!server.url.ends_with(":0"));
    assert_eq!(
        server.get("/healthz").await.expect_success(),
        json!({ "status": "ok" })
    );

    let server = program("ready-json").start(&["--json", "serve", "--bind", "127.0.0.1:0"]);
    let line: serde_json::Value = serde_json::from_str(&server.ready_line).expect("valid JSON");
    assert_eq!(line, json!({ "url": server.url }));
}

#[tokio::test]
async fn the_status_shows_the_port_of_a_running_server() {
    let server = program("serving").serve();
    let plan = json!({
        "name": "Tides", "researchQuestion": "Why?",
        "steps": [{ "stepType": "search", "instructions": "Find sources." }],
    });
    server.post("/api/v1/plans", plan).await.expect_success();
    let (_, port) = server.url.rsplit_once(':').expect("address has a port");
    let serving = format!("serving on :{port}\n");
    for arguments in [&[][..], &["status"]] {
        let output = server.program().run_ok(arguments);
        assert!(output.contains(&serving), "{output}");
    }
    let program = server.kill();
    let output = program.run_ok(&["status"]);
    assert!(!output.contains("serving"), "{output}");
}

#[tokio::test]
async fn the_bind_flag_overrides_the_configuration() {
    let server = program("bind")
        .with_config("[serve]\nbind = \"192.0.2.1:1\"")
        .serve();
    assert!(server.get("/readyz").await.status.is_success());
    let server = program("bind-configured")
        .with_config("[serve]\nbind = \"127.0.0.1:0\"")
        .start(&["serve"]);
    assert!(server.get("/readyz").await.status.is_success());
}

#[tokio::test]
async fn rejects_addresses_that_are_in_use_or_invalid() {
    let server = program("in-use").serve();
    let in_use = server.url.trim_start_matches("http://");
    let output = server.program().run(&["serve", "--bind", in_use]);
    assert_eq!(output.code, Some(1));
    let stderr = output.stderr;
    let (_, port) = in_use.split_once(':').expect("address has a port");
    assert!(stderr.contains(port), "{stderr}");
    for invalid in ["7171", "localhost", "host:1", "127.0.0.1:99999"] {
        let output = server.program().run(&["serve", "--bind", invalid]);
        assert_eq!(output.code, Some(2), "{invalid}");
    }
}

#[tokio::test]
async fn unknown_paths_return_the_available_prefixes() {
    let server = program("unknown-paths").serve();
    for path in [
        "/nowhere",
        "/api",
        "/api/v2/plans",
        "/api/v1/plan",
        "/mcp/x",
    ] {
        let problem = server.get(path).await.expect_problem(404, "invalid_input");
        let hint = problem["hint"].as_str().expect("value is a string");
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
    let put = send(server.request(Method::PUT, "/api/v1/plans")).await;
    put.expect_problem(405, "invalid_input");
}

#[tokio::test]
async fn exits_cleanly_on_sigterm_and_sigint() {
    for signal in ["-TERM", "-INT"] {
        let mut server = program(&format!("signal{signal}")).serve();
        let created = server.post("/api/v1/plans", plan()).await.expect_success();
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        assert_eq!(server.log(), "", "a clean shutdown logs nothing");
        let id = created["planId"].as_str().expect("id is a string");
        let plan = server.program().run_ok(&["--json", "plan", "show", id]);
        assert!(plan.contains(id));
        // The request log is written after the response, and flushed on shutdown.
        let requests = logged_requests(server.program());
        let tools: Vec<&str> = requests.iter().map(|(tool, _)| tool.as_str()).collect();
        assert_eq!(tools, ["create_research_plan"]);
    }
}

#[tokio::test]
async fn a_created_token_is_not_in_the_request_log() {
    let mut server = program("request-log").serve();
    let request = json!({ "name": "ci", "role": "agent" });
    let created = server
        .post("/api/v1/tokens", request)
        .await
        .expect_success();
    let token = created["token"].as_str().expect("token returned");
    assert_eq!(
        server.get_as(token, "/api/v1/plans").await.status.as_u16(),
        200
    );
    server.get("/api/v1/tokens").await.expect_success();
    server.signal("-TERM");
    assert_eq!(server.wait().code(), Some(0));
    let requests = logged_requests(server.program());
    assert_eq!(requests.len(), 2, "{requests:?}");
    assert!(
        requests.iter().all(|(_, content)| !content.contains(token)),
        "{requests:?}"
    );
}

/// The tool name and content of each logged request.
fn logged_requests(setup: &Program) -> Vec<(String, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let file = setup.dir.join("onward.db");
    let read = std::thread::spawn(move || {
        runtime.expect("runtime started").block_on(async {
            let address = onward_engine::Address::File(file);
            let engine = onward_engine::Engine::open(&address, Default::default());
            let engine = engine.await.expect("database opened");
            let caller = onward_engine::Caller::local("test");
            let requests = engine.logged_requests(&caller, None, 100).await;
            engine.close().await;
            requests
                .expect("log read")
                .into_iter()
                .map(|request| {
                    let content = format!("{} {}", request.request, request.response);
                    (request.tool, content)
                })
                .collect()
        })
    });
    read.join().expect("log read")
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
async fn readiness_follows_the_database() {
    let cluster = onward_testbed::Cluster::start();
    let server = program("database-outage")
        .with_database(cluster.database())
        .serve();
    assert_eq!(
        server.get("/readyz").await.expect_success(),
        json!({ "status": "ready" })
    );
    cluster.stop();
    server
        .get("/readyz")
        .await
        .expect_problem(503, "unavailable");
    assert!(
        server.get("/healthz").await.status.is_success(),
        "the process is alive"
    );
    server
        .get("/api/v1/plans")
        .await
        .expect_problem(503, "unavailable");
    cluster.restart();
    let deadline = Instant::now() + TIMEOUT;
    while !server.get("/readyz").await.status.is_success() {
        assert!(Instant::now() < deadline, "the server did not reconnect");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
