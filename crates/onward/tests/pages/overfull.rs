//! What there is much of: folded, counted, and still all there. And what has ended, or is nobody's yet.

use onward_core::Timestamp;
use serde_json::json;

use crate::browser::{Browser, plan, text};
use crate::house::{House, Server};

async fn working(server: &Server, steps: usize, more: serde_json::Value) -> String {
    let titles: Vec<String> = (1..=steps).map(|step| format!("Look {step}")).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut made = plan("Boats", &titles);
    for (name, value) in more.as_object().expect("fields") {
        made[name] = value.clone();
    }
    text(&server.post("/api/v1/plans", made).await.done(), "planId")
}

#[tokio::test]
async fn of_many_silent_steps_three_are_told_and_the_rest_is_folded() {
    let server = House::new("pages-silent").serve();
    let id = working(&server, 5, json!({ "stallThresholdMs": 1 })).await;
    for session in 0..5 {
        let next = json!({ "sessionId": format!("s{session}") });
        server
            .post(&format!("/api/v1/plans/{id}/next"), next)
            .await
            .done();
    }
    let seen = Browser::at(&server).get(&format!("/plans/{id}")).await;
    seen.shows("5 steps have fallen silent");
    let (told, folded) = seen
        .html
        .split_once("<details id=\"silent\"><summary>2 more</summary>")
        .expect("the rest");
    assert_eq!(told.matches("has been silent for").count(), 3);
    assert_eq!(folded.matches("has been silent for").count(), 2);
    assert_eq!(folded.matches("/requeue\"").count(), 2);
}

#[tokio::test]
async fn of_many_interrupted_calls_three_are_told_and_the_rest_is_folded() {
    let server = House::new("pages-lost").serve();
    for call in 1..=5 {
        let told = json!({ "tool": "Bash", "status": "running" });
        server.post("/api/v1/sessions/s/calls", told).await.done();
        let close = format!("/api/v1/sessions/s/calls/1/{call}/close");
        server.post(&close, json!({})).await.done();
    }
    let seen = Browser::at(&server).get("/sessions/s").await;
    seen.shows("5 calls were interrupted");
    let (told, folded) = seen
        .html
        .split_once("<details id=\"lost-more\"><summary>2 more</summary>")
        .expect("the rest");
    assert_eq!(told.matches("The model was told").count(), 3);
    assert_eq!(folded.matches("The model was told").count(), 2);
}

#[tokio::test]
async fn a_long_plan_is_shown_where_it_goes_on_and_draws_what_was_worked_on() {
    let server = House::new("pages-long").serve();
    let id = working(&server, 80, json!({})).await;
    for _ in 0..30 {
        let next = format!("/api/v1/plans/{id}/next");
        let step = text(&server.post(&next, json!({})).await.done(), "stepId");
        let result = json!({ "resultSummary": "Done." });
        server
            .post(&format!("/api/v1/steps/{step}/result"), result)
            .await
            .done();
    }
    // Between two steps nobody works on any.
    let seen = Browser::at(&server).get(&format!("/plans/{id}")).await;
    seen.hides(">Look 20<");
    seen.shows(">Look 21<");
    assert_eq!(
        seen.html.matches("<svg").count(),
        10,
        "those that were worked on"
    );
    seen.shows("40 more of these steps wait for their turn.");
}

#[tokio::test]
async fn the_timeline_of_a_plan_that_ended_ends_with_it() {
    let server = House::new("pages-ended").serve();
    let id = working(&server, 3, json!({})).await;
    let next = format!("/api/v1/plans/{id}/next");
    server.post(&next, json!({})).await.done();
    server
        .post(&format!("/api/v1/plans/{id}/abandon"), json!({}))
        .await
        .done();
    let page = Browser::at(&server).get(&format!("/plans/{id}")).await.html;
    let instant = |behind: &str| -> Timestamp {
        let rest = page.split(behind).nth(1).expect("a time");
        let rest = rest.split("datetime=\"").nth(1).expect("a time");
        let exact = rest.split('"').next().expect("a time");
        exact.parse().expect("an instant")
    };
    let span = instant("<dt>Ended</dt>").since(instant("data-name=\"began\""));
    let span = match span.as_secs() {
        0 => format!("{} ms", span.as_millis()),
        seconds => format!("{seconds} s"),
    };
    let axis = page.split("class=\"axis\"").nth(1).expect("an axis");
    let drawn = axis.split("</p>").next().expect("an axis");
    assert!(
        drawn.contains(&format!("<span>{span}</span>")),
        "{span} in {drawn}"
    );
}

#[tokio::test]
async fn what_is_not_there_is_told_in_a_sentence() {
    let server = House::new("pages-nowhere").serve();
    let browser = Browser::at(&server);
    let seen = browser.get("/nowhere").await;
    assert_eq!(seen.status.as_u16(), 404);
    seen.shows("There is no page at /nowhere.");
    seen.hides("/api/v1");
    let id = working(&server, 1, json!({})).await;
    let wrong = [
        ("type", "custom"),
        ("instructions", "More."),
        ("after", "999"),
    ];
    let at = format!("/plans/{id}");
    let seen = browser.fill(&at, &format!("{at}/steps"), &wrong).await;
    assert_eq!(seen.status.as_u16(), 400);
    seen.shows("There is no step 999 in the plan.");
}

#[tokio::test]
async fn whoever_has_yet_to_sign_in_is_offered_nothing_else() {
    let house = House::new("pages-stranger").configured("[access]\nrequire_tokens = true");
    let server = house.serve();
    let seen = Browser::at(&server).get("/login").await;
    seen.shows("Sign in");
    seen.hides("href=\"/settings\"");
}
