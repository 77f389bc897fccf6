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
    response.assert_contains("class=\"verdict stuck\"");
    let (verdict, steps) = (
        response.html.find("id=\"verdict\""),
        response.html.find("id=\"tabs\""),
    );
    assert!(
        verdict.unwrap() < steps.unwrap(),
        "the verdict is at the top"
    );
    let step_page = browser.get(&format!("{page}/steps/{step}")).await;
    step_page.assert_contains("badge stuck");
    let to = format!("{page}/release");
    let redirect = browser.submit(&page, &to, &[]).await;
    assert_eq!(redirect.location, format!("{page}?done=released&steps=1"));
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
    let to = format!("{page}/fail");
    let redirect = browser
        .submit(&page, &to, &[("reason", "out of reach")])
        .await;
    assert_eq!(
        redirect.location,
        format!("{page}?done=step_failed&steps=1")
    );
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
    let about = format!("{page}?tab=about");
    browser.submit(&about, &to, &[("reason", "no wind")]).await;
    let response = browser.get(&about).await;
    response.assert_contains("no wind");
    response.assert_contains("class=\"verdict cancelled\"");
    response.assert_contains(
        "<button disabled aria-describedby=\"cancel-blocked\">Cancel plan…</button>",
    );
    let csrf_token = browser.get("/settings/access").await.csrf_token();
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
    assert_eq!(redirect.location, format!("{page}?done=edited&steps=1"));
    browser.get(&page).await.assert_contains("One\n  two");
}

#[tokio::test]
async fn the_form_of_a_pending_step_changes_its_definition() {
    let server = program("pages-edit").serve();
    let created = server
        .post("/api/v1/plans", plan("Boats", &["Offers", "Write"]))
        .await
        .expect_success();
    let page = format!(
        "/plans/{}/steps/{}",
        text(&created, "planId"),
        text(&created["firstStep"], "stepId")
    );
    let browser = Browser::new(&server);
    let fields = [
        ("instructions", "Look"),
        ("title", "Sources"),
        ("stepType", "search"),
        ("dependsOn", "2"),
        ("stallMinutes", "1.5"),
        ("acceptanceCriteria", "One.\r\nTwo."),
        ("reviewBy", "person"),
        ("resultSchema", "{\"type\": \"object\"}"),
        ("back", "step"),
    ];
    let to = format!("{page}/instruct");
    let redirect = browser.submit(&page, &to, &fields).await;
    assert_eq!(redirect.location, format!("{page}?done=edited&steps=1"));
    let response = browser.get(&page).await;
    for value in [
        "name=\"title\" maxlength=\"200\" value=\"Sources\"",
        "name=\"dependsOn\" value=\"2\"",
        "value=\"1.5\"",
        "One.\nTwo.",
        "<option value=\"person\" selected>",
    ] {
        response.assert_contains(value);
    }
    let cycle = [
        ("stepType", "search"),
        ("instructions", "Look"),
        ("dependsOn", "1"),
    ];
    let rejected = browser.submit(&page, &to, &cycle).await;
    rejected.assert_contains("data-code=\"invalid_dependency\"");
}

#[tokio::test]
async fn a_plan_gets_a_project_labels_and_a_priority() {
    let server = program("pages-edit-plan").serve();
    let mut ids = Vec::new();
    for name in ["Boats", "Trains"] {
        let created = server.post("/api/v1/plans", plan(name, &["Offers"])).await;
        ids.push(text(&created.expect_success(), "planId"));
    }
    let browser = Browser::new(&server);
    let page = format!("/plans/{}?tab=about", ids[0]);
    let fields = [
        ("projectKey", "travel"),
        ("labels", "urgent, web"),
        ("priority", "8"),
    ];
    let to = format!("/plans/{}/edit", ids[0]);
    let redirect = browser.submit(&page, &to, &fields).await;
    assert_eq!(
        redirect.location,
        format!("/plans/{}?tab=about&done=saved", ids[0])
    );
    let response = browser.get(&page).await;
    for value in [
        "value=\"travel\"",
        "value=\"urgent, web\"",
        "min=\"0\" max=\"9\" value=\"8\"",
    ] {
        response.assert_contains(value);
    }
    for filter in ["project=travel", "label=web", "state=active&project=travel"] {
        let list = browser.get(&format!("/plans?{filter}")).await;
        list.assert_contains(&ids[0]);
        assert!(!list.html.contains(&ids[1]), "{filter}");
    }
    let list = browser.get("/plans?days=7").await;
    list.assert_contains(&ids[1]);
    let invalid = [("priority", "10")];
    let rejected = browser.submit(&page, &to, &invalid).await;
    rejected.assert_contains("data-code=\"invalid_input\"");
}

#[tokio::test]
async fn the_budget_of_a_plan_is_raised_where_it_is_exhausted() {
    let server = program("pages-budget").serve();
    let mut draft = plan("Boats", &["Offers", "Compare"]);
    draft["budget"] = json!({ "maxAttempts": 1, "maxDurationMs": 7_200_000 });
    let created = server.post("/api/v1/plans", draft).await;
    let id = text(&created.expect_success(), "planId");
    let step = start(&server, &id).await;
    let at = format!("/api/v1/steps/{step}/result");
    let result = json!({ "resultSummary": "Three offers." });
    server.post(&at, result).await.expect_success();
    let browser = Browser::new(&server);
    let form = format!("/plans/{id}?tab=about#budget");
    for page in ["/".to_owned(), format!("/plans/{id}")] {
        browser
            .get(&page)
            .await
            .assert_contains(&format!("href=\"{form}\""));
    }
    let page = format!("/plans/{id}?tab=about");
    let shown = browser.get(&page).await;
    shown.assert_contains("<details id=\"budget\" open>");
    shown.assert_contains(
        "name=\"maxDurationMs\" type=\"number\" min=\"1\" max=\"525600\" value=\"120\"",
    );
    let to = format!("/plans/{id}/budget");
    let raised = [
        ("maxAttempts", "5"),
        ("maxDurationMs", ""),
        ("maxTokens", "9000"),
    ];
    let redirect = browser.submit(&page, &to, &raised).await;
    assert_eq!(
        redirect.location,
        format!("/plans/{id}?tab=about&done=saved")
    );
    let status = server
        .get(&format!("/api/v1/plans/{id}"))
        .await
        .expect_success();
    assert_eq!(status["status"], "executing");
    let budget = &status["budget"];
    assert_eq!(
        (&budget["maxAttempts"], &budget["maxTokens"]),
        (&json!(5), &json!(9_000))
    );
    assert_eq!(budget.get("maxDurationMs"), None);
    for invalid in ["0", "many"] {
        let rejected = browser.submit(&page, &to, &[("maxSteps", invalid)]).await;
        rejected.assert_contains("data-code=\"invalid_input\"");
    }
    browser.submit(&page, &to, &[]).await;
    let status = server
        .get(&format!("/api/v1/plans/{id}"))
        .await
        .expect_success();
    assert_eq!(status.get("budget"), None);
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
async fn the_link_of_a_decided_review_names_the_decision() {
    let server = program("pages-review").serve();
    let (plan, step, review) = plan_in_review(&server).await;
    let link = text(&review, "url");
    let path = link
        .strip_prefix(&server.url)
        .expect("link to this server")
        .to_owned();
    let browser = Browser::new(&server);
    for page in [path.as_str(), "/inbox"] {
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
    assert_eq!(redirect.location, "/inbox?done=approve");
    browser
        .get(&redirect.location)
        .await
        .assert_contains("id=\"no-reviews\"");
    let decided = browser.get(&path).await;
    assert_eq!(decided.status, StatusCode::OK);
    decided.assert_contains("id=\"decided\"");
    decided.assert_contains("approved it");
    decided.assert_contains(&format!("/plans/{plan}?tab=activity"));
    let unknown = format!("/reviews/{plan}");
    assert_eq!(browser.get(&unknown).await.status, StatusCode::NOT_FOUND);
    assert_eq!(status(&server, &plan).await["counts"]["completed"], 1);
    // Another user had the form open.
    let csrf_token = browser.get("/plans").await.csrf_token();
    let review = path.trim_start_matches("/reviews/");
    let fields = [
        ("csrf_token", csrf_token.as_str()),
        ("decision", "skip"),
        ("review", review),
    ];
    let late = browser.post(&to, &fields).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    late.assert_contains("id=\"decided\"");
    // The address accepts forms only, so the script must not fetch it.
    decided.assert_contains("data-live=");
    late.assert_lacks("data-live=");
}

#[tokio::test]
async fn a_rejected_decision_keeps_the_form() {
    let server = program("pages-modify").serve();
    let (plan, step, _) = plan_in_review(&server).await;
    let browser = Browser::new(&server);
    let to = format!("/reviews/{step}/decide");
    let rejected = browser
        .submit("/inbox", &to, &[("decision", "modify")])
        .await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    rejected.assert_contains("role=\"alert\"");
    rejected.assert_contains("Two remain.");
    let fields = [("decision", "modify"), ("feedback", "Only red ones.")];
    let redirect = browser.submit("/inbox", &to, &fields).await;
    assert_eq!(redirect.location, "/inbox?done=modify");
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
            .submit("/inbox", &to, &[("decision", decision)])
            .await;
        assert_eq!(status(&server, &plan).await["status"], expected);
    }
    let (_, step, _) = plan_in_review(&server).await;
    let to = format!("/reviews/{step}/decide");
    let response = browser.submit("/inbox", &to, &[("decision", "burn")]).await;
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
        60
    );
    let older = browser.get(&format!("{page}&from=12")).await;
    older.assert_contains("<summary>plan_modified");
    older.assert_lacks("<summary>step_progressed #13");
    let people = browser.get(&format!("{page}&who=people")).await;
    people.assert_lacks("<summary>step_progressed");
    people.assert_contains("<summary>plan_modified");
}

#[tokio::test]
async fn the_activity_contains_calls_that_changed_nothing() {
    let server = program("pages-calls").serve();
    let created = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .expect_success();
    let id = text(&created, "planId");
    let step = start(&server, &id).await;
    status(&server, &id).await;
    let invalid = json!({ "resultSummary": 1 });
    let at = format!("/api/v1/steps/{step}/result");
    assert_eq!(server.post(&at, invalid).await.status.as_u16(), 400);
    let browser = Browser::new(&server);
    let page = format!("/plans/{id}?tab=activity");
    let failures = format!("{page}&who=failures");
    // The log is written after the response.
    let logged = async {
        while !browser
            .get(&failures)
            .await
            .html
            .contains("submit_step_result")
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, logged).await.expect("logged");
    let all = browser.get(&page).await;
    for entry in ["step_started #", "get_plan_status", "submit_step_result"] {
        all.assert_contains(&format!("<summary>{entry}"));
    }
    let calls = browser.get(&format!("{page}&who=calls")).await;
    calls.assert_lacks("<summary>step_started");
    // The events of these calls are in the list.
    for tool in ["create_research_plan", "get_next_step"] {
        all.assert_lacks(&format!("<summary>{tool}"));
        calls.assert_contains(&format!("<summary>{tool}"));
    }
    let failures = browser.get(&failures).await;
    failures.assert_lacks("<summary>get_plan_status");
    let people = browser.get(&format!("{page}&who=people")).await;
    people.assert_lacks("<summary>get_plan_status");
}

#[tokio::test]
async fn redoes_a_step_and_forks_an_ended_plan() {
    let server = program("pages-redo").serve();
    let created = plan("Boats", &["Offers", "Write"]);
    let created = server.post("/api/v1/plans", created).await.expect_success();
    let plan = text(&created, "planId");
    let first = start(&server, &plan).await;
    let result = format!("/api/v1/steps/{first}/result");
    let summary = json!({ "resultSummary": "Three offers" });
    server.post(&result, summary.clone()).await.expect_success();
    let browser = Browser::new(&server);
    let page = format!("/plans/{plan}/steps/{first}");
    let redirect = browser
        .submit(
            &page,
            &format!("{page}/redo"),
            &[("reason", "too old"), ("back", "step")],
        )
        .await;
    assert_eq!(redirect.location, format!("{page}?done=redone&steps=1"));
    let shown = browser.get(&redirect.location).await;
    shown.assert_contains("class=\"flash\"");
    shown.assert_contains("badge superseded");
    let now = status(&server, &plan).await;
    assert_eq!(now["counts"]["superseded"], 1);
    assert_eq!(now["totalSteps"], 2);
    let steps = server.get(&format!("/api/v1/plans/{plan}/steps")).await;
    let steps = steps.expect_success();
    let successor = text(&steps["steps"][1], "stepId");
    assert_eq!(steps["steps"][0]["supersededBy"], successor.as_str());
    assert_eq!(steps["steps"][1]["supersedes"], first.as_str());
    for _ in 0..2 {
        let step = start(&server, &plan).await;
        let result = format!("/api/v1/steps/{step}/result");
        server.post(&result, summary.clone()).await.expect_success();
    }
    assert_eq!(status(&server, &plan).await["status"], "completed");
    let page = format!("/plans/{plan}/steps/{successor}");
    let redirect = browser.submit(&page, &format!("{page}/fork"), &[]).await;
    let fork = redirect.location.strip_prefix("/plans/").unwrap();
    let fork = fork.strip_suffix("?done=forked").unwrap().to_owned();
    assert_eq!(
        status(&server, &plan).await["forks"],
        json!([fork.as_str()])
    );
    let forked = status(&server, &fork).await;
    assert_eq!(forked["forkedFrom"]["planId"], plan.as_str());
    assert_eq!(forked["counts"]["pending"], 2);
}
