//! A local HTTP server with scripted replies, including slow, truncated and invalid ones, and the
//! tests of the embedding client.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward_engine::embed::{Embedder, EmbedderError, Purpose};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::embeddings::EmbeddingClient;
use crate::config::{ApiKey, Embeddings};

/// The server's reply to one request.
pub(crate) enum Reply {
    /// Status, headers and body.
    With(u16, &'static str, String),
    /// The first half of the body, then the connection closes.
    Half(String),
    /// No response.
    Silence,
}

impl Reply {
    pub(crate) fn ok(body: &Value) -> Self {
        Reply::With(200, "", body.to_string())
    }

    pub(crate) fn status(status: u16) -> Self {
        Reply::With(
            status,
            "",
            r#"{"error": {"message": "test error"}}"#.to_owned(),
        )
    }
}

/// A received request.
#[derive(Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// A server that sends its replies in order, and then stops accepting.
pub(crate) struct FakeServer {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeServer {
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("port binds");
        let address = listener.local_addr().expect("listener has an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            // Connections without a response stay open.
            let mut open = Vec::new();
            for reply in replies {
                let Ok((connection, _)) = listener.accept().await else {
                    return;
                };
                let mut connection = BufReader::new(connection);
                if let Some(request) = read(&mut connection).await {
                    let mut received = received.lock().expect("mutex is not poisoned");
                    received.push(request);
                }
                let (status, headers, body, sent) = match reply {
                    Reply::With(status, headers, body) => {
                        let sent = body.len();
                        (status, headers, body, sent)
                    }
                    Reply::Half(body) => {
                        let sent = body.len() / 2;
                        (200, "", body, sent)
                    }
                    Reply::Silence => {
                        open.push(connection);
                        continue;
                    }
                };
                let head = format!(
                    "HTTP/1.1 {status} Test\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
                    body.len()
                );
                let mut response = head.into_bytes();
                response.extend_from_slice(&body.as_bytes()[..sent]);
                // The client may have disconnected.
                drop(connection.write_all(&response).await);
                drop(connection.shutdown().await);
            }
        });
        Self {
            url: format!("http://{address}/v1"),
            requests,
            task,
        }
    }

    /// The requests received so far.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().expect("mutex is not poisoned").clone()
    }
}

async fn read(connection: &mut BufReader<TcpStream>) -> Option<RecordedRequest> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await.ok()?;
        if line.trim().is_empty() {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).ok()?;
    Some(RecordedRequest { head, body })
}

fn endpoint(fake: &FakeServer, dimensions: Option<u32>) -> EmbeddingClient {
    let config = Embeddings {
        url: fake.url.clone(),
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
    Reply::ok(&vectors(&[(0, [1.0, 0.0]), (1, [0.0, 1.0])]))
}

#[tokio::test]
async fn returns_vectors_in_the_order_of_the_texts() {
    let fake = FakeServer::start(vec![Reply::ok(&vectors(&[
        (1, [0.0, 1.0]),
        (0, [1.0, 0.0]),
    ]))])
    .await;
    let endpoint = endpoint(&fake, Some(2));
    let numbers = endpoint.embed(texts(), Purpose::Chunk).await;
    assert_eq!(numbers, Ok(vec![vec![1.0, 0.0], vec![0.0, 1.0]]));
    assert_eq!(endpoint.model(), "m/2");
    let requests = fake.requests();
    let head = requests[0].head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/embeddings "), "{head}");
    assert!(head.contains("authorization: bearer sk-secret"), "{head}");
    assert_eq!(requests[0].body["input"], json!(["one", "two"]));
    assert_eq!(requests[0].body["dimensions"], 2);
}

#[tokio::test]
async fn retries_temporary_failures() {
    let retry_after = "retry-after: 0\r\n";
    for failure in [
        Reply::With(429, retry_after, "{}".to_owned()),
        Reply::status(500),
        Reply::status(503),
        Reply::status(408),
        Reply::Silence,
        Reply::Half(vectors(&[(0, [1.0, 0.0]), (1, [0.0, 1.0])]).to_string()),
        Reply::With(200, "", "<html>".to_owned()),
    ] {
        let fake = FakeServer::start(vec![failure, good()]).await;
        let numbers = endpoint(&fake, None).embed(texts(), Purpose::Chunk).await;
        assert_eq!(numbers.map(|all| all.len()), Ok(2));
        assert_eq!(fake.requests().len(), 2);
    }
}

#[tokio::test]
async fn stops_retrying_after_the_last_attempt() {
    let fake = FakeServer::start((0..9).map(|_| Reply::status(500)).collect()).await;
    let error = endpoint(&fake, None).embed(texts(), Purpose::Chunk).await;
    assert!(
        matches!(&error, Err(EmbedderError::Unavailable(why)) if why.contains("test error")),
        "{error:?}"
    );
    assert_eq!(fake.requests().len(), 4);
    // A search waits for the query embedding, so there is no retry.
    let fake = FakeServer::start((0..9).map(|_| Reply::status(500)).collect()).await;
    let error = endpoint(&fake, None).embed(texts(), Purpose::Query).await;
    assert!(error.is_err());
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn does_not_retry_rejected_requests_and_redacts_the_key() {
    let body = r#"{"error": "invalid key sk-secret"}"#.to_owned();
    let fake = FakeServer::start(vec![Reply::With(400, "", body.clone())]).await;
    let refused = endpoint(&fake, None).embed(texts(), Purpose::Chunk).await;
    let Err(EmbedderError::Rejected(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("invalid key …"), "{why}");
    let fake = FakeServer::start(vec![Reply::With(401, "", body)]).await;
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
        let fake = FakeServer::start(vec![Reply::ok(&response)]).await;
        let error = endpoint(&fake, dimensions)
            .embed(texts(), Purpose::Chunk)
            .await;
        assert!(
            matches!(error, Err(EmbedderError::Unavailable(_))),
            "{response}: {error:?}"
        );
    }
    let unreachable = {
        let fake = FakeServer::start(Vec::new()).await;
        endpoint(&fake, None)
    };
    let error = unreachable.embed(texts(), Purpose::Query).await;
    assert!(
        matches!(error, Err(EmbedderError::Unavailable(_))),
        "{error:?}"
    );
}
