//! Requests and responses that the proxy does not change.

use onward_testbed::Response;
use onward_testbed::mock_server::{MockServer, Reply};
use reqwest::Method;

use crate::conversation::{ALL_APIS, Api, Conversation};
use crate::program;

#[tokio::test]
async fn forwards_a_request_and_its_response_byte_for_byte() {
    let upstream = MockServer::start();
    let proxy = program("bytes").proxy(&upstream.url);
    for (path, list) in [
        ("/v1/messages?beta=true", "messages"),
        ("/v1/chat/completions", "messages"),
        ("/v1/responses", "input"),
    ] {
        // Whitespace, escapes, numbers and key order that a JSON writer would not preserve.
        let body = format!(
            "{{ \"temperature\" : 1.50e0,\"{list}\":[ {{\"role\": \"user\" ,\"content\":\"\\u0041 \\/ ä\"}}],\r\n\
             \"tools\":[{{\"name\":\"Bash\"}}],\"big\":12345678901234567890123, \"stream\":false}}\n"
        );
        let reply = "{ \"odd\" :1.0e5 }\n";
        upstream.enqueue(
            Reply::new("application/json; charset=utf-8", reply)
                .with_status(201)
                .header("request-id", "req_1")
                .header("x-many", "a")
                .header("x-many", "b"),
        );
        let headers = [
            ("x-api-key", "key"),
            ("anthropic-beta", "one,two"),
            ("user-agent", "agent/1"),
        ];
        let response = proxy.send_with(path, &headers, body.clone()).await;
        let received = upstream.last_request();
        assert_eq!(received.body, body.as_bytes(), "{path}");
        assert_eq!(
            (received.method.as_str(), received.path.as_str()),
            ("POST", path)
        );
        for (name, value) in headers {
            assert_eq!(received.headers[name], value);
        }
        assert_eq!(
            received.headers["host"],
            upstream.url.trim_start_matches("http://")
        );
        assert_eq!(received.headers["content-length"], body.len().to_string());
        assert!(!received.headers.contains_key("transfer-encoding"));
        assert_eq!(response.status.as_u16(), 201);
        assert_eq!(response.body, reply.as_bytes());
        assert_eq!(response.headers["request-id"], "req_1");
        assert_eq!(response.headers.get_all("x-many").iter().count(), 2);
        assert_eq!(
            response.headers["content-type"],
            "application/json; charset=utf-8"
        );
    }
}

#[tokio::test]
async fn does_not_change_a_turn_with_progress() {
    let upstream = MockServer::start();
    let proxy = program("healthy").proxy(&upstream.url);
    for api in ALL_APIS {
        for streaming in [false, true] {
            let mut conversation =
                Conversation::new(api, streaming, &format!("{api:?}-{streaming}"));
            for step in 0..12 {
                let places = ["dover", "brest", "cork", "porto"]
                    .repeat(step + 4)
                    .join(" and ");
                let output = format!("page {step} of the tables, about {places} and others");
                conversation
                    .run_step(&proxy, &upstream, &format!("cat {step}.md"), &output)
                    .await;
                let received = upstream.last_request();
                let mut sent = conversation.clone();
                sent.rows.truncate(conversation.rows.len() - 2);
                assert_eq!(received.body, sent.request().to_string().as_bytes());
            }
        }
    }
}

#[tokio::test]
async fn forwards_other_paths_and_methods() {
    let upstream = MockServer::start();
    let proxy = program("paths").proxy(&upstream.url);
    for (method, path, body) in [
        (Method::GET, "/v1/models?limit=1000", ""),
        (
            Method::POST,
            "/v1/messages/count_tokens",
            "{\"messages\":[]}",
        ),
        (Method::POST, "/v1/embeddings", "{\"input\":\"a\"}"),
        (Method::DELETE, "/v1/files/f%2F1", ""),
        (Method::PUT, "/anything/at/all", "\0\u{1}"),
    ] {
        upstream.enqueue(Reply::new("text/plain", format!("{method} is done")));
        let url = format!("{}{path}", proxy.url);
        let sent = proxy.client.request(method.clone(), url).body(body).send();
        let response = Response::read(sent.await.expect("response received")).await;
        let received = upstream.last_request();
        assert_eq!(
            (received.method.as_str(), received.path.as_str()),
            (method.as_str(), path)
        );
        assert_eq!(received.body, body.as_bytes());
        assert_eq!(response.body, format!("{method} is done").as_bytes());
    }
    upstream.enqueue(Reply::new("text/plain", "").header("x-hello", "1"));
    let sent = proxy.client.head(format!("{}/api/hello", proxy.url)).send();
    assert_eq!(
        sent.await.expect("response received").headers()["x-hello"],
        "1"
    );
}

#[tokio::test]
async fn forwards_bodies_that_cannot_be_parsed() {
    let upstream = MockServer::start();
    let proxy = program("unparsed").proxy(&upstream.url);
    let bodies: [&[u8]; 7] = [
        b"",
        b"not JSON",
        b"{\"messages\":",
        b"[1]",
        b"{\"messages\":{}}",
        b"\xff\xfe{\"messages\":[]}",
        b"{\"messages\":[null,1,{\"role\":7}],\"tools\":[{}]}",
    ];
    for body in bodies {
        let response = proxy.send("/v1/messages", body.to_vec()).await;
        assert!(response.status.is_success());
        assert_eq!(upstream.last_request().body, body);
    }
    // A call without a result, which would be repaired without compression.
    let mut conversation = Conversation::new(Api::Chat, false, "gzip");
    conversation.add_step("true", "");
    conversation.rows.pop();
    conversation.add_user_message("Well?");
    let compressed = gzip(conversation.request().to_string().as_bytes());
    let headers = [("content-encoding", "gzip")];
    proxy
        .send_with(conversation.path(), &headers, compressed.clone())
        .await;
    assert_eq!(upstream.last_request().body, compressed);
    assert_eq!(upstream.last_request().headers["content-encoding"], "gzip");
}

#[tokio::test]
async fn streams_a_request_that_is_too_long_to_parse() {
    let upstream = MockServer::start();
    let proxy = program("too-long").proxy(&upstream.url);
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "x".repeat(40 << 20)
    );
    let response = proxy.send("/v1/messages", body.clone()).await;
    assert!(response.status.is_success());
    let received = upstream.last_request();
    assert!(received.body == body.as_bytes());
    assert_eq!(received.headers["content-length"], body.len().to_string());
}

#[tokio::test]
async fn relays_a_compressed_response_unchanged() {
    let upstream = MockServer::start();
    let proxy = program("compressed").proxy(&upstream.url);
    let conversation = Conversation::new(Api::Anthropic, true, "s");
    let compressed = gzip(b"data: {\"type\":\"message_stop\"}\n\n");
    upstream.enqueue(
        Reply::new("text/event-stream", compressed.clone()).header("content-encoding", "gzip"),
    );
    let headers = [("accept-encoding", "gzip, br")];
    let response = proxy
        .send_with(
            conversation.path(),
            &headers,
            conversation.request().to_string(),
        )
        .await;
    assert_eq!(
        upstream.last_request().headers["accept-encoding"],
        "gzip, br"
    );
    assert_eq!(response.headers["content-encoding"], "gzip");
    assert_eq!(response.body, compressed);
}

#[tokio::test]
async fn relays_api_errors_without_retrying() {
    let upstream = MockServer::start();
    let proxy = program("errors").proxy(&upstream.url);
    let conversation = Conversation::new(Api::Anthropic, true, "s");
    for status in [400, 401, 404, 429, 500, 529] {
        let before = upstream.request_count();
        let error = format!("{{\"type\":\"error\",\"error\":{{\"type\":\"e{status}\"}}}}");
        upstream.enqueue(
            Reply::new("application/json", error.clone())
                .with_status(status)
                .header("retry-after", "7"),
        );
        let response = conversation.send(&proxy).await;
        assert_eq!(response.status.as_u16(), status);
        assert_eq!(response.body, error.as_bytes());
        assert_eq!(response.headers["retry-after"], "7");
        assert_eq!(upstream.request_count(), before + 1);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("written to memory");
    encoder.finish().expect("written to memory")
}
