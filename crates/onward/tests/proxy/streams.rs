//! Streams: nothing is held back, and whoever hangs up is not waited for.

use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::mpsc;

use crate::house::{House, PATIENCE};
use crate::speech::{ALL, Api, Talk};
use crate::upstream::{Reply, Said, Upstream};

type Sender = mpsc::Sender<Result<Bytes, std::io::Error>>;

/// A stream whose pieces a test sends when it likes.
fn stream() -> (Sender, Reply) {
    let (sender, pieces) = mpsc::channel(4);
    let mut reply = Reply::of("text/event-stream", "");
    reply.body = Said::Pieces(pieces);
    (sender, reply)
}

fn first_event(talk: &Talk) -> String {
    let text = String::from_utf8(talk.answers("Noon.").bytes()).expect("text");
    let (first, _) = text.split_once("\n\n").expect("an event");
    format!("{first}\n\n")
}

#[tokio::test]
async fn the_first_byte_is_not_held_back_not_even_where_only_text_will_do() {
    let upstream = Upstream::start().await;
    let proxy = House::new("first-byte").proxy(&upstream);
    for api in ALL {
        for idle in [0, 8] {
            let mut talk = Talk::new(api, true, &format!("{api:?}-{idle}"));
            talk.idles(&proxy, &upstream, idle).await;
            let (sender, reply) = stream();
            upstream.will(reply);
            let first = first_event(&talk);
            sender
                .send(Ok(first.clone().into()))
                .await
                .expect("it is taken");
            let request = proxy
                .client
                .post(format!("{}{}", proxy.url, talk.path()))
                .header("x-session-id", &talk.session)
                .body(talk.request().to_string());
            let mut answer = request.send().await.expect("it answers");
            let mut came = Vec::new();
            while came.len() < first.len() {
                // The API says nothing more until this was received.
                let piece = answer.chunk().await.expect("it comes").expect("a piece");
                came.extend_from_slice(&piece);
            }
            assert_eq!(came, first.as_bytes());
            drop(sender);
            assert_eq!(answer.chunk().await.expect("it ends"), None);
            assert_eq!(talk.forbids(&upstream.last().json()), idle == 8);
        }
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_breaks_off_for_the_agent() {
    let upstream = Upstream::start().await;
    let proxy = House::new("broken").proxy(&upstream);
    for idle in [0, 8] {
        let mut talk = Talk::new(Api::Anthropic, true, &format!("{idle}"));
        talk.idles(&proxy, &upstream, idle).await;
        let (sender, reply) = stream();
        upstream.will(reply);
        let first = first_event(&talk);
        sender
            .send(Ok(first.clone().into()))
            .await
            .expect("it is taken");
        let request = proxy
            .client
            .post(format!("{}{}", proxy.url, talk.path()))
            .header("x-session-id", &talk.session)
            .body(talk.request().to_string());
        let mut answer = request.send().await.expect("it answers");
        let mut came = answer
            .chunk()
            .await
            .expect("it comes")
            .expect("a piece")
            .to_vec();
        let reset = std::io::Error::other("reset");
        sender.send(Err(reset)).await.expect("it is taken");
        let ended = loop {
            match answer.chunk().await {
                Ok(Some(piece)) => came.extend_from_slice(&piece),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        assert!(
            !ended,
            "an answer that broke off must not look whole: {idle}"
        );
        assert_eq!(came, first.as_bytes());
    }
}

#[tokio::test]
async fn an_agent_that_hangs_up_ends_the_request_to_the_api() {
    let upstream = Upstream::start().await;
    let proxy = House::new("gone").proxy(&upstream);
    for idle in [0, 8] {
        let mut talk = Talk::new(Api::Chat, true, &format!("{idle}"));
        talk.idles(&proxy, &upstream, idle).await;
        let (sender, reply) = stream();
        upstream.will(reply);
        sender
            .send(Ok(first_event(&talk).into()))
            .await
            .expect("it is taken");
        let request = proxy
            .client
            .post(format!("{}{}", proxy.url, talk.path()))
            .header("x-session-id", &talk.session)
            .body(talk.request().to_string());
        let mut answer = request.send().await.expect("it answers");
        answer.chunk().await.expect("it comes");
        drop(answer);
        // The API's own stream is let go of: nobody is there any more who would read it.
        let gone = tokio::time::timeout(PATIENCE, sender.closed()).await;
        assert!(gone.is_ok(), "the API still talks to nobody");
    }
}

#[tokio::test]
async fn an_api_that_says_nothing_is_waited_for_as_long_as_the_agent_waits() {
    let upstream = Upstream::start().await;
    let proxy = House::new("hangs").proxy(&upstream);
    let talk = Talk::new(Api::Responses, true, "s");
    let mut reply = Reply::of("text/event-stream", "");
    reply.body = Said::Never;
    upstream.will(reply);
    let request = proxy
        .client
        .post(format!("{}{}", proxy.url, talk.path()))
        .timeout(Duration::from_millis(300))
        .body(talk.request().to_string());
    let gave_up = request.send().await.expect_err("nobody answers");
    assert!(gave_up.is_timeout());
    // And the next one is answered.
    upstream.will(talk.answers("Noon."));
    assert_eq!(talk.words(&talk.sends(&proxy).await), "Noon.");
}

#[tokio::test]
async fn events_that_come_in_crumbs_are_read_all_the_same() {
    let upstream = Upstream::start().await;
    let proxy = House::new("crumbs").proxy(&upstream);
    for api in ALL {
        let mut talk = Talk::new(api, true, &format!("{api:?}"));
        talk.idles(&proxy, &upstream, 8).await;
        let body = talk.answering(Some("Wait. "), true).bytes();
        let (sender, reply) = stream();
        upstream.will(reply);
        upstream.will(talk.answers("At noon — or ten past."));
        tokio::spawn(async move {
            for byte in body {
                if sender.send(Ok(Bytes::from(vec![byte]))).await.is_err() {
                    return;
                }
            }
        });
        let answer = talk.sends(&proxy).await;
        assert_eq!(talk.words(&answer), "Wait. At noon — or ten past.");
    }
}
