//! The memory of a server when kinds of worst-case requests follow each other, with requests that
//! time out in between.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use onward_testbed::{Server, TIMEOUT};
use serde_json::{Value, json};

use crate::memory::{MAX_RSS_KIB, WorstCase, peak_rss_kib, rss_kib};
use crate::program;

/// Results of the largest size.
const RESULTS: usize = 24;
/// Requests at the same time.
const CONCURRENT: usize = 64;
/// Requests of the largest size.
const LARGE: usize = 8;

fn text(value: &Value) -> &str {
    value.as_str().expect("value is a string")
}

/// A plan with results, reports and evidence of the largest size. Returns it with one of its steps.
async fn create_plan(server: &Server) -> (String, String) {
    let post = async |path: &str, body: Value| {
        let response = server.post(&format!("/api/v1{path}"), body).await;
        response.expect_success()
    };
    let step = json!({
        "stepType": "search", "instructions": "i".repeat(1_000), "acceptanceCriteria": ["c"],
    });
    let plan = json!({
        "name": "large", "researchQuestion": "q", "steps": vec![step; RESULTS + 1],
    });
    let plan = text(&post("/plans", plan).await["planId"]).to_owned();
    let next = format!("/plans/{plan}/next");
    let evidence = json!({
        "criterion": "1", "kind": "note", "value": "e".repeat(4_000), "outcome": "o".repeat(4_000),
    });
    for _ in 0..RESULTS {
        let step = text(&post(&next, json!({})).await["stepId"]).to_owned();
        let result = json!({
            "resultSummary": "s".repeat(20_000),
            "result": { "text": "\u{1}".repeat(170_000) },
            "evidence": vec![evidence.clone(); 100],
        });
        post(&format!("/steps/{step}/result"), result).await;
    }
    let step = text(&post(&next, json!({})).await["stepId"]).to_owned();
    (plan, step)
}

/// A request with this many megabytes of instructions.
fn large_body(fields: Value, mib: usize) -> String {
    let step = json!({ "stepType": "search", "instructions": "i".repeat(100_000) });
    let mut body = fields;
    body["steps"] = json!(vec![step; mib * 10]);
    body.to_string()
}

#[tokio::test]
#[ignore = "takes two to four minutes"]
async fn memory_stays_bounded_when_kinds_of_requests_follow_each_other() {
    // Exports of the plan take longer.
    let config = "[limits]\nrequest_seconds = 4\n\
        token_calls_per_second = 100000\ntenant_calls_per_second = 100000";
    let server = program("memory-sequence").with_config(config).serve();
    let (plan, step) = create_plan(&server).await;
    let api = |path: &str| WorstCase::get(format!("/api/v1{path}"));
    let page = |path: &str| WorstCase::get(format!("/plans/{plan}{path}"));
    let context = json!({ "stepId": step, "maxChars": 40_000 });
    let add = json!({ "action": "add_steps" });
    let new = json!({ "name": "n", "researchQuestion": "q" });
    let sequence = [
        (
            "audit",
            CONCURRENT,
            api(&format!("/plans/{plan}/audit?maxChars=40000")),
        ),
        (
            "context",
            CONCURRENT,
            api(&format!("/steps/{step}/context?maxChars=40000")),
        ),
        ("page", CONCURRENT, page("")),
        ("step", CONCURRENT, page(&format!("/steps/{step}"))),
        ("search", CONCURRENT, api("/search?query=eeee")),
        (
            "MCP context",
            CONCURRENT,
            WorstCase::mcp("get_step_context", &context),
        ),
        ("export", CONCURRENT, api(&format!("/plans/{plan}/export"))),
        ("Markdown", CONCURRENT, page("/export.md")),
        (
            "add steps",
            LARGE,
            WorstCase::post(
                &format!("/api/v1/plans/{plan}/modify"),
                &large_body(add, 15),
            ),
        ),
        (
            "plans",
            LARGE,
            WorstCase::post("/api/v1/plans", &large_body(new, 15)),
        ),
    ];
    for (name, requests, case) in &sequence {
        let requests = (0..*requests).map(|_| case.send(&server, None));
        let mut responses = stream::iter(requests).buffer_unordered(CONCURRENT);
        while responses.next().await.is_some() {}
        let (now, peak) = (rss_kib(&server), peak_rss_kib(&server));
        println!("{name:>12}: {now:>7} KiB, {peak:>7} KiB at the peak");
    }
    // Writes of requests that have timed out may still be running.
    let deadline = Instant::now() + TIMEOUT;
    while server.get("/readyz").await.status.as_u16() != 200 {
        assert!(Instant::now() < deadline, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let peak = peak_rss_kib(&server);
    assert!(peak < MAX_RSS_KIB, "{peak} KiB");
}
