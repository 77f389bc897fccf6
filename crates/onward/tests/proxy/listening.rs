//! The address of the proxy, and the clients that it accepts.

use onward_testbed::Response;
use onward_testbed::mock_server::MockServer;
use reqwest::StatusCode;
use serde_json::json;

use crate::conversation::{Api, Conversation};
use crate::program;

#[tokio::test]
async fn prints_one_line_with_its_address_when_it_is_ready() {
    let upstream = MockServer::start();
    let proxy = program("ready").proxy(&upstream.url);
    assert_eq!(
        proxy.ready_line,
        format!("onward proxy is listening on {}\n", proxy.url)
    );
    assert!(proxy.url.starts_with("http://127.0.0.1:") && !proxy.url.ends_with(":0"));
}

#[tokio::test]
async fn rejects_web_pages_and_foreign_host_names() {
    let upstream = MockServer::start();
    let proxy = program("foreign").proxy(&upstream.url);
    let conversation = Conversation::new(Api::Anthropic, false, "s");
    for (name, value) in [
        ("host", "evil.example:7172"),
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let request = proxy
            .client
            .post(format!("{}{}", proxy.url, conversation.path()))
            .header(name, value)
            .body(conversation.request().to_string());
        let response = request.send().await.expect("response received");
        let response = Response::read(response).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{name}");
        assert!(response.json()["error"]["message"].is_string(), "{name}");
    }
    assert_eq!(upstream.request_count(), 0);
}

#[tokio::test]
async fn appends_the_request_path_to_the_path_of_the_api() {
    let upstream = MockServer::start();
    let proxy = program("behind").proxy(&format!("{}/api/v1/", upstream.url));
    proxy
        .send(
            "/v1/chat/completions",
            json!({ "messages": [] }).to_string(),
        )
        .await;
    assert_eq!(upstream.last_request().path, "/api/v1/chat/completions");
}
