//! The webhook: what it is told, signed, and once; again where it does not answer; never twice for one
//! finding, whichever servers there are and however they end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hmac::{Hmac, KeyInit, Mac};
use onward_testbed::Cluster;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::basics::plan;
use crate::house::{House, Server};

const SECRET: &str = "a secret of thirty-two characters";
/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// One request, as it came.
#[derive(Clone)]
struct Heard {
    headers: HeaderMap,
    body: Bytes,
}

impl Heard {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).expect("the header is there");
        value.to_str().expect("text")
    }

    /// The signature is over the instant and the body, and of this minute.
    fn is_signed(&self) -> bool {
        let stamp = self.header("onward-timestamp");
        let age = crate::issuer::now().abs_diff(stamp.parse().expect("seconds"));
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key");
        mac.update(stamp.as_bytes());
        mac.update(b".");
        mac.update(&self.body);
        let expected: String = mac
            .finalize()
            .into_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        age < 60 && self.header("onward-signature") == format!("sha256={expected}")
    }
}

/// What a receiver does about what comes.
#[derive(Clone, Copy)]
enum Answer {
    Status(u16),
    /// It takes the request, and says nothing.
    Never,
}

#[derive(Default)]
struct Desk {
    heard: Mutex<Vec<Heard>>,
    answers: Mutex<Vec<Answer>>,
    bell: Notify,
}

/// A webhook on this machine.
struct Receiver {
    url: String,
    desk: Arc<Desk>,
}

async fn take(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    desk.heard.lock().unwrap().push(Heard { headers, body });
    let next = {
        let mut answers = desk.answers.lock().unwrap();
        match answers.is_empty() {
            true => Answer::Status(200),
            false => answers.remove(0),
        }
    };
    desk.bell.notify_one();
    match next {
        Answer::Status(status) => StatusCode::from_u16(status).expect("a status"),
        Answer::Never => std::future::pending().await,
    }
}

impl Receiver {
    /// One that answers like this, and then with 200.
    async fn start(answers: &[Answer]) -> Self {
        let desk = Arc::new(Desk::default());
        desk.answers.lock().unwrap().extend(answers);
        let routes = Router::new()
            .route("/secret-path", post(take))
            .with_state(Arc::clone(&desk));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, desk }
    }

    fn lines(&self) -> String {
        format!(
            "[notify]\nwebhook = \"{}/secret-path\"\nsecret = \"{SECRET}\"",
            self.url
        )
    }

    fn heard(&self) -> Vec<Heard> {
        self.desk.heard.lock().unwrap().clone()
    }

    /// Waits until so many requests have come.
    async fn hears(&self, number: usize) -> Vec<Heard> {
        let enough = async {
            loop {
                let rings = self.desk.bell.notified();
                let heard = self.heard();
                if heard.len() >= number {
                    return heard;
                }
                rings.await;
            }
        };
        let heard = timeout(PATIENCE, enough).await;
        heard.unwrap_or_else(|_| panic!("{} came, not {number}", self.heard().len()))
    }

    /// The findings that were told, each try of them.
    fn ids(&self) -> Vec<String> {
        let heard = self.heard();
        heard
            .iter()
            .map(|one| one.header("onward-notice").to_owned())
            .collect()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// A plan whose first step waits for a person.
async fn asks(server: &Server) -> (String, String) {
    let made = server.post("/api/v1/plans", plan()).await.done();
    let id = text(&made["planId"]).to_owned();
    let at = format!("/api/v1/plans/{id}/next");
    let next = server.post(&at, json!({})).await.done();
    let step = text(&next["stepId"]).to_owned();
    let question = json!({ "summary": "Two remain.", "questions": ["Is red fine?"] });
    let at = format!("/api/v1/steps/{step}/review");
    let review = server.post(&at, question).await.done();
    (id, text(&review["reviewId"]).to_owned())
}

/// Waits until the server counts so many tries of this outcome.
async fn counted(server: &Server, kind: &str, outcome: &str, number: u32) {
    let line = format!("onward_notices_total{{kind=\"{kind}\",outcome=\"{outcome}\"}} {number}");
    let reached = async {
        while !server.get("/metrics").await.text.contains(&line) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, reached)
        .await
        .unwrap_or_else(|_| panic!("{line} never came"));
}

async fn tells_of_each_kind_once(house: House) {
    let receiver = Receiver::start(&[]).await;
    let server = house.configured(&receiver.lines()).serve();
    let (id, review) = asks(&server).await;
    let heard = receiver.hears(1).await;
    assert!(heard[0].is_signed());
    assert_eq!(heard[0].header("content-type"), "application/json");
    assert_eq!(heard[0].header("onward-try"), "1");
    let told = heard[0].json();
    assert_eq!(told["kind"], "review");
    assert_eq!(told["id"], format!("{id}/review/{review}"));
    assert_eq!(told["id"], heard[0].header("onward-notice"));
    assert_eq!(told["plan"]["planId"], id);
    assert_eq!(told["plan"]["name"], "Tides");
    assert_eq!(told["plan"]["status"], "awaiting_review");
    assert_eq!(told["note"], "Two remain.");
    assert_eq!(told["tenant"], "local");
    assert_eq!(told["url"], format!("{}/reviews/{review}", server.url));
    let at = format!("/api/v1/plans/{id}/abandon");
    let why = json!({ "reason": "no wind" });
    server.post(&at, why).await.done();
    let told = receiver.hears(2).await[1].json();
    assert_eq!(told["kind"], "failure");
    assert_eq!(told["note"], "no wind");
    assert_eq!(told["plan"]["status"], "failed");
    assert_eq!(told["url"], format!("{}/plans/{id}", server.url));
    // A step that is silent for a millisecond, in a plan that is marked for it.
    let mut quick = plan();
    quick["stallThresholdMs"] = json!(1);
    let made = server.post("/api/v1/plans", quick).await.done();
    let id = text(&made["planId"]);
    let at = format!("/api/v1/plans/{id}/next");
    let step = server.post(&at, json!({})).await.done();
    let told = receiver.hears(3).await[2].json();
    assert_eq!(told["kind"], "stall");
    assert_eq!(told["plan"]["onStall"], "mark");
    assert_eq!(told["step"]["stepId"], step["stepId"]);
    assert_eq!(told["step"]["attempt"], 1);
    assert!(text(&told["text"]).contains("has been silent since"));
    counted(&server, "stall", "sent", 1).await;
    let page = server.get("/settings").await.text;
    assert!(page.contains("3 were told"), "{page}");
    assert!(!page.contains("secret-path"), "{page}");
    let doctor = server.house.prints(&["doctor"]);
    assert!(doctor.contains("3 findings told at"), "{doctor}");
    assert_eq!(receiver.heard().len(), 3, "each once");
}

#[tokio::test]
async fn every_kind_of_finding_is_told_once_and_signed() {
    tells_of_each_kind_once(House::new("notify")).await;
}

#[tokio::test]
async fn every_kind_of_finding_is_told_once_on_postgresql() {
    let database = Cluster::shared().database();
    tells_of_each_kind_once(House::new("notify-postgres").on(database)).await;
}

#[tokio::test]
async fn what_is_not_taken_is_told_again_and_shown_as_a_fault() {
    let answers = [Answer::Status(500), Answer::Status(302)];
    let receiver = Receiver::start(&answers).await;
    let server = House::new("notify-again")
        .configured(&receiver.lines())
        .serve();
    asks(&server).await;
    receiver.hears(2).await;
    counted(&server, "review", "waiting", 2).await;
    // It says so wherever somebody might look.
    let doctor = server.house.run(&["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert_eq!(doctor.status.code(), Some(1), "{said}");
    assert!(said.contains("the webhook answers 302"), "{said}");
    assert!(!said.contains("secret-path"), "{said}");
    let page = server.get("/settings").await.text;
    assert!(page.contains("the webhook answers 302"), "{page}");
    let heard = receiver.hears(3).await;
    let tries: Vec<&str> = heard.iter().map(|one| one.header("onward-try")).collect();
    assert_eq!(tries, ["1", "2", "3"]);
    assert!(heard.iter().all(Heard::is_signed));
    assert!(
        heard
            .iter()
            .all(|one| one.json()["id"] == heard[0].json()["id"])
    );
    counted(&server, "review", "sent", 1).await;
    assert_eq!(receiver.heard().len(), 3);
    server.house.prints(&["doctor"]);
}

#[tokio::test]
async fn a_receiver_that_never_answers_holds_nobody_up() {
    let receiver = Receiver::start(&[Answer::Never]).await;
    let mut server = House::new("notify-never")
        .configured(&receiver.lines())
        .serve();
    asks(&server).await;
    receiver.hears(1).await;
    // The server answers while the receiver does not.
    let (id, _) = asks(&server).await;
    server.get(&format!("/api/v1/plans/{id}")).await.done();
    counted(&server, "review", "waiting", 1).await;
    counted(&server, "review", "sent", 2).await;
    let mut ids = receiver.ids();
    assert_eq!(ids.len(), 3);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 2, "the first one twice, under one name");
    server.signal("-TERM");
    assert_eq!(server.ended().code(), Some(0));
}

#[tokio::test]
async fn what_was_found_while_nobody_could_tell_is_told_later_and_once() {
    let receiver = Receiver::start(&[]).await;
    // Nobody has a webhook yet, and the server is killed.
    let house = House::new("notify-later");
    let mut server = house.serve();
    asks(&server).await;
    server.signal("-KILL");
    server.ended();
    let house = server.leave().configured(&receiver.lines());
    let mut server = house.serve();
    receiver.hears(1).await;
    counted(&server, "review", "sent", 1).await;
    server.signal("-KILL");
    server.ended();
    // A second one starts, and has nothing to tell but what is new.
    let server = server.leave().serve();
    asks(&server).await;
    receiver.hears(2).await;
    counted(&server, "review", "sent", 1).await;
    let ids = receiver.ids();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
}

async fn two_servers_tell_once(houses: [House; 2]) {
    let receiver = Receiver::start(&[]).await;
    let [one, other] = houses.map(|house| house.configured(&receiver.lines()).serve());
    for _ in 0..3 {
        asks(&one).await;
        asks(&other).await;
    }
    receiver.hears(6).await;
    // Both have had their chance to tell what they know: what comes now is later than that.
    asks(&one).await;
    asks(&other).await;
    receiver.hears(8).await;
    let mut ids = receiver.ids();
    assert_eq!(ids.len(), 8);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8, "none twice");
}

#[tokio::test]
async fn two_servers_on_one_file_tell_once() {
    let first = House::new("notify-two");
    let file = first.folder.join("onward.db").display().to_string();
    let second = House::new("notify-two-other").on(file);
    two_servers_tell_once([first, second]).await;
}

#[tokio::test]
async fn two_servers_on_one_postgresql_tell_once() {
    let database = Cluster::shared().database();
    let first = House::new("notify-two-postgres").on(database.clone());
    let second = House::new("notify-two-postgres-other").on(database);
    two_servers_tell_once([first, second]).await;
}

#[tokio::test]
async fn kinds_that_nobody_asked_for_are_not_told() {
    let receiver = Receiver::start(&[]).await;
    let lines = format!("{}\nkinds = [\"failure\"]", receiver.lines());
    let server = House::new("notify-kinds").configured(&lines).serve();
    let (id, _) = asks(&server).await;
    let at = format!("/api/v1/plans/{id}/abandon");
    server.post(&at, json!({})).await.done();
    receiver.hears(1).await;
    counted(&server, "failure", "sent", 1).await;
    let heard = receiver.heard();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].json()["kind"], "failure");
}

#[tokio::test]
async fn a_webhook_without_a_secret_is_refused_at_the_start() {
    let house = House::new("notify-unsigned")
        .configured("[notify]\nwebhook = \"http://127.0.0.1:1/secret-path\"");
    let output = house.run(&["serve", "--bind", "127.0.0.1:0"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("onward.toml:2: `notify.webhook` has no secret"));
    assert!(told.contains("ONWARD_NOTIFY_SECRET"), "{told}");
    assert!(!told.contains("secret-path"), "{told}");
    drop(house.run(&["status"]));
    let doctor = house.run(&["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains("no secret to sign with"), "{said}");
}
