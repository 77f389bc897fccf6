//! `POST /api/v1/plans/{planId}/next` with `waitMs`: 1,000 waiting callers, disconnects and limits.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use onward_testbed::{Response, Server, TIMEOUT, send};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::memory::rss_kib;
use crate::program;

const LONG: u32 = 60_000;
/// The cost of a waiting caller, in KiB.
const MAX_KIB_PER_CALLER: u64 = 30;

/// A plan whose other steps depend on the first, which is claimed. Returns the ids of the plan and
/// of the claimed step.
async fn started_plan(server: &Server, steps: usize) -> (String, String) {
    let step = |order| {
        let depends_on: Vec<u32> = if order == 1 { vec![] } else { vec![1] };
        json!({ "stepType": "search", "instructions": "i", "dependsOn": depends_on })
    };
    let steps: Vec<Value> = (1..=steps).map(step).collect();
    let plan = json!({ "name": "p", "researchQuestion": "q", "steps": steps });
    let plan = server.post("/api/v1/plans", plan).await.expect_success();
    let plan = plan["planId"].as_str().expect("plan id").to_owned();
    let next = next(server, &plan, 0).await.expect_success();
    (plan, next["stepId"].as_str().expect("step id").to_owned())
}

async fn next(server: &Server, plan: &str, wait_ms: u32) -> Response {
    let path = format!("/api/v1/plans/{plan}/next");
    let request = server.request(Method::POST, &path);
    let request = request.timeout(2 * TIMEOUT);
    send(request.json(&json!({ "waitMs": wait_ms }))).await
}

async fn submit(server: &Server, step: &str) {
    let result = json!({ "resultSummary": "done" });
    let path = format!("/api/v1/steps/{step}/result");
    server.post(&path, result).await.expect_success();
}

/// Waits until this many callers wait.
async fn waiting(server: &Server, callers: usize) {
    let expected = format!("onward_open_streams {callers}");
    let count = async {
        loop {
            let metrics = server.get("/metrics").await;
            if metrics.text().lines().any(|line| line == expected) {
                return;
            }
            // Rendering the metrics is as expensive as many of the calls that they count.
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    };
    let counted = tokio::time::timeout(6 * TIMEOUT, count).await;
    counted.expect("callers wait");
}

#[tokio::test]
async fn a_waiting_request_returns_the_step_and_outlasts_the_request_timeout() {
    let server = program("waiting")
        .with_config("[limits]\nrequest_seconds = 1")
        .serve();
    let (plan, step) = started_plan(&server, 2).await;
    let timed_out = next(&server, &plan, 1_500).await.expect_success();
    assert_eq!(timed_out["status"], "no_pending_steps");
    let (next, ()) = tokio::join!(next(&server, &plan, LONG), async {
        waiting(&server, 1).await;
        submit(&server, &step).await;
    });
    let next = next.expect_success();
    assert_eq!(next["status"], "step_started", "{next}");
}

#[tokio::test]
async fn a_caller_that_disconnects_claims_no_step() {
    let server = program("disconnects").serve();
    let (plan, step) = started_plan(&server, 2).await;
    tokio::select! {
        response = next(&server, &plan, LONG) => panic!("{}", response.text()),
        () = waiting(&server, 1) => {}
    }
    waiting(&server, 0).await;
    submit(&server, &step).await;
    let next = next(&server, &plan, 0).await.expect_success();
    assert_eq!(next["status"], "step_started", "{next}");
}

#[tokio::test]
async fn a_caller_beyond_the_limit_of_streams_gets_the_reason_immediately() {
    let server = program("too-many-waits")
        .with_config("[limits]\nstreams = 1")
        .serve();
    let (plan, step) = started_plan(&server, 3).await;
    let (waited, ()) = tokio::join!(next(&server, &plan, LONG), async {
        waiting(&server, 1).await;
        let rejected = next(&server, &plan, LONG).await.expect_success();
        assert_eq!(rejected["status"], "no_pending_steps");
        submit(&server, &step).await;
    });
    assert_eq!(waited.expect_success()["status"], "step_started");
}

#[tokio::test]
async fn shutdown_answers_waiting_callers() {
    let server = program("waiting-shutdown").serve();
    let (plan, _) = started_plan(&server, 2).await;
    let (waited, ()) = tokio::join!(next(&server, &plan, LONG), async {
        waiting(&server, 1).await;
        server.signal("-TERM");
    });
    assert_eq!(waited.expect_success()["status"], "no_pending_steps");
}

/// More callers than the limit of concurrent requests.
#[tokio::test]
async fn a_thousand_waiting_callers_need_less_than_30_mib() {
    let config = "[limits]\ntoken_calls_per_second = 100000\ntenant_calls_per_second = 100000";
    let server = program("thousand-waits")
        .on_postgres()
        .with_config(config)
        .serve();
    let mut plans = Vec::new();
    for _ in 0..10 {
        plans.push(started_plan(&server, 101).await);
    }
    // The pools and caches of the server have their size before the measurement.
    for (plan, _) in &plans {
        join_all((0..100).map(|_| next(&server, plan, 1))).await;
    }
    let before = rss_kib(&server);
    let server = Arc::new(server);
    let mut callers = JoinSet::new();
    // One plan after the other: the first attempts count as concurrent requests.
    for (index, (plan, _)) in plans.iter().enumerate() {
        for _ in 0..100 {
            let (server, plan) = (Arc::clone(&server), plan.clone());
            // On a slow machine, the first callers wait again before the last ones wait.
            callers.spawn(async move {
                loop {
                    let response = next(&server, &plan, LONG).await;
                    if !response.text().contains("no_pending_steps") {
                        return response;
                    }
                }
            });
        }
        waiting(&server, (index + 1) * 100).await;
    }
    let cost = rss_kib(&server).saturating_sub(before);
    for (_, step) in &plans {
        submit(&server, step).await;
    }
    let responses = callers.join_all().await;
    println!("1,000 waiting callers: {cost} KiB");
    assert!(cost < 1_000 * MAX_KIB_PER_CALLER, "{cost} KiB");
    // Every caller gets a step, although each change wakes one caller of its plan.
    for response in responses {
        let next = response.expect_success();
        assert_eq!(next["status"], "step_started", "{next}");
    }
}
