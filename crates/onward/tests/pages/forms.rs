//! Form actions: decide a review; release, fail or edit a step; resume or cancel a plan.

use std::time::Duration;

use onward_testbed::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::browser::{Browser, plan, text};
use crate::program;

async fn start(server: &Server, plan: &str) -> String {
    let next = format!("/api/v1/plans/{plan}/next");
    let started = server
        .post(&next, json!({ "sessionId": "s" }))
        .await
        .expect_success();
    text(&started, "stepId")
}

async fn status(server: &Server, plan: &str) -> Value {
    server
        .get(&format!("/api/v1/plans/{plan}"))
        .await
        .expect_success()
}

/// Time limit for the sweep.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Creates a plan with a stalled step.
async fn stalled_plan(server: &Server) -> (String, String) {
    let mut created = plan("Boats", &["Offers", "Write"]);
    created["stallThresholdMs"] = json!(1);
    let created = server.post("/api/v1/plans", created).await.expect_success();
    let id = text(&created, "planId");
    let step = start(server, &id).await;
    let marked = async {
        while status(server, &id).await["status"] != "stalled" {
            tokio::task::yield_now().await;
        }
    };
    let marked = tokio::time::timeout(TIMEOUT, marked).await;
    assert!(marked.is_ok(), "the sweep did not mark the plan");
    (id, step)
}

#[tokio::test]
async fn a_stall_is_at_the_top_and_its_step_can_be_released() {
    let server = program("pages-stall").serve();
    let (plan, step) = stalled_plan(&server).await;
    let browser = Browser::new(&server);
    let page = format!("/plans/{plan}");
    let response = browser.get(&page).await;
    response.assert_contains("Step 1: <bdi>Offers</bdi>");
    let (warning, name) = (
        response.html.find("id=\"stall-title\""),
        response.html.find("<h1>"),
    );
    assert!(warning.unwrap() < name.unwrap(), "the stall is at the top");
    let to = format!("{page}/steps/{step}/requeue");
    let redirect = browser.submit(&page, &to, &[]).await;
    assert_eq!(redirect.location, format!("{page}?done=requeued"));
    browser
        .get(&redirect.location)
        .await
        .assert_contains("class=\"flash\"");
    let now = status(&server, &plan).await;
    assert_eq!(now["status"], "executing");
    assert_eq!(now["counts"]["pending"], 2);
}

#[tokio::test]
async fn fails_a_stalled_step_with_a_reason() {
    let server = program("pages-fail").serve();
    let (plan, step) = stalled_plan(&server).await;
    let browser = Browser::new(&server);
    let page = format!("/plans/{plan}");
    let to = format!("{page}/steps/{step}/fail");
    let redirect = browser
        .submit(&page, &to, &[("reason", "out of reach")])
        .await;
    assert_eq!(redirect.location, format!("{page}?done=failed"));
    let response = browser.get(&format!("{page}/steps/{step}")).await;
    response.assert_contains("out of reach");
    assert_eq!(status(&server, &plan).await["counts"]["failed"], 1);
}

#[tokio::test]
async fn resumes_and_cancels_a_stalled_plan() {
    let server = program("pages-resume").serve();
    let (plan, _) = stalled_plan(&server).await;
    let browser = Browser::new(&server);
    let page = format!("/plans/{plan}");
    let to = format!("{page}/resume");
    let redirect = browser.submit(&page, &to, &[]).await;
    assert_eq!(redirect.status, StatusCode::SEE_OTHER, "{redirect:?}");
    // The sweep marks the plan again after its threshold, which is short.
    let audit = server.get(&format!("/api/v1/plans/{plan}/audit")).await;
    let events = audit.expect_success();
    let resumed = |event: &Value| event["eventType"] == "plan_resumed";
    assert!(
        events["events"].as_array().unwrap().iter().any(resumed),
        "{events}"
    );
    let to = format!("{page}/abandon");
    browser.submit(&page, &to, &[("reason", "no wind")]).await;
    let response = browser.get(&page).await;
    response.assert_contains("no wind");
    response.assert_contains(
        "<button disabled aria-describedby=\"modify-blocked\">Cancel plan…</button>",
    );
    let csrf_token = browser.get("/settings").await.csrf_token();
    let again = browser.post(&to, &[("csrf_token", &csrf_token)]).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    again.assert_contains("data-code=\"plan_is_terminal\"");
}

#[tokio::test]
async fn instructions_are_saved_verbatim() {
    let server = program("pages-instruct").serve();
    let created = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .expect_success();
    let page = format!(
        "/plans/{}/steps/{}",
        text(&created, "planId"),
        text(&created["firstStep"], "stepId")
    );
    let browser = Browser::new(&server);
    let fields = [("instructions", "One\r\n  two"), ("back", "step")];
    let redirect = browser
        .submit(&page, &format!("{page}/instruct"), &fields)
        .await;
    assert_eq!(redirect.location, format!("{page}?done=instructed"));
    browser.get(&page).await.assert_contains("One\n  two");
}

async fn plan_in_review(server: &Server) -> (String, String, Value) {
    let created = server
        .post("/api/v1/plans", plan("Boats", &["Offers", "Write"]))
        .await;
    let id = text(&created.expect_success(), "planId");
    let step = start(server, &id).await;
    let request = json!({ "summary": "Two remain.", "questions": ["Is red fine?"] });
    let at = format!("/api/v1/steps/{step}/review");
    let review = server.post(&at, request).await.expect_success();
    (id, step, review)
}

#[tokio::test]
async fn the_link_of_a_review_works_until_it_is_decided() {
    let server = program("pages-review").serve();
    let (plan, step, review) = plan_in_review(&server).await;
    let link = text(&review, "url");
    let path = link
        .strip_prefix(&server.url)
        .expect("link to this server")
        .to_owned();
    let browser = Browser::new(&server);
    for page in [path.as_str(), "/reviews"] {
        let response = browser.get(page).await;
        response.assert_contains("Two remain.");
        response.assert_contains("Is red fine?");
        response.assert_contains("Offers");
    }
    browser
        .get("/plans")
        .await
        .assert_contains("<span class=\"count\">1<");
    let to = format!("/reviews/{step}/decide");
    let redirect = browser.submit(&path, &to, &[("decision", "approve")]).await;
    assert_eq!(redirect.location, "/reviews?done=approve");
    browser
        .get(&redirect.location)
        .await
        .assert_contains("id=\"no-reviews\"");
    assert_eq!(browser.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(status(&server, &plan).await["counts"]["completed"], 1);
}

#[tokio::test]
async fn a_rejected_decision_keeps_the_form() {
    let server = program("pages-modify").serve();
    let (plan, step, _) = plan_in_review(&server).await;
    let browser = Browser::new(&server);
    let to = format!("/reviews/{step}/decide");
    let rejected = browser
        .submit("/reviews", &to, &[("decision", "modify")])
        .await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    rejected.assert_contains("role=\"alert\"");
    rejected.assert_contains("Two remain.");
    let fields = [("decision", "modify"), ("feedback", "Only red ones.")];
    let redirect = browser.submit("/reviews", &to, &fields).await;
    assert_eq!(redirect.location, "/reviews?done=modify");
    let page = format!("/plans/{plan}/steps/{step}");
    browser.get(&page).await.assert_contains("Only red ones.");
    assert_eq!(status(&server, &plan).await["status"], "executing");
}

#[tokio::test]
async fn a_rejected_review_fails_the_plan_and_a_skipped_one_does_not() {
    let server = program("pages-reject").serve();
    let browser = Browser::new(&server);
    for (decision, expected) in [("reject", "failed"), ("skip", "executing")] {
        let (plan, step, _) = plan_in_review(&server).await;
        let to = format!("/reviews/{step}/decide");
        browser
            .submit("/reviews", &to, &[("decision", decision)])
            .await;
        assert_eq!(status(&server, &plan).await["status"], expected);
    }
    let (_, step, _) = plan_in_review(&server).await;
    let to = format!("/reviews/{step}/decide");
    let response = browser
        .submit("/reviews", &to, &[("decision", "burn")])
        .await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_audit_trail_is_filtered_and_paginated() {
    let server = program("pages-audit").serve();
    let created = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .expect_success();
    let id = text(&created, "planId");
    let step = start(&server, &id).await;
    for _ in 0..60 {
        let at = format!("/api/v1/steps/{step}/progress");
        server
            .post(&at, json!({ "note": "rowing" }))
            .await
            .expect_success();
    }
    let browser = Browser::new(&server);
    let page = format!("/plans/{id}?tab=audit");
    let response = browser.get(&page).await;
    assert_eq!(
        response.html.matches("<summary>step_progressed").count(),
        50
    );
    let older = browser.get(&format!("{page}&from=12")).await;
    older.assert_contains("<summary>plan_modified");
    let started = browser.get(&format!("{page}&event=step_started")).await;
    assert_eq!(started.html.matches("<details id=\"event-").count(), 1);
    started.assert_lacks("<summary>step_progressed");
}
