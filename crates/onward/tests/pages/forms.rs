//! What people do, without a script: decide, hand out again, fail, resume, abandon, change.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::browser::{Browser, plan, text};
use crate::house::{House, Server};

async fn start(server: &Server, plan: &str) -> String {
    let next = format!("/api/v1/plans/{plan}/next");
    let started = server.post(&next, json!({ "sessionId": "s" })).await.done();
    text(&started, "stepId")
}

async fn status(server: &Server, plan: &str) -> Value {
    server.get(&format!("/api/v1/plans/{plan}")).await.done()
}

/// Longer than a sweep takes to look.
const PATIENCE: Duration = Duration::from_secs(60);

/// A plan whose only step in progress is past its threshold from the first instant on.
async fn stalled(server: &Server) -> (String, String) {
    let mut made = plan("Boats", &["Offers", "Write"]);
    made["stallThresholdMs"] = json!(1);
    let made = server.post("/api/v1/plans", made).await.done();
    let id = text(&made, "planId");
    let step = start(server, &id).await;
    // The sweep marks it, as soon as it looks.
    let marked = async {
        while status(server, &id).await["status"] != "stalled" {
            tokio::task::yield_now().await;
        }
    };
    let marked = tokio::time::timeout(PATIENCE, marked).await;
    assert!(marked.is_ok(), "the sweep never marks it");
    (id, step)
}

#[tokio::test]
async fn a_stall_is_on_top_and_the_step_is_handed_out_again() {
    let server = House::new("pages-stall").serve();
    let (plan, step) = stalled(&server).await;
    let browser = Browser::at(&server);
    let page = format!("/plans/{plan}");
    let seen = browser.get(&page).await;
    seen.shows("Step 1: <bdi>Offers</bdi>");
    let (warning, name) = (
        seen.html.find("has been silent for"),
        seen.html.find("<h1>"),
    );
    assert!(warning.unwrap() < name.unwrap(), "it is not on top");
    let to = format!("{page}/steps/{step}/requeue");
    let led = browser.fill(&page, &to, &[]).await;
    assert_eq!(led.to, format!("{page}?done=requeued"));
    browser.get(&led.to).await.shows("will be handed out again");
    let now = status(&server, &plan).await;
    assert_eq!(now["status"], "executing");
    assert_eq!(now["counts"]["pending"], 2);
}

#[tokio::test]
async fn a_stalled_step_is_failed_and_the_reason_kept() {
    let server = House::new("pages-fail").serve();
    let (plan, step) = stalled(&server).await;
    let browser = Browser::at(&server);
    let page = format!("/plans/{plan}");
    let to = format!("{page}/steps/{step}/fail");
    let led = browser
        .fill(&page, &to, &[("reason", "out of reach")])
        .await;
    assert_eq!(led.to, format!("{page}?done=failed"));
    let seen = browser.get(&format!("{page}/steps/{step}")).await;
    seen.shows("out of reach");
    assert_eq!(status(&server, &plan).await["counts"]["failed"], 1);
}

#[tokio::test]
async fn a_stalled_plan_goes_on_or_is_abandoned() {
    let server = House::new("pages-resume").serve();
    let (plan, _) = stalled(&server).await;
    let browser = Browser::at(&server);
    let page = format!("/plans/{plan}");
    let to = format!("{page}/resume");
    let led = browser.fill(&page, &to, &[]).await;
    assert_eq!(led.status, StatusCode::SEE_OTHER, "{led:?}");
    assert_eq!(status(&server, &plan).await["status"], "executing");
    let to = format!("{page}/abandon");
    browser.fill(&page, &to, &[("reason", "no wind")]).await;
    let seen = browser.get(&page).await;
    seen.shows("no wind");
    seen.shows("<button disabled aria-describedby=\"why-not-modify\">Abandon the plan…</button>");
    let mark = browser.get("/settings").await.mark();
    let again = browser.post(&to, &[("mark", &mark)]).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    again.shows("The plan is over");
}

#[tokio::test]
async fn instructions_are_changed_to_the_letter() {
    let server = House::new("pages-instruct").serve();
    let made = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .done();
    let page = format!(
        "/plans/{}/steps/{}",
        text(&made, "planId"),
        text(&made["firstStep"], "stepId")
    );
    let browser = Browser::at(&server);
    let fields = [("instructions", "One\r\n  two"), ("back", "step")];
    let led = browser
        .fill(&page, &format!("{page}/instruct"), &fields)
        .await;
    assert_eq!(led.to, format!("{page}?done=instructed"));
    browser.get(&page).await.shows("One\n  two");
}

async fn in_review(server: &Server) -> (String, String, Value) {
    let made = server
        .post("/api/v1/plans", plan("Boats", &["Offers", "Write"]))
        .await;
    let id = text(&made.done(), "planId");
    let step = start(server, &id).await;
    let asked = json!({ "summary": "Two remain.", "questions": ["Is red fine?"] });
    let at = format!("/api/v1/steps/{step}/review");
    let review = server.post(&at, asked).await.done();
    (id, step, review)
}

#[tokio::test]
async fn the_link_of_a_review_leads_to_it_until_it_is_decided() {
    let server = House::new("pages-review").serve();
    let (plan, step, review) = in_review(&server).await;
    let link = text(&review, "url");
    let path = link
        .strip_prefix(&server.url)
        .expect("it leads here")
        .to_owned();
    let browser = Browser::at(&server);
    for page in [path.as_str(), "/reviews"] {
        let seen = browser.get(page).await;
        seen.shows("Two remain.");
        seen.shows("Is red fine?");
        seen.shows("Offers");
    }
    browser
        .get("/plans")
        .await
        .shows("1<span class=\"unseen\"> waiting");
    let to = format!("/reviews/{step}/decide");
    let led = browser.fill(&path, &to, &[("decision", "approve")]).await;
    assert_eq!(led.to, "/reviews?done=approve");
    browser.get(&led.to).await.shows("Nothing waits for you");
    assert_eq!(browser.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(status(&server, &plan).await["counts"]["completed"], 1);
}

#[tokio::test]
async fn a_decision_that_is_refused_keeps_what_was_written() {
    let server = House::new("pages-modify").serve();
    let (plan, step, _) = in_review(&server).await;
    let browser = Browser::at(&server);
    let to = format!("/reviews/{step}/decide");
    let refused = browser
        .fill("/reviews", &to, &[("decision", "modify")])
        .await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused.shows("role=\"alert\"");
    refused.shows("Say what should be different.");
    refused.shows("Two remain.");
    let fields = [("decision", "modify"), ("feedback", "Only red ones.")];
    let led = browser.fill("/reviews", &to, &fields).await;
    assert_eq!(led.to, "/reviews?done=modify");
    let page = format!("/plans/{plan}/steps/{step}");
    browser.get(&page).await.shows("Only red ones.");
    assert_eq!(status(&server, &plan).await["status"], "executing");
}

#[tokio::test]
async fn a_rejected_review_fails_the_plan_and_a_skipped_one_does_not() {
    let server = House::new("pages-reject").serve();
    let browser = Browser::at(&server);
    for (decision, expected) in [("reject", "failed"), ("skip", "executing")] {
        let (plan, step, _) = in_review(&server).await;
        let to = format!("/reviews/{step}/decide");
        browser
            .fill("/reviews", &to, &[("decision", decision)])
            .await;
        assert_eq!(status(&server, &plan).await["status"], expected);
    }
    let (_, step, _) = in_review(&server).await;
    let to = format!("/reviews/{step}/decide");
    let seen = browser.fill("/reviews", &to, &[("decision", "burn")]).await;
    assert_eq!(seen.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_audit_is_filtered_and_paged() {
    let server = House::new("pages-audit").serve();
    let made = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .done();
    let id = text(&made, "planId");
    let step = start(&server, &id).await;
    for _ in 0..60 {
        let at = format!("/api/v1/steps/{step}/progress");
        server.post(&at, json!({ "note": "rowing" })).await.done();
    }
    let browser = Browser::at(&server);
    let page = format!("/plans/{id}?tab=audit");
    let seen = browser.get(&page).await;
    assert_eq!(seen.html.matches("<summary>step_progressed").count(), 50);
    let older = browser.get(&format!("{page}&from=12")).await;
    older.shows("<summary>plan_modified");
    let started = browser.get(&format!("{page}&event=step_started")).await;
    assert_eq!(started.html.matches("<details id=\"event-").count(), 1);
    started.hides("<summary>step_progressed");
}
