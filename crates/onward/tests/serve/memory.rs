//! The memory of the server under concurrent worst-case requests of every route and role. With
//! `ONWARD_EVERY_ROUTE=1`, also 64 requests of the same route at the same time, which takes minutes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use onward_testbed::{Response, Server};
use reqwest::{Body, Method};
use serde_json::{Value, json};

use crate::program;
use crate::routes::{ROLES, samples};
use crate::world::Ids;

/// Requests at the same time.
const CONCURRENT: usize = 64;
/// The promise in docs/reliability.md.
pub(crate) const MAX_RSS_KIB: u64 = 300 * 1024;
const MIB: usize = 1024 * 1024;

const CONFIG: &str = "[access]\nrequire_tokens = true\n[limits]\n\
    token_calls_per_second = 100000\ntenant_calls_per_second = 100000\nrequest_seconds = 300";

/// The largest resident memory of a process so far.
pub(crate) fn peak_rss_kib(server: &Server) -> u64 {
    memory_kib(server, "VmHWM:")
}

/// The resident memory of a process.
pub(crate) fn rss_kib(server: &Server) -> u64 {
    memory_kib(server, "VmRSS:")
}

fn memory_kib(server: &Server, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id()));
    let status = status.expect("process runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let line = line.expect("the kernel reports the peak");
    let number = line.split_whitespace().next().expect("line has a number");
    number.parse().expect("number is valid")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("value is a string")
}

/// A plan with results, artifacts, outputs and a review of the largest size.
pub(crate) async fn create_large_plan(server: &Server, token: &str) -> (String, Vec<String>) {
    let post = async |path: &str, body: Value| -> Response {
        server.post_as(token, &format!("/api/v1{path}"), body).await
    };
    let step = json!({ "stepType": "search", "instructions": "i".repeat(100_000) });
    let plan = json!({ "name": "large", "researchQuestion": "q", "steps": vec![step; 4] });
    let plan = post("/plans", plan).await.expect_success();
    let plan = text(&plan["planId"]).to_owned();
    let mut steps = Vec::new();
    for index in 0..2 {
        let next = post(&format!("/plans/{plan}/next"), json!({})).await;
        let step = text(&next.expect_success()["stepId"]).to_owned();
        let result = if index % 2 == 0 {
            json!({ "text": "\u{1}".repeat(170_000) })
        } else {
            json!({ "rows": vec![json!({ "a": 0 }); 9_000] })
        };
        let result = json!({ "resultSummary": "s".repeat(20_000), "result": result });
        let submitted = post(&format!("/steps/{step}/result"), result).await;
        submitted.expect_success();
        steps.push(step);
    }
    let next = post(&format!("/plans/{plan}/next"), json!({})).await;
    let step = text(&next.expect_success()["stepId"]).to_owned();
    let questions = vec!["q".repeat(10_000); 50];
    let review = json!({ "summary": "s".repeat(20_000), "questions": questions });
    let review = post(&format!("/steps/{step}/review"), review).await;
    review.expect_success();
    steps.push(step);
    let content = "word *emphasis* [link](http://localhost) ".repeat(25_000);
    let artifact = json!({ "title": "t", "content": content, "planId": plan });
    post("/artifacts", artifact).await.expect_success();
    let output = json!({ "title": "t", "content": content });
    let output = post(&format!("/plans/{plan}/outputs"), output).await;
    output.expect_success();
    (plan, steps)
}

/// Bodies of up to this size: one long text, and as many values as are accepted.
fn bodies(max: usize) -> [String; 2] {
    let text = format!("{{\"x\":\"{}\"}}", "a".repeat(max - 10));
    let values = "{\"a\":0},".repeat((max - 20).min(300_000) / 8);
    [text, format!("{{\"x\":[{values}0]}}")]
}

/// A request that is sent with all roles.
pub(crate) struct WorstCase {
    method: Method,
    path: String,
    /// Shared, so that the test itself needs little memory.
    body: Option<Arc<[u8]>>,
    headers: Vec<(&'static str, String)>,
}

impl WorstCase {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: None,
            headers: Vec::new(),
        }
    }

    pub(crate) fn post(path: &str, body: &str) -> Self {
        Self {
            method: Method::POST,
            body: Some(body.as_bytes().into()),
            ..Self::get(path)
        }
    }

    /// A tool call over MCP without a session.
    pub(crate) fn mcp(tool: &str, arguments: &Value) -> Self {
        let key = |name: &str| format!("io.modelcontextprotocol/{name}");
        let meta = json!({
            key("protocolVersion"): "2026-07-28",
            key("clientCapabilities"): {},
            key("clientInfo"): { "name": "test", "version": "0" },
        });
        let call = json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments, "_meta": meta },
        });
        Self {
            headers: vec![
                ("mcp-protocol-version", "2026-07-28".to_owned()),
                ("mcp-method", "tools/call".to_owned()),
                ("mcp-name", tool.to_owned()),
            ],
            ..Self::post("/mcp", &call.to_string())
        }
    }

    /// Sends the request and reads the response in parts.
    pub(crate) async fn send(&self, server: &Server, token: Option<&str>) {
        let mut request = server.request(self.method.clone(), &self.path);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let mut request = request
            .timeout(Duration::from_secs(300))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream, text/html");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = self.body.clone() {
            let chunks = (0..body.len().div_ceil(MIB)).map(move |index| {
                let part = &body[index * MIB..body.len().min((index + 1) * MIB)];
                Ok::<_, std::io::Error>(part.to_vec())
            });
            request = request.body(Body::wrap_stream(stream::iter(chunks)));
        }
        // A rejected request may be closed before its body is sent.
        let Ok(mut response) = request.send().await else {
            return;
        };
        assert_ne!(response.status().as_u16(), 500, "{}", self.path);
        while let Ok(Some(_)) = response.chunk().await {}
    }
}

/// Sends requests, 64 of them at the same time. Returns the peak memory of the server.
async fn send_all(server: &Server, requests: Vec<(&WorstCase, &String)>) -> u64 {
    let requests = requests
        .into_iter()
        .map(|(case, token)| case.send(server, Some(token)));
    let mut responses = stream::iter(requests).buffer_unordered(CONCURRENT);
    while responses.next().await.is_some() {}
    peak_rss_kib(server)
}

#[tokio::test]
async fn memory_stays_bounded_under_concurrent_worst_case_requests() {
    let setup = program("memory").with_config(CONFIG);
    let tokens = ROLES.map(|role| setup.token("local", role, role));
    let server = setup.serve();
    let owner = &tokens[0];
    let (plan, steps) = create_large_plan(&server, owner).await;
    let mut cases = Vec::new();
    let mut ids = Ids::create(&server, Some(owner), "tides", 1).await;
    ids.plan.clone_from(&plan);
    ids.step.clone_from(&steps[0]);
    for sample in samples(&server, Some(owner), &ids).await {
        // The data must remain.
        if sample.method == Method::DELETE {
            continue;
        }
        if sample.body.is_none() {
            cases.push(WorstCase::get(sample.path));
            continue;
        }
        // One route of each size limit.
        let max = match sample.operation.as_str() {
            "create_research_plan" => 16 * MIB,
            "submit_step_result" => 4 * MIB,
            _ => 64 * 1024,
        };
        for body in bodies(max) {
            cases.push(WorstCase::post(&sample.path, &body));
        }
    }
    let audit = format!("/api/v1/plans/{plan}/audit?maxChars=40000");
    cases.push(WorstCase::get(audit));
    for tab in ["steps", "reviews", "artifacts", "outputs", "audit", "calls"] {
        cases.push(WorstCase::get(format!("/plans/{plan}?tab={tab}")));
    }
    for step in [&steps[0], &steps[1], &steps[2]] {
        cases.push(WorstCase::get(format!("/plans/{plan}/steps/{step}")));
        let context = format!("/api/v1/steps/{step}/context?maxChars=40000");
        cases.push(WorstCase::get(context));
    }
    for page in [
        "plans", "reviews", "sessions", "skills", "settings", "notices",
    ] {
        cases.push(WorstCase::get(format!("/{page}")));
    }
    cases.push(WorstCase::get("/library?q=word"));
    cases.push(WorstCase::get(format!("/plans/{plan}/export.json")));
    cases.push(WorstCase::get(format!("/plans/{plan}/export.md")));
    for body in bodies(4 * MIB) {
        cases.push(WorstCase::post("/mcp", &body));
    }
    // Every route with every role.
    let mut mixed = Vec::new();
    for token in &tokens {
        mixed.extend(cases.iter().map(|case| (case, token)));
    }
    let mut peak = send_all(&server, mixed).await;
    if std::env::var_os("ONWARD_EVERY_ROUTE").is_some() {
        for case in &cases {
            let requests = tokens.iter().cycle().take(CONCURRENT);
            let requests = requests.map(|token| (case, token)).collect();
            peak = send_all(&server, requests).await;
            println!("{peak:>7} KiB  {} {}", case.method, case.path);
        }
    }
    server.get("/readyz").await.expect_success();
    println!("{peak} KiB at the peak");
    assert!(peak < MAX_RSS_KIB, "{peak} KiB");
}
