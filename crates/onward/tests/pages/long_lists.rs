//! Long lists are collapsed, long plans paginated; error pages and the sign-in page.

use onward_core::Timestamp;
use onward_testbed::Server;
use serde_json::json;

use crate::browser::{Browser, plan, text};
use crate::program;

/// Marks the synthetic result of an interrupted call.
const SYNTHETIC: &str = "class=\"sent synthetic\"";

async fn create_plan(server: &Server, steps: usize, more: serde_json::Value) -> String {
    let titles: Vec<String> = (1..=steps).map(|step| format!("Check {step}")).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut created = plan("Boats", &titles);
    for (name, value) in more.as_object().expect("fields are an object") {
        created[name] = value.clone();
    }
    text(
        &server.post("/api/v1/plans", created).await.expect_success(),
        "planId",
    )
}

#[tokio::test]
async fn releases_all_stuck_steps_together() {
    let server = program("pages-stuck").serve();
    let id = create_plan(&server, 5, json!({ "stallThresholdMs": 1 })).await;
    for session in 0..5 {
        let next = json!({ "sessionId": format!("s{session}") });
        server
            .post(&format!("/api/v1/plans/{id}/next"), next)
            .await
            .expect_success();
    }
    let browser = Browser::new(&server);
    let page = format!("/plans/{id}");
    let response = browser.get(&page).await;
    assert_eq!(response.html.matches("class=\"stuck\" cx=").count(), 5);
    let to = format!("{page}/release");
    let redirect = browser.submit(&page, &to, &[]).await;
    let steps = format!("{page}?done=released&steps=1,2,3,4,5");
    assert_eq!(redirect.location, steps);
    let status = server.get(&format!("/api/v1/plans/{id}")).await;
    let status = status.expect_success();
    assert_eq!(status["counts"]["pending"], 5);
    // The silences stay in the timeline.
    let response = browser.get(&page).await;
    assert_eq!(response.html.matches("<rect class=\"stuck\" x=").count(), 5);
}

#[tokio::test]
async fn collapses_all_but_three_interrupted_calls() {
    let server = program("pages-lost").serve();
    for call in 1..=5 {
        let running = json!({ "tool": "Bash", "status": "running" });
        server
            .post("/api/v1/sessions/s/calls", running)
            .await
            .expect_success();
        let close = format!("/api/v1/sessions/s/calls/1/{call}/close");
        server.post(&close, json!({})).await.expect_success();
    }
    let response = Browser::new(&server).get("/sessions/s").await;
    let (visible, collapsed) = response
        .html
        .split_once("<details id=\"more-dead\"><summary>2 more</summary>")
        .expect("collapsed list");
    assert_eq!(visible.matches(SYNTHETIC).count(), 3);
    assert_eq!(collapsed.matches(SYNTHETIC).count(), 2);
}

#[tokio::test]
async fn rows_of_the_same_kind_collapse() {
    let server = program("pages-long").serve();
    let id = create_plan(&server, 80, json!({})).await;
    for _ in 0..30 {
        let next = format!("/api/v1/plans/{id}/next");
        let step = text(
            &server.post(&next, json!({})).await.expect_success(),
            "stepId",
        );
        let result = json!({ "resultSummary": "Done." });
        server
            .post(&format!("/api/v1/steps/{step}/result"), result)
            .await
            .expect_success();
    }
    // No step is in progress between two steps.
    let response = Browser::new(&server).get(&format!("/plans/{id}")).await;
    response.assert_contains(">Check 1<");
    response.assert_contains(">29 more done</a>: steps 2 to 30");
    response.assert_contains(">Check 31<");
    response.assert_contains(">49 more queued</a>: steps 32 to 80");
    let all = Browser::new(&server)
        .get(&format!("/plans/{id}?rows=all"))
        .await;
    assert_eq!(all.html.matches("class=\"bars").count(), 80);
}

#[tokio::test]
async fn the_timeline_ends_when_the_plan_ends() {
    let server = program("pages-ended").serve();
    let id = create_plan(&server, 3, json!({})).await;
    let next = format!("/api/v1/plans/{id}/next");
    server.post(&next, json!({})).await.expect_success();
    server
        .post(&format!("/api/v1/plans/{id}/abandon"), json!({}))
        .await
        .expect_success();
    let page = Browser::new(&server).get(&format!("/plans/{id}")).await;
    let foot = page.html.split("class=\"axis-foot\"").nth(1);
    let foot = foot
        .and_then(|foot| foot.split("</p>").next())
        .expect("axis");
    let times: Vec<Timestamp> = foot
        .split("datetime=\"")
        .skip(1)
        .map(|time| time.split('"').next().unwrap_or_default())
        .map(|time| time.parse().expect("valid timestamp"))
        .collect();
    let ended = server.get(&format!("/api/v1/plans/{id}")).await;
    let ended = text(&ended.expect_success(), "completedAt");
    assert_eq!(times.last().map(ToString::to_string), Some(ended));
}

#[tokio::test]
async fn error_pages_have_the_code_of_the_problem() {
    let server = program("pages-nowhere").serve();
    let browser = Browser::new(&server);
    let response = browser.get("/nowhere").await;
    assert_eq!(response.status.as_u16(), 404);
    response.assert_contains("data-code=\"invalid_input\"");
    response.assert_lacks("/api/v1");
    let id = create_plan(&server, 1, json!({})).await;
    let invalid = [
        ("type", "custom"),
        ("instructions", "More."),
        ("after", "999"),
    ];
    let at = format!("/plans/{id}");
    let about = format!("{at}?tab=about");
    let response = browser
        .submit(&about, &format!("{at}/steps"), &invalid)
        .await;
    assert_eq!(response.status.as_u16(), 400);
    response.assert_contains("data-code=\"invalid_input\"");
    response.assert_contains("999");
}

#[tokio::test]
async fn the_sign_in_page_has_no_navigation() {
    let setup = program("pages-stranger").with_config("[access]\nrequire_tokens = true");
    let server = setup.serve();
    let response = Browser::new(&server).get("/login").await;
    response.assert_contains("action=\"/login\"");
    response.assert_lacks("href=\"/settings\"");
}
