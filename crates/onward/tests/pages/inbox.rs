//! The inbox: reviews with a field per question, stuck plans, and old addresses.

use std::time::Duration;

use onward_testbed::{Server, TIMEOUT};
use serde_json::{Value, json};

use crate::browser::{Browser, plan, text};
use crate::program;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Creates a plan and claims its first step. Returns the ids of both.
async fn started_plan(server: &Server, body: Value) -> (String, String) {
    let created = server.post("/api/v1/plans", body).await.expect_success();
    let id = text(&created, "planId");
    let next = format!("/api/v1/plans/{id}/next");
    let next = server.post(&next, json!({})).await.expect_success();
    (id, text(&next, "stepId"))
}

#[tokio::test]
async fn answers_reach_the_agent_with_their_questions() {
    let server = program("pages-answers").serve();
    let (id, step) = started_plan(&server, plan("Boats", &["Offers"])).await;
    let review = json!({ "summary": "Two remain.", "questions": ["Red?", "Who <pays>?"] });
    let path = format!("/api/v1/steps/{step}/review");
    server.post(&path, review).await.expect_success();
    let browser = Browser::new(&server);
    let page = browser.get("/inbox").await;
    page.assert_contains("name=\"answer-1\"");
    page.assert_contains("name=\"answer-2\"");
    page.assert_contains("<title>(1) Inbox");
    let to = format!("/reviews/{step}/decide");
    let fields = [("decision", "modify"), ("answer-2", "Ann\r\npays.")];
    let decided = browser.submit("/inbox", &to, &fields).await;
    assert_eq!(decided.location, "/inbox?done=modify");
    let audit = server.get(&format!("/api/v1/plans/{id}/audit")).await;
    let audit = audit.expect_success().to_string();
    let expected = json!("2. Who <pays>?\nAnn\npays.").to_string();
    assert!(audit.contains(&expected), "{audit}");
}

#[tokio::test]
async fn typed_questions_are_inputs_of_the_form() {
    let server = program("pages-fields").serve();
    let (id, step) = started_plan(&server, plan("Boats", &["Offers", "Prices"])).await;
    let colours = json!([{ "value": "red", "title": "Red <one>" }, { "value": "blue" }]);
    let review = json!({ "summary": "Two remain.", "fields": [
        { "name": "colour", "type": "choice", "options": colours, "default": "blue" },
        { "name": "sizes", "type": "choices", "options": colours },
        { "name": "sure", "type": "boolean" },
        { "name": "count", "type": "number" },
        { "name": "note", "type": "text", "title": "Any <note>?", "default": "none" },
    ] });
    let path = format!("/api/v1/steps/{step}/review");
    let requested = server.post(&path, review).await.expect_success();
    let reviews = server.get("/api/v1/reviews").await.expect_success();
    assert_eq!(reviews["reviews"][0]["fields"][0]["type"], "choice");
    let browser = Browser::new(&server);
    let page = browser.get("/inbox").await;
    // `colour` and `note` have defaults, and the list may be empty.
    let required = [" required>", " required "].map(|text| page.html.matches(text).count());
    assert_eq!(required.iter().sum::<usize>(), 2);
    assert_eq!(page.html.matches(" formnovalidate").count(), 3);
    page.assert_contains("<option value=\"blue\" selected>");
    page.assert_contains("Red &#60;one&#62;");
    page.assert_contains("Any &#60;note&#62;?");
    page.assert_contains("name=\"field-sizes\" value=\"blue\">");
    let to = format!("/reviews/{step}/decide");
    let mut fields = vec![
        ("decision", "approve"),
        ("field-colour", "red"),
        ("field-sizes", "red"),
        ("field-sizes", "blue"),
        ("field-sure", "false"),
        ("field-note", "a\r\nb"),
        ("field-count", "many"),
    ];
    let rejected = browser.submit("/inbox", &to, &fields).await;
    assert_eq!(rejected.status, 400);
    assert_eq!(rejected.html.matches("aria-invalid").count(), 1);
    assert_eq!(rejected.html.matches("autofocus").count(), 1);
    let id_of_error = format!(
        "aria-describedby=\"error-{}-count\"",
        text(&requested, "reviewId")
    );
    rejected.assert_contains(&id_of_error);
    rejected.assert_contains("<option value=\"red\" selected>");
    rejected.assert_contains("name=\"field-sizes\" value=\"blue\" checked>");
    rejected.assert_contains("value=\"many\"");
    fields[6].1 = "2.5";
    let decided = browser.submit("/inbox", &to, &fields).await;
    assert_eq!(decided.location, "/inbox?done=approve");
    let export = server.get(&format!("/api/v1/plans/{id}/export")).await;
    let export = export.expect_success();
    assert_eq!(
        export["steps"][0]["result"]["review"]["answers"],
        json!({
            "colour": "red", "sizes": ["red", "blue"], "sure": false, "count": 2.5, "note": "a\nb",
        })
    );
}

#[tokio::test]
async fn each_missing_answer_is_marked_and_named_next_to_its_input() {
    let server = program("pages-missing").serve();
    let (_, step) = started_plan(&server, plan("Boats", &["Offers"])).await;
    let review = json!({ "summary": "Two remain.", "fields": [
        { "name": "sure", "type": "boolean", "title": "Are <you> sure?" },
        { "name": "note", "type": "text", "default": "none" },
        { "name": "count", "type": "number" },
    ] });
    let path = format!("/api/v1/steps/{step}/review");
    let requested = server.post(&path, review).await.expect_success();
    let review = text(&requested, "reviewId");
    let browser = Browser::new(&server);
    let to = format!("/reviews/{step}/decide");
    let fields = [
        ("decision", "approve"),
        ("field-note", "mine"),
        ("feedback", "Use euros."),
    ];
    let rejected = browser.submit("/inbox", &to, &fields).await;
    assert_eq!(rejected.status, 400);
    let page = &rejected.html;
    assert_eq!(page.matches("aria-invalid=\"true\"").count(), 2);
    for name in ["sure", "count"] {
        rejected.assert_contains(&format!("aria-describedby=\"error-{review}-{name}\""));
        rejected.assert_contains(&format!("<p class=\"error\" id=\"error-{review}-{name}\">"));
    }
    // The focus is on the first one, and the other input is kept.
    let focused = page.find("autofocus").expect("one input has the focus");
    assert_eq!(page.matches("autofocus").count(), 1);
    let first = page.find("name=\"field-sure\"").expect("an input");
    assert!(first < focused && focused < page.find("name=\"field-note\"").expect("an input"));
    rejected.assert_contains("mine</textarea>");
    rejected.assert_contains("Use euros.</textarea>");
    rejected.assert_contains(": Are &#60;you&#62; sure?, count.");
}

#[tokio::test]
async fn a_decision_at_the_deadline_is_shown_as_one_by_policy() {
    let server = program("pages-deadline").serve();
    let (id, step) = started_plan(&server, plan("Boats", &["Offers", "Prices"])).await;
    let path = format!("/api/v1/steps/{step}/review");
    let past = json!({ "summary": "Two remain.", "dueAt": "2020-01-01T00:00:00Z" });
    let problem = server.post(&path, past).await;
    let problem = problem.expect_problem(400, "invalid_input");
    assert_eq!(problem["details"]["issues"][0]["path"], "dueAt");
    let review = json!({ "summary": "Two remain.", "remindAfterMs": 1_000, "onDeadline": "skip" });
    let requested = server.post(&path, review).await.expect_success();
    let review = text(&requested, "reviewId");
    let reviews = server.get("/api/v1/reviews").await.expect_success();
    assert_eq!(reviews["reviews"][0]["onDeadline"], "skip");
    assert!(reviews["reviews"][0]["dueAt"].is_string());
    let browser = Browser::new(&server);
    let page = browser.get(&format!("/reviews/{review}")).await;
    page.assert_contains(", then skip");
    let skipped = async {
        while server.get("/api/v1/reviews").await.expect_success()["reviews"] != json!([]) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let skipped = tokio::time::timeout(TIMEOUT, skipped).await;
    skipped.expect("the review was decided");
    let export = server.get(&format!("/api/v1/plans/{id}/export")).await;
    let export = export.expect_success();
    assert_eq!(export["steps"][0]["status"], "skipped");
    let events = export["events"].as_array().expect("events");
    let decision = events
        .iter()
        .find(|event| event["details"]["action"] == "skip");
    let decision = decision.expect("the decision was recorded");
    assert_eq!(decision["details"]["by"], "policy");
    assert_eq!(decision["actor"], "sweep");
    let page = browser.get(&format!("/reviews/{review}")).await;
    page.assert_contains("<bdi>Onward</bdi>");
}

#[tokio::test]
async fn the_inbox_filters_the_reviews_of_the_visitor() {
    let server = program("pages-assignee").serve();
    let request = async |name: &str, assignee: Option<&str>| {
        let (id, step) = started_plan(&server, plan(name, &["Offers"])).await;
        let export = server.get(&format!("/api/v1/plans/{id}/export")).await;
        let actor = text(&export.expect_success()["events"][0], "actor");
        let assignee = assignee.unwrap_or(&actor);
        let review = json!({ "summary": "Two remain.", "assignee": assignee });
        let path = format!("/api/v1/steps/{step}/review");
        server.post(&path, review).await.expect_success();
    };
    request("Own boats", None).await;
    request("Other boats", Some("user:bea")).await;
    let browser = Browser::new(&server);
    let all = browser.get("/inbox").await;
    all.assert_contains("Own boats");
    all.assert_contains("Other boats");
    all.assert_contains("/inbox?mine=true");
    let own = browser.get("/inbox?mine=true").await;
    own.assert_contains("Own boats");
    own.assert_contains("assigned to");
    assert!(!own.html.contains("Other boats"), "{}", own.html);
    let reviews = server.get("/api/v1/reviews?assignee=bea").await;
    let reviews = reviews.expect_success();
    assert_eq!(reviews["reviews"].as_array().map(Vec::len), Some(1));
    assert_eq!(reviews["reviews"][0]["planName"], "Other boats");
    assert_eq!(reviews["reviews"][0]["assignee"], "user:bea");
    let arguments = ["--json", "review", "list", "--assignee", "bea"];
    let listed = server.program().run_json(&arguments);
    assert_eq!(listed["reviews"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["reviews"][0]["planName"], "Other boats");
}

#[tokio::test]
async fn a_result_under_review_shows_its_evidence() {
    let server = program("pages-evidence").serve();
    let mut body = plan("Boats", &["Offers"]);
    body["steps"][0]["acceptanceCriteria"] = json!(["Three <offers>."]);
    body["steps"][0]["reviewRequired"] = json!(true);
    let (id, step) = started_plan(&server, body).await;
    let evidence = json!([{
        "criterion": "1", "kind": "url", "value": "https://example.org/?a=1&b=2",
        "outcome": "three",
    }]);
    let result = json!({
        "resultSummary": "Found them.", "result": { "count": 3 }, "evidence": evidence,
    });
    let submitted = server
        .post(&format!("/api/v1/steps/{step}/result"), result)
        .await;
    let review = text(&submitted.expect_success(), "reviewId");
    let browser = Browser::new(&server);
    for path in [
        format!("/reviews/{review}"),
        format!("/plans/{id}/steps/{step}"),
    ] {
        let page = browser.get(&path).await;
        page.assert_contains("Three &#60;offers&#62;.");
        page.assert_contains("href=\"https://example.org/?a=1&#38;b=2\"");
    }
    let page = browser.get(&format!("/reviews/{review}")).await;
    page.assert_contains(&format!("name=\"review\" value=\"{review}\""));
    // A decision on a review that is not the pending one is rejected.
    let to = format!("/reviews/{step}/decide");
    let other = "00000000-0000-4000-8000-000000000000";
    let fields = [("decision", "approve"), ("review", other)];
    let refused = browser.submit("/inbox", &to, &fields).await;
    assert_eq!(refused.status, 409);
    let fields = [("decision", "approve"), ("review", review.as_str())];
    let decided = browser.submit("/inbox", &to, &fields).await;
    assert_eq!(decided.location, "/inbox?done=approve");
    let page = browser.get(&format!("/plans/{id}/steps/{step}")).await;
    page.assert_contains("class=\"evidence\"");
}

#[tokio::test]
async fn a_stuck_plan_is_in_the_inbox_until_its_steps_are_released() {
    let server = program("pages-inbox-stuck").serve();
    let mut body = plan("Boats", &["Offers", "Prices"]);
    body["stallThresholdMs"] = json!(1);
    let (id, step) = started_plan(&server, body).await;
    let browser = Browser::new(&server);
    let page = browser.get("/inbox").await;
    page.assert_contains("<span class=\"count\">1<");
    page.assert_contains("class=\"badge stalled\"");
    page.assert_contains(&format!("href=\"/inbox?plan={id}\""));
    let to = format!("/plans/{id}/steps/{step}/requeue");
    browser.submit("/inbox", &to, &[]).await;
    browser
        .get("/inbox")
        .await
        .assert_contains("id=\"no-reviews\"");
}

#[tokio::test]
async fn old_addresses_lead_to_the_new_pages() {
    let server = program("pages-old").serve();
    let browser = Browser::new(&server);
    for (old, new) in [
        ("/reviews", "/inbox"),
        ("/reviews?done=approve", "/inbox?done=approve"),
        ("/search?q=a%20b&type=quote", "/library?q=a%20b&type=quote"),
        ("/skills?status=failed", "/library/skills?status=failed"),
    ] {
        assert_eq!(browser.get(old).await.location, new);
    }
}

#[tokio::test]
async fn jump_finds_plans_steps_sessions_and_pages() {
    let server = program("pages-jump").serve();
    let created = server
        .post("/api/v1/plans", plan("Boats", &["Offers", "Prices"]))
        .await
        .expect_success();
    let id = text(&created, "planId");
    let call = json!({ "tool": "Bash", "directory": "/srv/tides" });
    server
        .post("/api/v1/sessions/s-1/calls", call)
        .await
        .expect_success();
    let browser = Browser::new(&server);
    let prefix = &id[..8];
    for (query, link) in [
        ("boat".to_owned(), format!("/plans/{id}")),
        (prefix.to_owned(), format!("/plans/{id}")),
        (format!("{prefix}%2F2"), format!("/plans/{id}/steps/")),
        ("tides".to_owned(), "/sessions/s-1".to_owned()),
        ("webhook".to_owned(), "/settings/alerts".to_owned()),
    ] {
        let found = browser.get(&format!("/jump?q={query}")).await;
        let results = found
            .html
            .split("id=\"results\"")
            .nth(1)
            .unwrap_or_default();
        assert!(
            results.contains(&format!("href=\"{link}")),
            "{query}: {results}"
        );
    }
    let recent = browser.get("/jump").await;
    let results = recent.html.split("id=\"results\"").nth(1).unwrap();
    let first = results.split("<a href=\"").nth(1).unwrap();
    assert!(first.starts_with(&format!("/plans/{id}\"")), "{results}");
    assert!(results.contains("href=\"/inbox\""), "{results}");
    let nothing = browser.get("/jump?q=xyzzy").await;
    nothing.assert_contains("id=\"no-matches\"");
}
