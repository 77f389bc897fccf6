//! Streamed responses: latency, aborted streams and disconnected agents.

use std::time::Duration;

use axum::body::Bytes;
use onward_testbed::TIMEOUT;
use onward_testbed::mock_server::{MockServer, Reply, ReplyBody};
use tokio::sync::mpsc;

use crate::conversation::{ALL_APIS, Api, Conversation};
use crate::program;

type Sender = mpsc::Sender<Result<Bytes, std::io::Error>>;

/// A streamed reply whose chunks are sent by the test.
fn stream() -> (Sender, Reply) {
    let (sender, chunks) = mpsc::channel(4);
    let mut reply = Reply::new("text/event-stream", "");
    reply.body = ReplyBody::Chunks(chunks);
    (sender, reply)
}

fn first_event(conversation: &Conversation) -> String {
    let text = String::from_utf8(conversation.text_reply("Noon.").bytes()).expect("UTF-8 body");
    let (first, _) = text.split_once("\n\n").expect("event boundary");
    format!("{first}\n\n")
}

#[tokio::test]
async fn relays_each_event_immediately() {
    let upstream = MockServer::start();
    let proxy = program("first-byte").proxy(&upstream.url);
    for api in ALL_APIS {
        for idle in [0, 8] {
            let mut conversation = Conversation::new(api, true, &format!("{api:?}-{idle}"));
            conversation.run_idle_steps(&proxy, &upstream, idle).await;
            let (sender, reply) = stream();
            upstream.enqueue(reply);
            let first = first_event(&conversation);
            sender
                .send(Ok(first.clone().into()))
                .await
                .expect("chunk queued");
            let request = proxy
                .client
                .post(format!("{}{}", proxy.url, conversation.path()))
                .header("x-session-id", &conversation.session)
                .body(conversation.request().to_string());
            let mut response = request.send().await.expect("response received");
            let mut received = Vec::new();
            while received.len() < first.len() {
                // The API sends nothing more until this is received.
                let chunk = response.chunk().await.expect("chunk received");
                received.extend_from_slice(&chunk.expect("stream is open"));
            }
            assert_eq!(received, first.as_bytes());
            drop(sender);
            assert_eq!(response.chunk().await.expect("stream ended"), None);
            assert_eq!(
                conversation.forbids_tools(&upstream.last_request().json()),
                idle == 8
            );
        }
    }
}

#[tokio::test]
async fn relays_an_aborted_stream_as_aborted() {
    let upstream = MockServer::start();
    let proxy = program("aborted").proxy(&upstream.url);
    for idle in [0, 8] {
        let mut conversation = Conversation::new(Api::Anthropic, true, &format!("{idle}"));
        conversation.run_idle_steps(&proxy, &upstream, idle).await;
        let (sender, reply) = stream();
        upstream.enqueue(reply);
        let first = first_event(&conversation);
        sender
            .send(Ok(first.clone().into()))
            .await
            .expect("chunk queued");
        let request = proxy
            .client
            .post(format!("{}{}", proxy.url, conversation.path()))
            .header("x-session-id", &conversation.session)
            .body(conversation.request().to_string());
        let mut response = request.send().await.expect("response received");
        let mut received = response
            .chunk()
            .await
            .expect("chunk received")
            .expect("stream is open")
            .to_vec();
        let reset = std::io::Error::other("reset");
        sender.send(Err(reset)).await.expect("chunk queued");
        let ended = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => received.extend_from_slice(&chunk),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        assert!(!ended, "an aborted stream looks complete: {idle}");
        assert_eq!(received, first.as_bytes());
    }
}

#[tokio::test]
async fn cancels_the_upstream_request_when_the_agent_disconnects() {
    let upstream = MockServer::start();
    let proxy = program("disconnected").proxy(&upstream.url);
    for idle in [0, 8] {
        let mut conversation = Conversation::new(Api::Chat, true, &format!("{idle}"));
        conversation.run_idle_steps(&proxy, &upstream, idle).await;
        let (sender, reply) = stream();
        upstream.enqueue(reply);
        sender
            .send(Ok(first_event(&conversation).into()))
            .await
            .expect("chunk queued");
        let request = proxy
            .client
            .post(format!("{}{}", proxy.url, conversation.path()))
            .header("x-session-id", &conversation.session)
            .body(conversation.request().to_string());
        let mut response = request.send().await.expect("response received");
        response.chunk().await.expect("chunk received");
        drop(response);
        let closed = tokio::time::timeout(TIMEOUT, sender.closed()).await;
        assert!(closed.is_ok(), "the upstream request is still open");
    }
}

#[tokio::test]
async fn waits_for_the_api_until_the_agent_disconnects() {
    let upstream = MockServer::start();
    let proxy = program("hangs").proxy(&upstream.url);
    let conversation = Conversation::new(Api::Responses, true, "s");
    let mut reply = Reply::new("text/event-stream", "");
    reply.body = ReplyBody::Never;
    upstream.enqueue(reply);
    let request = proxy
        .client
        .post(format!("{}{}", proxy.url, conversation.path()))
        .body(conversation.request().to_string());
    let mut sending = Box::pin(request.send());
    // The API must have taken the first reply before the agent disconnects.
    tokio::select! {
        response = &mut sending => panic!("unexpected response: {response:?}"),
        _ = upstream.wait_for_requests(1) => {}
    }
    let early = tokio::time::timeout(Duration::from_millis(300), &mut sending).await;
    assert!(early.is_err(), "unexpected response: {early:?}");
    drop(sending);
    // The next request is handled normally.
    upstream.enqueue(conversation.text_reply("Noon."));
    assert_eq!(
        conversation.response_text(&conversation.send(&proxy).await),
        "Noon."
    );
}

#[tokio::test]
async fn reads_events_that_arrive_byte_by_byte() {
    let upstream = MockServer::start();
    let proxy = program("byte-by-byte").proxy(&upstream.url);
    for api in ALL_APIS {
        let mut conversation = Conversation::new(api, true, &format!("{api:?}"));
        conversation.run_idle_steps(&proxy, &upstream, 8).await;
        let body = conversation.reply(Some("Wait. "), true).bytes();
        let (sender, reply) = stream();
        upstream.enqueue(reply);
        upstream.enqueue(conversation.text_reply("At noon — or ten past."));
        tokio::spawn(async move {
            for byte in body {
                if sender.send(Ok(Bytes::from(vec![byte]))).await.is_err() {
                    return;
                }
            }
        });
        let response = conversation.send(&proxy).await;
        assert_eq!(
            conversation.response_text(&response),
            "Wait. At noon — or ten past."
        );
    }
}
