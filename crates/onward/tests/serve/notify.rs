//! Webhook notifications: signed, retried after failures, and sent once per finding, with several
//! servers and across restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use onward_testbed::mock_server::{MockServer, ReceivedRequest, Reply};
use onward_testbed::{Cluster, Program, Server, TIMEOUT};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::time::timeout;

use crate::basics::plan;
use crate::program;

const POLL_INTERVAL: Duration = Duration::from_millis(10);
pub(crate) const SECRET: &str = "a secret of thirty-two characters";

/// Whether the signature covers the timestamp and the body, and is less than a minute old.
pub(crate) fn is_signed(request: &ReceivedRequest) -> bool {
    let timestamp = request.header("onward-timestamp");
    let age = crate::issuer::now().abs_diff(timestamp.parse().expect("timestamp is a number"));
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("valid key");
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(&request.body);
    let expected: String = mac
        .finalize()
        .into_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    age < 60 && request.header("onward-signature") == format!("sha256={expected}")
}

/// A local webhook receiver.
pub(crate) struct Receiver {
    server: MockServer,
    status: Arc<AtomicU16>,
}

impl Receiver {
    /// Starts a receiver that sends this reply first, and then 200.
    pub(crate) fn start(first: Option<Reply>) -> Self {
        let status = Arc::new(AtomicU16::new(200));
        let current = Arc::clone(&status);
        let reply = move |_: &_| Reply::status(current.load(Ordering::SeqCst));
        let server = MockServer::with_handler(reply);
        if let Some(first) = first {
            server.enqueue(first);
        }
        Self { server, status }
    }

    pub(crate) fn config(&self) -> String {
        format!(
            "[notify]\nwebhook = \"{}/secret-path\"\nsecret = \"{SECRET}\"",
            self.server.url
        )
    }

    fn requests(&self) -> Vec<ReceivedRequest> {
        self.server.requests()
    }

    /// Sets the status of later replies.
    fn set_status(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    pub(crate) async fn wait_for(&self, number: usize) -> Vec<ReceivedRequest> {
        self.server.wait_for_requests(number).await
    }

    /// The notification ids of all attempts.
    fn ids(&self) -> Vec<String> {
        self.requests()
            .iter()
            .map(|request| request.header("onward-notice").to_owned())
            .collect()
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().expect("value is a string")
}

/// Creates a plan and requests a review of its first step. Returns the ids of the plan and review.
async fn request_review(server: &Server) -> (String, String) {
    let request = json!({ "summary": "Two remain.", "questions": ["Is red fine?"] });
    request_review_with(server, request).await
}

pub(crate) async fn request_review_with(server: &Server, request: Value) -> (String, String) {
    let created = server.post("/api/v1/plans", plan()).await.expect_success();
    let id = text(&created["planId"]).to_owned();
    let at = format!("/api/v1/plans/{id}/next");
    let next = server.post(&at, json!({})).await.expect_success();
    let step = text(&next["stepId"]).to_owned();
    let at = format!("/api/v1/steps/{step}/review");
    let review = server.post(&at, request).await.expect_success();
    (id, text(&review["reviewId"]).to_owned())
}

/// Waits until the server has counted this number of attempts with this outcome.
async fn wait_for_metric(server: &Server, kind: &str, outcome: &str, number: u32) {
    let name = format!("onward_notifications_total{{kind=\"{kind}\",outcome=\"{outcome}\"}} ");
    let reached = async {
        loop {
            let metrics = server.get("/metrics").await;
            let value = metrics
                .text()
                .lines()
                .find_map(|line| line.strip_prefix(&name));
            if value.is_some_and(|value| value.parse().is_ok_and(|value: u32| value >= number)) {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    timeout(TIMEOUT, reached)
        .await
        .unwrap_or_else(|_| panic!("{name}is less than {number}"));
}

/// Submits the form "Send a test".
pub(crate) async fn send_test_alert(server: &Server) {
    let page = server.get("/settings/alerts").await;
    let token = page.text().split("name=\"csrf_token\" value=\"").nth(1);
    let token = token.and_then(|rest| rest.split('"').next());
    let body = format!("csrf_token={}", token.expect("page has a form"));
    let request = server
        .request(Method::POST, "/settings/alerts/test")
        .header("content-type", "application/x-www-form-urlencoded")
        .header("origin", &server.url)
        .body(body);
    let response = request.send().await.expect("response");
    assert!(!response.status().is_client_error(), "{response:?}");
}

#[tokio::test]
async fn the_alerts_page_sends_a_test() {
    let receiver = Receiver::start(None);
    let setup = program("notify-test").with_config(&receiver.config());
    let server = setup.serve();
    send_test_alert(&server).await;
    let requests = receiver.wait_for(1).await;
    assert!(is_signed(&requests[0]));
    assert_eq!(requests[0].json()["kind"], "test");
}

async fn sends_each_kind_once(setup: Program) {
    let receiver = Receiver::start(None);
    let server = setup.with_config(&receiver.config()).serve();
    let (id, review) = request_review(&server).await;
    let requests = receiver.wait_for(1).await;
    assert_eq!(requests[0].path, "/secret-path");
    assert!(is_signed(&requests[0]));
    assert_eq!(requests[0].header("content-type"), "application/json");
    assert_eq!(requests[0].header("onward-try"), "1");
    let body = requests[0].json();
    assert_eq!(body["kind"], "review");
    assert_eq!(body["id"], format!("{id}/review/{review}"));
    assert_eq!(body["id"], requests[0].header("onward-notice"));
    assert_eq!(body["plan"]["planId"], id);
    assert_eq!(body["plan"]["name"], "Tides");
    assert_eq!(body["plan"]["status"], "awaiting_review");
    assert_eq!(body["note"], "Two remain.");
    assert_eq!(body["tenant"], "local");
    assert_eq!(body["url"], format!("{}/reviews/{review}", server.url));
    let at = format!("/api/v1/plans/{id}/abandon");
    let reason = json!({ "reason": "no wind" });
    server.post(&at, reason).await.expect_success();
    let body = receiver.wait_for(2).await[1].json();
    assert_eq!(body["kind"], "failure");
    assert_eq!(body["note"], "no wind");
    assert_eq!(body["plan"]["status"], "failed");
    assert_eq!(body["url"], format!("{}/plans/{id}", server.url));
    // The step stalls after a millisecond of inactivity.
    let mut stalling = plan();
    stalling["stallThresholdMs"] = json!(1);
    let created = server
        .post("/api/v1/plans", stalling)
        .await
        .expect_success();
    let id = text(&created["planId"]);
    let at = format!("/api/v1/plans/{id}/next");
    let step = server.post(&at, json!({})).await.expect_success();
    let body = receiver.wait_for(3).await[2].json();
    assert_eq!(body["kind"], "stall");
    assert_eq!(body["plan"]["onStall"], "mark");
    assert_eq!(body["step"]["stepId"], step["stepId"]);
    assert_eq!(body["step"]["attempt"], 1);
    assert!(!text(&body["text"]).is_empty());
    wait_for_metric(&server, "stall", "sent", 1).await;
    let page = server.get("/settings/alerts").await;
    let page = page.text();
    assert!(!page.contains("class=\"error\""), "{page}");
    assert!(!page.contains("secret-path"), "{page}");
    assert_eq!(doctor_check(server.program())["ok"], true);
    assert_eq!(receiver.requests().len(), 3, "each kind once");
}

#[tokio::test]
async fn users_are_reminded_of_a_review_at_its_deadline() {
    let receiver = Receiver::start(None);
    let setup = program("notify-due").with_config(&receiver.config());
    let server = setup.serve();
    let request = json!({ "summary": "Two remain.", "remindAfterMs": 1_000 });
    let (id, review) = request_review_with(&server, request).await;
    let requests = receiver.wait_for(2).await;
    let (first, reminder) = (requests[0].json(), requests[1].json());
    assert_eq!(first["id"], format!("{id}/review/{review}"));
    assert_eq!(reminder["id"], format!("{id}/review/{review}/due"));
    assert_eq!(reminder["kind"], "review");
    assert_eq!(reminder["note"], "Two remain.");
    assert_eq!(reminder["url"], first["url"]);
    assert_ne!(reminder["text"], first["text"]);
}

/// The result of the notification check of `onward doctor`.
fn doctor_check(setup: &Program) -> Value {
    let output = setup.run(&["--json", "doctor"]);
    let report: Value = serde_json::from_str(&output.stdout).expect("valid JSON");
    let checks = report["checks"].as_array().expect("list of checks");
    let check = checks
        .iter()
        .find(|check| check["check"] == "notifications");
    check.expect("notifications are checked").clone()
}

#[tokio::test]
async fn sends_each_kind_of_notification_once_and_signed() {
    sends_each_kind_once(program("notify")).await;
}

#[tokio::test]
async fn sends_each_kind_of_notification_once_and_signed_on_postgresql() {
    let database = Cluster::shared().database();
    sends_each_kind_once(program("notify-postgres").with_database(database)).await;
}

#[tokio::test]
async fn retries_failed_deliveries_and_reports_the_error() {
    let receiver = Receiver::start(Some(Reply::status(500)));
    receiver.set_status(302);
    let server = program("notify-retry")
        .with_config(&receiver.config())
        .serve();
    request_review(&server).await;
    receiver.wait_for(2).await;
    wait_for_metric(&server, "review", "waiting", 2).await;
    let doctor = server.program().run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    let check = doctor_check(server.program());
    assert_eq!(check["ok"], false);
    assert!(text(&check["message"]).contains("302"), "{check}");
    assert!(!check.to_string().contains("secret-path"), "{check}");
    let page = server.get("/settings/alerts").await;
    let page = page.text();
    let error = page.split("class=\"error\"").nth(1);
    assert!(error.is_some_and(|error| error.contains("302")), "{page}");
    receiver.set_status(200);
    wait_for_metric(&server, "review", "sent", 1).await;
    let requests = receiver.requests();
    assert!(requests.len() >= 3);
    for (index, request) in requests.iter().enumerate() {
        assert_eq!(request.header("onward-try"), (index + 1).to_string());
    }
    assert!(requests.iter().all(is_signed));
    assert!(
        requests
            .iter()
            .all(|request| request.json()["id"] == requests[0].json()["id"])
    );
    server.program().run_ok(&["doctor"]);
}

#[tokio::test]
async fn an_unresponsive_receiver_does_not_block_the_server() {
    let receiver = Receiver::start(Some(Reply::never()));
    let mut server = program("notify-unresponsive")
        .with_config(&receiver.config())
        .serve();
    request_review(&server).await;
    receiver.wait_for(1).await;
    // The server handles requests while the delivery is pending.
    let (id, _) = request_review(&server).await;
    server
        .get(&format!("/api/v1/plans/{id}"))
        .await
        .expect_success();
    wait_for_metric(&server, "review", "waiting", 1).await;
    wait_for_metric(&server, "review", "sent", 2).await;
    let mut ids = receiver.ids();
    assert_eq!(ids.len(), 3);
    ids.sort();
    ids.dedup();
    assert_eq!(
        ids.len(),
        2,
        "the first notification is sent twice with the same id"
    );
    server.signal("-TERM");
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test]
async fn sends_earlier_findings_once_a_webhook_is_configured() {
    let receiver = Receiver::start(None);
    // Without a webhook, the finding is only recorded.
    let setup = program("notify-later");
    let mut server = setup.serve();
    request_review(&server).await;
    server.signal("-KILL");
    server.wait();
    let setup = server.kill().with_config(&receiver.config());
    let mut server = setup.serve();
    receiver.wait_for(1).await;
    wait_for_metric(&server, "review", "sent", 1).await;
    server.signal("-KILL");
    server.wait();
    // After another restart, only the second finding is sent.
    let server = server.kill().serve();
    request_review(&server).await;
    receiver.wait_for(2).await;
    wait_for_metric(&server, "review", "sent", 1).await;
    let ids = receiver.ids();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
}

async fn two_servers_send_once(setups: [Program; 2]) {
    let receiver = Receiver::start(None);
    let [one, other] = setups.map(|setup| setup.with_config(&receiver.config()).serve());
    for _ in 0..3 {
        request_review(&one).await;
        request_review(&other).await;
    }
    receiver.wait_for(6).await;
    // Later findings give both servers time to send a duplicate of the earlier ones.
    request_review(&one).await;
    request_review(&other).await;
    receiver.wait_for(8).await;
    let mut ids = receiver.ids();
    assert_eq!(ids.len(), 8);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8, "no duplicates");
}

#[tokio::test]
async fn two_servers_on_one_file_send_each_notification_once() {
    let first = program("notify-two");
    let file = first.dir.join("onward.db").display().to_string();
    let second = program("notify-two-other").with_database(file);
    two_servers_send_once([first, second]).await;
}

#[tokio::test]
async fn two_servers_on_one_postgresql_database_send_each_notification_once() {
    let database = Cluster::shared().database();
    let first = program("notify-two-postgres").with_database(database.clone());
    let second = program("notify-two-postgres-other").with_database(database);
    two_servers_send_once([first, second]).await;
}

#[tokio::test]
async fn sends_only_the_configured_kinds() {
    let receiver = Receiver::start(None);
    let config = format!("{}\nkinds = [\"failure\"]", receiver.config());
    let server = program("notify-kinds").with_config(&config).serve();
    let (id, _) = request_review(&server).await;
    let at = format!("/api/v1/plans/{id}/abandon");
    server.post(&at, json!({})).await.expect_success();
    receiver.wait_for(1).await;
    wait_for_metric(&server, "failure", "sent", 1).await;
    let requests = receiver.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].json()["kind"], "failure");
}

#[tokio::test]
async fn rejects_a_webhook_without_a_secret_at_startup() {
    let setup = program("notify-unsigned")
        .with_config("[notify]\nwebhook = \"http://127.0.0.1:1/secret-path\"");
    let output = setup.run(&["--json", "serve", "--bind", "127.0.0.1:0"]);
    let stderr = output.stderr;
    assert_eq!(output.code, Some(2), "{stderr}");
    let error: Value = serde_json::from_str(&stderr).expect("valid JSON");
    let error = &error["error"];
    assert_eq!(error["code"], "invalid_input", "{stderr}");
    assert!(
        text(&error["message"]).contains("config.toml:2"),
        "{stderr}"
    );
    assert!(text(&error["hint"]).contains("ONWARD_NOTIFY__SECRET"));
    assert!(!stderr.contains("secret-path"), "{stderr}");
    // Creates the database, because `doctor` does not.
    drop(setup.run(&["status"]));
    assert_eq!(doctor_check(&setup)["ok"], false);
}
