//! Tests of the embedding client, with slow, truncated and invalid replies.

use std::time::Duration;

use onward_engine::embed::{Embedder, EmbedderError, Purpose};
use onward_testbed::mock_server::{MockServer, Reply};
use serde_json::{Value, json};

use super::embeddings::EmbeddingClient;
use crate::config::{ApiKey, Embeddings};

/// Starts a server that sends these replies.
pub(crate) fn serve(replies: Vec<Reply>) -> MockServer {
    let server = MockServer::start();
    for reply in replies {
        server.enqueue(reply);
    }
    server
}

/// The base URL of the API.
pub(crate) fn base_url(server: &MockServer) -> String {
    format!("{}/v1", server.url)
}

pub(crate) fn failure(status: u16) -> Reply {
    Reply::json(&json!({ "error": { "message": "test error" } })).with_status(status)
}

pub(crate) fn rate_limited() -> Reply {
    failure(429).header("retry-after", "0")
}

fn endpoint(fake: &MockServer, dimensions: Option<u32>) -> EmbeddingClient {
    let config = Embeddings {
        url: base_url(fake),
        model: "m".to_owned(),
        dimensions,
        batch_size: 8,
        timeout_seconds: 1,
        api_key: Some(ApiKey::new("sk-secret")),
    };
    EmbeddingClient::new(&config).with_timeout(Duration::from_millis(300))
}

fn vectors(all: &[(usize, [f32; 2])]) -> Value {
    let data = all
        .iter()
        .map(|(index, numbers)| json!({ "index": index, "embedding": numbers }));
    json!({ "object": "list", "data": data.collect::<Vec<_>>(), "model": "m" })
}

fn texts() -> Vec<String> {
    vec!["one".to_owned(), "two".to_owned()]
}

fn good() -> Reply {
    Reply::json(&vectors(&[(0, [1.0, 0.0]), (1, [0.0, 1.0])]))
}

#[tokio::test]
async fn returns_vectors_in_the_order_of_the_texts() {
    let fake = serve(vec![Reply::json(&vectors(&[
        (1, [0.0, 1.0]),
        (0, [1.0, 0.0]),
    ]))]);
    let endpoint = endpoint(&fake, Some(2));
    let numbers = endpoint.embed(texts(), Purpose::Chunk).await;
    assert_eq!(numbers, Ok(vec![vec![1.0, 0.0], vec![0.0, 1.0]]));
    assert_eq!(endpoint.model(), "m/2");
    let requests = fake.requests();
    assert_eq!(
        (&*requests[0].method, &*requests[0].path),
        ("POST", "/v1/embeddings")
    );
    assert_eq!(requests[0].header("authorization"), "Bearer sk-secret");
    assert_eq!(requests[0].json()["input"], json!(["one", "two"]));
    assert_eq!(requests[0].json()["dimensions"], 2);
}

#[tokio::test]
async fn retries_temporary_failures() {
    for failure in [
        rate_limited(),
        failure(500),
        failure(503),
        failure(408),
        Reply::never(),
        Reply::truncated(&vectors(&[(0, [1.0, 0.0]), (1, [0.0, 1.0])]).to_string()),
        Reply::new("text/html", "<html>"),
    ] {
        let fake = serve(vec![failure, good()]);
        let numbers = endpoint(&fake, None).embed(texts(), Purpose::Chunk).await;
        assert_eq!(numbers.map(|all| all.len()), Ok(2));
        assert_eq!(fake.requests().len(), 2);
    }
}

#[tokio::test]
async fn stops_retrying_after_the_last_attempt() {
    let fake = serve((0..9).map(|_| failure(500)).collect());
    let error = endpoint(&fake, None).embed(texts(), Purpose::Chunk).await;
    assert!(
        matches!(&error, Err(EmbedderError::Unavailable(why)) if why.contains("test error")),
        "{error:?}"
    );
    assert_eq!(fake.requests().len(), 4);
    // A search waits for the query embedding, so there is no retry.
    let fake = serve((0..9).map(|_| failure(500)).collect());
    let error = endpoint(&fake, None).embed(texts(), Purpose::Query).await;
    assert!(error.is_err());
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn does_not_retry_rejected_requests_and_redacts_the_key() {
    let body = r#"{"error": "invalid key sk-secret"}"#.to_owned();
    let fake = serve(vec![
        Reply::new("application/json", body.clone()).with_status(400),
    ]);
    let refused = endpoint(&fake, None).embed(texts(), Purpose::Chunk).await;
    let Err(EmbedderError::Rejected(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("invalid key …"), "{why}");
    let fake = serve(vec![Reply::new("application/json", body).with_status(401)]);
    let error = endpoint(&fake, None).embed(texts(), Purpose::Chunk).await;
    assert!(
        matches!(&error, Err(EmbedderError::Unavailable(why)) if !why.contains("secret")),
        "{error:?}"
    );
    assert_eq!(fake.requests().len(), 1, "an invalid key is not retried");
}

#[tokio::test]
async fn rejects_inconsistent_vectors() {
    for (response, dimensions) in [
        (vectors(&[(0, [1.0, 0.0])]), None),
        (vectors(&[(0, [1.0, 0.0]), (0, [0.0, 1.0])]), None),
        (vectors(&[(0, [1.0, 0.0]), (1, [0.0, 1.0])]), Some(3)),
        (
            json!({ "data": [{ "embedding": [] }, { "embedding": [] }] }),
            None,
        ),
        (
            json!({ "data": [{ "embedding": [1] }, { "embedding": [1, 2] }] }),
            None,
        ),
        (
            json!({ "data": [{ "embedding": ["1"] }, { "embedding": [1] }] }),
            None,
        ),
        (json!({ "error": "no" }), None),
    ] {
        let fake = serve(vec![Reply::json(&response)]);
        let error = endpoint(&fake, dimensions)
            .embed(texts(), Purpose::Chunk)
            .await;
        assert!(
            matches!(error, Err(EmbedderError::Unavailable(_))),
            "{response}: {error:?}"
        );
    }
    let unreachable = {
        let fake = serve(Vec::new());
        endpoint(&fake, None)
    };
    let error = unreachable.embed(texts(), Purpose::Query).await;
    assert!(
        matches!(error, Err(EmbedderError::Unavailable(_))),
        "{error:?}"
    );
}
