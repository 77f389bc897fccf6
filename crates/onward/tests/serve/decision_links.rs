//! Decision links of notifications: they open a confirmation page, decide once, expire and name their
//! recipient. `notify_formats.rs` tests the messages that contain them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use hmac::{Hmac, KeyInit, Mac};
use onward_testbed::mock_server::{MockServer, Reply};
use onward_testbed::{Program, Response, Server, send};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::basics::plan;
use crate::notify::{Receiver, SECRET, request_review_with, text};
use crate::program;

/// Starts a server with a webhook.
fn serve(setup: Program) -> (Server, Receiver) {
    let receiver = Receiver::start(None);
    let server = setup.with_config(&receiver.config()).serve();
    (server, receiver)
}

/// The path of the link with this action in a webhook request.
fn path(body: &Value, action: &str) -> String {
    let decisions = body["decisions"].as_array().expect("list of decisions");
    let decision = decisions.iter().find(|link| link["action"] == action);
    let url = text(&decision.expect("action has a link")["url"]);
    let at = url.find("/decide/").expect("URL of a decision");
    url[at..].to_owned()
}

/// Submits the form of a link.
async fn submit(server: &Server, path: &str, body: &str) -> Response {
    let request = server
        .request(Method::POST, path)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("origin", &server.url);
    send(request.body(body.to_owned())).await
}

/// The status and the code of a page. A form has none.
fn outcome(page: &Response) -> (u16, &str) {
    let code = page.text().split("data-code=\"").nth(1);
    let code = code.and_then(|rest| rest.split('"').next());
    (page.status.as_u16(), code.unwrap_or_default())
}

fn review_request() -> Value {
    json!({
        "summary": "Two remain.",
        "assignee": "ann",
        "questions": ["Is red fine?"],
        "fields": [
            { "name": "colour", "type": "choice", "options": [{ "value": "red" }, { "value": "blue" }] },
            { "name": "count", "type": "number", "default": 2 },
        ],
    })
}

async fn export(server: &Server, plan: &str) -> Value {
    let export = server.get(&format!("/api/v1/plans/{plan}/export")).await;
    export.expect_success()
}

async fn pending_reviews(server: &Server) -> usize {
    let reviews = server.get("/api/v1/reviews").await.expect_success();
    reviews["reviews"]
        .as_array()
        .expect("list of reviews")
        .len()
}

async fn decides_once(setup: Program) {
    let (server, receiver) = serve(setup);
    let (id, review) = request_review_with(&server, review_request()).await;
    let body = receiver.wait_for(1).await[0].json();
    assert_eq!(body["recipient"], "ann");
    assert_eq!(body["decisions"].as_array().map(Vec::len), Some(3));
    let link = path(&body, "approve");
    // Chat programs fetch the links of a message.
    for action in ["approve", "skip", "reject"] {
        for method in [Method::GET, Method::HEAD, Method::GET] {
            let page = send(server.request(method, &path(&body, action))).await;
            assert_eq!(outcome(&page), (200, ""), "{}", page.text());
        }
    }
    assert_eq!(pending_reviews(&server).await, 1);
    let page = server.get(&link).await;
    for part in [
        "Tides",
        "Two remain.",
        "<bdi>ann</bdi>",
        "name=\"field-colour\"",
        "name=\"answer-1\"",
    ] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    // Invalid answers do not use up the link.
    let rejected = submit(&server, &link, "field-count=many&feedback=kept+text").await;
    assert_eq!(outcome(&rejected), (400, ""));
    assert!(rejected.text().contains("role=\"alert\""));
    assert!(rejected.text().contains("kept text"), "{}", rejected.text());
    assert_eq!(pending_reviews(&server).await, 1);
    let answers = "field-colour=red&field-count=3&answer-1=Yes&feedback=go";
    let decided = submit(&server, &link, answers).await;
    assert_eq!(outcome(&decided), (200, "done"), "{}", decided.text());
    let export = export(&server, &id).await;
    assert_eq!(export["steps"][0]["status"], "completed");
    assert_eq!(
        export["steps"][0]["result"]["review"]["answers"],
        json!({ "colour": "red", "count": 3 })
    );
    let events = export["events"].as_array().expect("events");
    let decisions: Vec<&Value> = events
        .iter()
        .filter(|event| event["details"]["action"] == "approve")
        .collect();
    assert_eq!(decisions.len(), 1);
    assert_eq!(decisions[0]["actor"], "link:ann");
    assert_eq!(decisions[0]["details"]["by"], "link");
    assert_eq!(decisions[0]["details"]["recipient"], "ann");
    assert_eq!(decisions[0]["details"]["reviewId"], review.as_str());
    // A replay names the decision and its author.
    for page in [
        submit(&server, &link, answers).await,
        server.get(&link).await,
    ] {
        assert_eq!(outcome(&page), (409, "used"), "{}", page.text());
        assert!(
            page.text()
                .contains("ann (with a decision link) approved it")
        );
    }
    for action in ["skip", "reject"] {
        let page = submit(&server, &path(&body, action), "").await;
        assert_eq!(outcome(&page), (409, "decided"));
    }
    let events_after = self::export(&server, &id).await["events"].clone();
    assert_eq!(events_after, export["events"], "a replay changes nothing");
    let page = server.get(&format!("/reviews/{review}")).await;
    assert!(page.text().contains("ann (with a decision link)"));
    let page = server.get(&format!("/plans/{id}/export.md")).await;
    assert!(page.text().contains("`approve` with a decision link"));
}

#[tokio::test]
async fn a_link_decides_a_review_once() {
    decides_once(program("links")).await;
}

#[tokio::test]
async fn a_link_decides_a_review_once_on_postgresql() {
    decides_once(program("links-postgres").on_postgres()).await;
}

#[tokio::test]
async fn concurrent_requests_with_links_of_a_review_decide_it_once() {
    let (server, receiver) = serve(program("links-race"));
    for round in 1..=4 {
        let request = json!({ "summary": "Two remain." });
        let (id, _) = request_review_with(&server, request).await;
        let body = receiver.wait_for(round).await[round - 1].json();
        let links = [path(&body, "approve"), path(&body, "skip")];
        // The first rounds use one link, the others use two.
        let pages = (0..8).map(|number| {
            let link = if round > 2 { number % 2 } else { 0 };
            submit(&server, &links[link], "feedback=same")
        });
        let pages = join_all(pages).await;
        let done = pages.iter().filter(|page| outcome(page) == (200, "done"));
        assert_eq!(done.count(), 1);
        let closed = pages.iter().filter(|page| page.status.as_u16() == 409);
        assert_eq!(closed.count(), 7);
        let events = export(&server, &id).await["events"].clone();
        let by_link = |event: &&Value| event["details"]["by"] == "link";
        let events = events.as_array().expect("events").iter();
        assert_eq!(events.filter(by_link).count(), 1);
    }
}

#[tokio::test]
async fn a_link_expires_at_the_deadline_and_the_reminder_has_new_ones() {
    let (server, receiver) = serve(program("links-deadline"));
    // A notification that is sent after the deadline has no links.
    let request = json!({ "summary": "Two remain.", "remindAfterMs": 5_000 });
    let (_, review) = request_review_with(&server, request).await;
    let requests = receiver.wait_for(2).await;
    let (first, reminder) = (requests[0].json(), requests[1].json());
    let reviews = server.get("/api/v1/reviews").await.expect_success();
    assert_eq!(
        first["decisions"][0]["expiresAt"],
        reviews["reviews"][0]["dueAt"]
    );
    for expired in [
        server.get(&path(&first, "skip")).await,
        submit(&server, &path(&first, "skip"), "").await,
    ] {
        assert_eq!(outcome(&expired), (410, "expired"));
    }
    assert_eq!(pending_reviews(&server).await, 1);
    let skipped = submit(&server, &path(&reminder, "skip"), "").await;
    assert_eq!(outcome(&skipped), (200, "done"));
    assert_eq!(
        reminder["recipient"], "127.0.0.1",
        "the host of the webhook"
    );
    let page = server.get(&format!("/reviews/{review}")).await;
    assert!(page.text().contains("127.0.0.1 (with a decision link)"));
}

#[tokio::test]
async fn all_attempts_of_a_notification_have_the_same_links() {
    let receiver = Receiver::start(Some(Reply::status(500)));
    let setup = program("links-retry").with_config(&receiver.config());
    let server = setup.serve();
    request_review_with(&server, json!({ "summary": "Two remain." })).await;
    let requests = receiver.wait_for(2).await;
    assert_eq!(
        requests[0].json()["decisions"],
        requests[1].json()["decisions"]
    );
}

#[tokio::test]
async fn a_link_of_a_review_that_was_closed_in_another_way_shows_how() {
    let (server, receiver) = serve(program("links-closed"));
    let request = json!({ "summary": "Two remain." });
    let (id, review) = request_review_with(&server, request.clone()).await;
    let body = receiver.wait_for(1).await[0].json();
    let decision = json!({ "reviewId": review, "decision": "modify", "feedback": "shorter" });
    let at = format!("/api/v1/steps/{}/decision", text(&body["step"]["stepId"]));
    server.post(&at, decision).await.expect_success();
    let page = server.get(&path(&body, "approve")).await;
    assert_eq!(outcome(&page), (409, "decided"), "{}", page.text());
    // A later review of the step has its own links.
    let at = format!("/api/v1/steps/{}/review", text(&body["step"]["stepId"]));
    server.post(&at, request).await.expect_success();
    let again = receiver.wait_for(2).await[1].json();
    let page = submit(&server, &path(&body, "approve"), "").await;
    assert_eq!(outcome(&page), (409, "decided"));
    assert_eq!(pending_reviews(&server).await, 1);
    let at = format!("/api/v1/plans/{id}/abandon");
    server.post(&at, json!({})).await.expect_success();
    for page in [
        server.get(&path(&again, "approve")).await,
        submit(&server, &path(&again, "approve"), "").await,
    ] {
        assert_eq!(outcome(&page), (409, "ended"));
    }
}

#[tokio::test]
async fn a_plan_is_approved_by_link() {
    let (server, receiver) = serve(program("links-approval"));
    let mut request = plan();
    request["requiresApproval"] = json!(true);
    let created = server.post("/api/v1/plans", request).await.expect_success();
    let body = receiver.wait_for(1).await[0].json();
    let actions: Vec<&str> = body["decisions"]
        .as_array()
        .expect("decisions")
        .iter()
        .map(|link| text(&link["action"]))
        .collect();
    assert_eq!(actions, ["approve", "reject"]);
    let page = submit(&server, &path(&body, "approve"), "feedback=go").await;
    assert_eq!(outcome(&page), (200, "done"), "{}", page.text());
    let at = format!("/api/v1/plans/{}/next", text(&created["planId"]));
    let next = server.post(&at, json!({})).await.expect_success();
    assert!(next["stepId"].is_string(), "{next}");
}

#[tokio::test]
async fn a_person_decides_a_gate_by_link() {
    let (server, receiver) = serve(program("links-gate"));
    let mut request = plan();
    request["steps"][0]["reviewRequired"] = json!(true);
    request["steps"][0]["reviewBy"] = json!("person");
    let created = server.post("/api/v1/plans", request).await.expect_success();
    let at = format!("/api/v1/plans/{}/next", text(&created["planId"]));
    let next = server.post(&at, json!({})).await.expect_success();
    let at = format!("/api/v1/steps/{}/result", text(&next["stepId"]));
    let result = json!({ "resultSummary": "done" });
    server.post(&at, result).await.expect_success();
    let body = receiver.wait_for(1).await[0].json();
    let page = submit(&server, &path(&body, "approve"), "").await;
    assert_eq!(outcome(&page), (200, "done"), "{}", page.text());
}

/// A token with this payload, signed with the key of the server.
fn signed(payload: &Value) -> String {
    let mac = |key: &[u8], data: &[u8]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("valid key");
        mac.update(data);
        mac.finalize().into_bytes()
    };
    let key = mac(SECRET.as_bytes(), b"onward decision link v1");
    let payload = URL_SAFE_NO_PAD.encode(payload.to_string());
    let signature = URL_SAFE_NO_PAD.encode(mac(&key, payload.as_bytes()));
    format!("/decide/{payload}.{signature}")
}

#[tokio::test]
async fn rejects_links_that_the_server_did_not_create() {
    let setup = program("links-forged");
    setup.run_ok(&["tenant", "create", "other"]);
    let (server, receiver) = serve(setup);
    let (_, review) = request_review_with(&server, json!({ "summary": "Two remain." })).await;
    let body = receiver.wait_for(1).await[0].json();
    let step = text(&body["step"]["stepId"]);
    let link = path(&body, "approve");
    let (payload, signature) = link.split_once('.').expect("a signed token");
    let reject = path(&body, "reject");
    let (other, _) = reject.split_once('.').expect("a signed token");
    let far = 32_503_680_000_000_i64;
    let invalid = [
        "/decide/x".to_owned(),
        payload.to_owned(),
        format!("{payload}."),
        format!("{other}.{signature}"),
        signed(&json!([2, "local", step, review, "approve", "ann", far])),
        signed(&json!([1, "local", step, review, "modify", "ann", far])),
        signed(&json!([1, "gone", step, review, "approve", "ann", far])),
        signed(&json!(["approve"])),
    ];
    let mut texts = Vec::new();
    for path in &invalid {
        for page in [server.get(path).await, submit(&server, path, "").await] {
            assert_eq!(outcome(&page), (404, "invalid"), "{path}: {}", page.text());
            texts.push(page.text().to_owned());
        }
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "the same text for every reason");
    // A signed link of another tenant does not reach the review.
    let foreign = signed(&json!([1, "other", step, review, "approve", "ann", far]));
    let page = submit(&server, &foreign, "").await;
    assert_eq!(outcome(&page), (409, "ended"));
    let expired = signed(&json!([1, "local", step, review, "approve", "ann", 1_000]));
    let page = submit(&server, &expired, "").await;
    assert_eq!(outcome(&page), (410, "expired"));
    assert_eq!(pending_reviews(&server).await, 1);
    let valid = signed(&json!([1, "local", step, review, "approve", "ann", far]));
    assert_eq!(outcome(&submit(&server, &valid, "").await), (200, "done"));
}

#[tokio::test]
async fn another_secret_and_other_settings_disable_links() {
    let receiver = Receiver::start(None);
    let setup = program("links-off").with_config(&receiver.config());
    let server = setup.with_env("ONWARD_NOTIFY__LINK_VALID_HOURS", 0).serve();
    let (_, review) = request_review_with(&server, json!({ "summary": "Two remain." })).await;
    let body = receiver.wait_for(1).await[0].json();
    assert_eq!(body["decisions"], Value::Null);
    assert_eq!(body["recipient"], Value::Null);
    let step = text(&body["step"]["stepId"]);
    let far = 32_503_680_000_000_i64;
    let link = signed(&json!([1, "local", step, review, "approve", "ann", far]));
    assert_eq!(outcome(&server.get(&link).await), (404, "invalid"));
    let setup = server.kill().with_env("ONWARD_NOTIFY__LINK_VALID_HOURS", 1);
    let server = setup.serve();
    assert_eq!(outcome(&server.get(&link).await), (200, ""));
    let other = SECRET.to_uppercase();
    let setup = server.kill().with_env("ONWARD_NOTIFY__SECRET", other);
    let server = setup.serve();
    assert_eq!(outcome(&server.get(&link).await), (404, "invalid"));
    assert_eq!(pending_reviews(&server).await, 1);
}

/// The link is the credential: no sign-in is needed, and the token is neither logged nor sent on.
#[tokio::test]
async fn a_link_needs_no_sign_in_and_is_kept_secret() {
    let collector = MockServer::start();
    let receiver = Receiver::start(None);
    let setup = program("links-secret")
        .with_config(&format!(
            "{}\n[access]\nrequire_tokens = true",
            receiver.config()
        ))
        .with_env("ONWARD_LOG", "trace")
        .with_env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    let token = setup.token("local", "ann", "owner");
    let mut server = setup.serve();
    let created = server.post_as(&token, "/api/v1/plans", plan()).await;
    let id = text(&created.expect_success()["planId"]).to_owned();
    let at = format!("/api/v1/plans/{id}/next");
    let next = server
        .post_as(&token, &at, json!({}))
        .await
        .expect_success();
    let at = format!("/api/v1/steps/{}/review", text(&next["stepId"]));
    let request = json!({ "summary": "Two remain." });
    server.post_as(&token, &at, request).await.expect_success();
    let body = receiver.wait_for(1).await[0].json();
    let link = path(&body, "approve");
    let page = server.get(&link).await;
    assert_eq!(outcome(&page), (200, ""));
    for (header, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "strict-origin"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(page.header(header), value);
    }
    assert!(
        page.header("content-security-policy")
            .contains("frame-ancestors 'none'")
    );
    // A page of another site cannot submit the form, even if it knows the address.
    for origin in ["https://evil.example", "null"] {
        let request = server.request(Method::POST, &link).header("origin", origin);
        send(request).await.expect_problem(403, "forbidden");
    }
    let wrong = submit(&server, &format!("{link}x"), "").await;
    assert_eq!(outcome(&wrong), (404, "invalid"));
    assert_eq!(outcome(&submit(&server, &link, "").await), (200, "done"));
    let metrics = server.get_as(&token, "/metrics").await;
    assert!(metrics.text().contains("route=\"/decide/{token}\""));
    let secret = link.rsplit('/').next().expect("a token");
    assert!(!metrics.text().contains(secret));
    server.signal("-TERM");
    assert_eq!(server.wait().code(), Some(0));
    let log = server.log();
    assert!(log.contains("/decide/{token}"), "the requests are logged");
    assert!(!log.contains(secret), "{log}");
    for request in collector.requests() {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        assert!(!body.contains(secret));
    }
}
