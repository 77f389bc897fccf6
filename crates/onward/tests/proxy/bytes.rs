//! What passes, byte for byte, and what is not looked at.

use reqwest::Method;

use crate::house::{Answer, House};
use crate::speech::{ALL, Talk};
use crate::upstream::{Reply, Upstream};

#[tokio::test]
async fn a_request_and_its_answer_pass_byte_for_byte() {
    let upstream = Upstream::start().await;
    let proxy = House::new("bytes").proxy(&upstream);
    for (path, list) in [
        ("/v1/messages?beta=true", "messages"),
        ("/v1/chat/completions", "messages"),
        ("/v1/responses", "input"),
    ] {
        // Blanks, escapes, numbers and the order of keys as nobody would write them anew.
        let body = format!(
            "{{ \"temperature\" : 1.50e0,\"{list}\":[ {{\"role\": \"user\" ,\"content\":\"\\u0041 \\/ ä\"}}],\r\n\
             \"tools\":[{{\"name\":\"Bash\"}}],\"big\":12345678901234567890123, \"stream\":false}}\n"
        );
        let said = "{ \"odd\" :1.0e5 }\n";
        upstream.will(
            Reply::of("application/json; charset=utf-8", said)
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
        let answer = proxy.send_with(path, &headers, body.clone()).await;
        let seen = upstream.last();
        assert_eq!(seen.body, body.as_bytes(), "{path}");
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", path));
        for (name, value) in headers {
            assert_eq!(seen.headers[name], value);
        }
        assert_eq!(
            seen.headers["host"],
            upstream.url.trim_start_matches("http://")
        );
        assert_eq!(seen.headers["content-length"], body.len().to_string());
        assert!(!seen.headers.contains_key("transfer-encoding"));
        assert_eq!(answer.status.as_u16(), 201);
        assert_eq!(answer.body, said.as_bytes());
        assert_eq!(answer.headers["request-id"], "req_1");
        assert_eq!(answer.headers.get_all("x-many").iter().count(), 2);
        assert_eq!(
            answer.headers["content-type"],
            "application/json; charset=utf-8"
        );
    }
}

#[tokio::test]
async fn a_healthy_turn_is_never_touched() {
    let upstream = Upstream::start().await;
    let proxy = House::new("healthy").proxy(&upstream);
    for api in ALL {
        for streams in [false, true] {
            let mut talk = Talk::new(api, streams, &format!("{api:?}-{streams}"));
            for step in 0..12 {
                let words = ["dover", "brest", "cork", "porto"]
                    .repeat(step + 4)
                    .join(" and ");
                let output = format!("page {step} of the tables, about {words} and others");
                talk.goes_on(&proxy, &upstream, &format!("cat {step}.md"), &output)
                    .await;
                let seen = upstream.last();
                let mut sent = talk.clone();
                sent.rows.truncate(talk.rows.len() - 2);
                assert_eq!(seen.body, sent.request().to_string().as_bytes());
            }
        }
    }
}

#[tokio::test]
async fn other_paths_and_methods_pass_as_they_are() {
    let upstream = Upstream::start().await;
    let proxy = House::new("paths").proxy(&upstream);
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
        upstream.will(Reply::of("text/plain", format!("{method} is done")));
        let url = format!("{}{path}", proxy.url);
        let sent = proxy.client.request(method.clone(), url).body(body).send();
        let answer = Answer::of(sent.await.expect("it answers")).await;
        let seen = upstream.last();
        assert_eq!(
            (seen.method.as_str(), seen.path.as_str()),
            (method.as_str(), path)
        );
        assert_eq!(seen.body, body.as_bytes());
        assert_eq!(answer.body, format!("{method} is done").as_bytes());
    }
    upstream.will(Reply::of("text/plain", "").header("x-hello", "1"));
    let sent = proxy.client.head(format!("{}/api/hello", proxy.url)).send();
    assert_eq!(sent.await.expect("it answers").headers()["x-hello"], "1");
}

#[tokio::test]
async fn what_cannot_be_read_passes_as_it_is() {
    let upstream = Upstream::start().await;
    let proxy = House::new("unread").proxy(&upstream);
    let bodies: [&[u8]; 7] = [
        b"",
        b"no json",
        b"{\"messages\":",
        b"[1]",
        b"{\"messages\":{}}",
        b"\xff\xfe{\"messages\":[]}",
        b"{\"messages\":[null,1,{\"role\":7}],\"tools\":[{}]}",
    ];
    for body in bodies {
        let answer = proxy.send("/v1/messages", body.to_vec()).await;
        assert!(answer.status.is_success());
        assert_eq!(upstream.last().body, body);
    }
    // A call without a result, which would be repaired if it could be read.
    let mut talk = Talk::new(crate::speech::Api::Chat, false, "gzip");
    talk.steps("true", "");
    talk.rows.pop();
    talk.asks("Well?");
    let packed = gzip(talk.request().to_string().as_bytes());
    let headers = [("content-encoding", "gzip")];
    proxy.send_with(talk.path(), &headers, packed.clone()).await;
    assert_eq!(upstream.last().body, packed);
    assert_eq!(upstream.last().headers["content-encoding"], "gzip");
}

#[tokio::test]
async fn a_request_that_is_too_long_to_be_read_streams_through() {
    let upstream = Upstream::start().await;
    let proxy = House::new("huge").proxy(&upstream);
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "x".repeat(40 << 20)
    );
    let answer = proxy.send("/v1/messages", body.clone()).await;
    assert!(answer.status.is_success());
    let seen = upstream.last();
    assert!(seen.body == body.as_bytes());
    assert_eq!(seen.headers["content-length"], body.len().to_string());
}

#[tokio::test]
async fn an_answer_that_is_compressed_passes_as_it_is() {
    let upstream = Upstream::start().await;
    let proxy = House::new("packed").proxy(&upstream);
    let talk = Talk::new(crate::speech::Api::Anthropic, true, "s");
    let packed = gzip(b"data: {\"type\":\"message_stop\"}\n\n");
    upstream
        .will(Reply::of("text/event-stream", packed.clone()).header("content-encoding", "gzip"));
    let headers = [("accept-encoding", "gzip, br")];
    let answer = proxy
        .send_with(talk.path(), &headers, talk.request().to_string())
        .await;
    assert_eq!(upstream.last().headers["accept-encoding"], "gzip, br");
    assert_eq!(answer.headers["content-encoding"], "gzip");
    assert_eq!(answer.body, packed);
}

#[tokio::test]
async fn errors_of_the_api_pass_as_they_are_and_are_asked_once() {
    let upstream = Upstream::start().await;
    let proxy = House::new("errors").proxy(&upstream);
    let talk = Talk::new(crate::speech::Api::Anthropic, true, "s");
    for status in [400, 401, 404, 429, 500, 529] {
        let before = upstream.count();
        let error = format!("{{\"type\":\"error\",\"error\":{{\"type\":\"e{status}\"}}}}");
        upstream.will(
            Reply::of("application/json", error.clone())
                .with_status(status)
                .header("retry-after", "7"),
        );
        let answer = talk.sends(&proxy).await;
        assert_eq!(answer.status.as_u16(), status);
        assert_eq!(answer.body, error.as_bytes());
        assert_eq!(answer.headers["retry-after"], "7");
        assert_eq!(upstream.count(), before + 1);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).expect("it can be written");
    packed.finish().expect("it ends")
}
