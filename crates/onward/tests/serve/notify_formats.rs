//! Formats of notifications: JSON, Slack and Teams.

use onward_testbed::Server;
use onward_testbed::mock_server::ReceivedRequest;
use serde_json::{Value, json};

use crate::basics::plan;
use crate::notify::{Receiver, is_signed, request_review_with, send_test_alert, text};
use crate::program;

/// Text that would notify a channel, or display a link, if it was markup.
const HOSTILE: &str = "<!channel> <@U1> & *bold* [x](https://evil.example) <at>all</at>";

fn serve(format: &str, receiver: &Receiver) -> Server {
    let config = format!("{}\nformat = \"{format}\"", receiver.config());
    let setup = program(&format!("notify-{format}"));
    setup.with_config(&config).serve()
}

/// The requests for a review, a failure, a stall and a test.
async fn all_kinds(format: &str) -> (Server, Vec<ReceivedRequest>) {
    let receiver = Receiver::start(None);
    let server = serve(format, &receiver);
    let request = json!({ "summary": HOSTILE, "assignee": "ann" });
    let (id, _) = request_review_with(&server, request).await;
    receiver.wait_for(1).await;
    let at = format!("/api/v1/plans/{id}/abandon");
    server
        .post(&at, json!({ "reason": HOSTILE }))
        .await
        .expect_success();
    receiver.wait_for(2).await;
    let mut stalling = plan();
    stalling["name"] = json!(HOSTILE);
    stalling["stallThresholdMs"] = json!(1);
    let created = server
        .post("/api/v1/plans", stalling)
        .await
        .expect_success();
    let at = format!("/api/v1/plans/{}/next", text(&created["planId"]));
    server.post(&at, json!({})).await.expect_success();
    receiver.wait_for(3).await;
    send_test_alert(&server).await;
    let requests = receiver.wait_for(4).await;
    assert!(requests.iter().all(is_signed));
    (server, requests)
}

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().expect("an object");
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// The titles and the URLs of the buttons.
fn buttons(list: &Value, title: impl Fn(&Value) -> &Value) -> Vec<(String, String)> {
    let list = list.as_array().into_iter().flatten();
    let button = |button: &Value| {
        (
            text(title(button)).to_owned(),
            text(&button["url"]).to_owned(),
        )
    };
    list.map(button).collect()
}

/// Checks the blocks of a message against the documented limits, and returns its buttons.
fn check_blocks(blocks: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for block in blocks.as_array().expect("list of blocks") {
        match text(&block["type"]) {
            "section" => {
                assert_eq!(block["text"]["type"], "plain_text");
                assert!(text(&block["text"]["text"]).chars().count() <= 3_000);
            }
            "context" => assert_eq!(block["elements"][0]["type"], "plain_text"),
            "actions" => {
                for button in block["elements"].as_array().expect("buttons") {
                    assert_eq!(button["type"], "button");
                    assert_eq!(button["text"]["type"], "plain_text");
                    assert!(text(&button["text"]["text"]).chars().count() <= 75);
                    assert!(text(&button["url"]).len() <= 3_000);
                }
                found = buttons(&block["elements"], |button| &button["text"]["text"]);
            }
            other => panic!("unexpected block `{other}`"),
        }
    }
    found
}

/// Checks that a card contains no element with markup, and returns its buttons.
fn check_card(card: &Value) -> Vec<(String, String)> {
    assert_eq!(card["type"], "AdaptiveCard");
    assert_eq!(card["version"], "1.4");
    let body = card["body"].as_array().expect("list of elements");
    assert!(!body.is_empty());
    for element in body {
        assert_eq!(element["type"], "RichTextBlock");
        for inline in element["inlines"].as_array().expect("inlines") {
            assert_eq!(inline["type"], "TextRun");
        }
    }
    let actions = card["actions"].as_array().expect("list of actions");
    assert!(
        actions
            .iter()
            .all(|action| action["type"] == "Action.OpenUrl")
    );
    buttons(&card["actions"], |action| &action["title"])
}

/// Checks the buttons of a review, a failure, a stall and a test.
fn check_buttons(server: &Server, all: &[Vec<(String, String)>]) {
    let [review, failure, stall, test] = all else {
        panic!("{all:?}")
    };
    assert_eq!(review.len(), 4, "approve, skip, reject and the page");
    for (_, url) in &review[..3] {
        assert!(url.starts_with(&format!("{}/decide/", server.url)), "{url}");
    }
    assert!(review[3].1.starts_with(&format!("{}/reviews/", server.url)));
    for one in [failure, stall] {
        assert_eq!(one.len(), 1);
        assert!(one[0].1.starts_with(&format!("{}/plans/", server.url)));
    }
    assert!(test.is_empty());
}

#[tokio::test]
async fn json_contains_the_fields_and_both_messages() {
    let (server, requests) = all_kinds("json").await;
    let bodies: Vec<Value> = requests.iter().map(ReceivedRequest::json).collect();
    let kinds: Vec<&str> = bodies.iter().map(|body| text(&body["kind"])).collect();
    assert_eq!(kinds, ["review", "failure", "stall", "test"]);
    let blocks: Vec<_> = bodies
        .iter()
        .map(|body| check_blocks(&body["blocks"]))
        .collect();
    let cards: Vec<_> = bodies
        .iter()
        .map(|body| check_card(&body["card"]))
        .collect();
    check_buttons(&server, &blocks);
    assert_eq!(blocks, cards);
    let review = &bodies[0];
    assert_eq!(review["note"], HOSTILE);
    for (decision, (title, url)) in review["decisions"]
        .as_array()
        .expect("decisions")
        .iter()
        .zip(&blocks[0])
    {
        assert_eq!(
            (text(&decision["title"]), text(&decision["url"])),
            (title.as_str(), url.as_str())
        );
        assert!(decision["expiresAt"].is_string());
    }
    for other in &bodies[1..] {
        assert_eq!(other["decisions"], Value::Null);
    }
}

#[tokio::test]
async fn slack_gets_a_text_without_markup_and_blocks() {
    let (server, requests) = all_kinds("slack").await;
    let bodies: Vec<Value> = requests.iter().map(ReceivedRequest::json).collect();
    for body in &bodies {
        assert_eq!(keys(body), ["blocks", "text"]);
        let text = text(&body["text"]);
        assert!(!text.is_empty());
        assert!(!text.contains(['<', '>']), "{text}");
    }
    let blocks: Vec<_> = bodies
        .iter()
        .map(|body| check_blocks(&body["blocks"]))
        .collect();
    check_buttons(&server, &blocks);
    assert!(text(&bodies[1]["text"]).contains("&lt;!channel&gt; &lt;@U1&gt; &amp;"));
    // Not markup in a block, so it is displayed as it is.
    assert_eq!(bodies[0]["blocks"][1]["text"]["text"], HOSTILE);
}

#[tokio::test]
async fn teams_gets_an_adaptive_card() {
    let (server, requests) = all_kinds("teams").await;
    let bodies: Vec<Value> = requests.iter().map(ReceivedRequest::json).collect();
    for body in &bodies {
        assert_eq!(keys(body), ["attachments", "type"]);
        assert_eq!(body["type"], "message");
        let attachment = &body["attachments"][0];
        assert_eq!(keys(attachment), ["content", "contentType", "contentUrl"]);
        assert_eq!(attachment["contentUrl"], Value::Null);
        assert_eq!(
            attachment["contentType"],
            "application/vnd.microsoft.card.adaptive"
        );
    }
    let card = |body: &Value| check_card(&body["attachments"][0]["content"]);
    let cards: Vec<_> = bodies.iter().map(card).collect();
    check_buttons(&server, &cards);
}
