//! Where it listens, and whom it answers.

use reqwest::StatusCode;
use serde_json::json;

use crate::house::{Answer, House};
use crate::speech::{Api, Talk};
use crate::upstream::Upstream;

#[tokio::test]
async fn it_prints_one_line_with_its_address_when_it_is_ready() {
    let upstream = Upstream::start().await;
    let proxy = House::new("ready").proxy(&upstream);
    assert_eq!(
        proxy.line,
        format!("onward proxy is listening on {}\n", proxy.url)
    );
    assert!(proxy.url.starts_with("http://127.0.0.1:") && !proxy.url.ends_with(":0"));
}

#[tokio::test]
async fn a_web_page_and_a_foreign_name_are_refused() {
    let upstream = Upstream::start().await;
    let proxy = House::new("foreign").proxy(&upstream);
    let talk = Talk::new(Api::Anthropic, false, "s");
    for (name, value) in [
        ("host", "evil.example:7172"),
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let asked = proxy
            .client
            .post(format!("{}{}", proxy.url, talk.path()))
            .header(name, value)
            .body(talk.request().to_string());
        let answer = Answer::of(asked.send().await.expect("it answers")).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{name}");
        let message = answer.json()["error"]["message"].clone();
        assert!(
            message
                .as_str()
                .expect("a message")
                .contains("of this machine alone")
        );
    }
    assert_eq!(upstream.count(), 0);
}

#[tokio::test]
async fn an_api_behind_a_path_is_reached_there() {
    let upstream = Upstream::start().await;
    let proxy = House::new("behind").proxy_to(&format!("{}/api/v1/", upstream.url));
    proxy
        .send(
            "/v1/chat/completions",
            json!({ "messages": [] }).to_string(),
        )
        .await;
    assert_eq!(upstream.last().path, "/api/v1/chat/completions");
}
