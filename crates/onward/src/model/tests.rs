//! A server on this machine that answers as it is told, also as no server should: slowly, half, or with
//! something else. What is made of that, for embeddings.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward_engine::embed::{Embedder, NotEmbedded, Purpose};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::embeddings::Endpoint;
use crate::config::{Embeddings, Key, Setting, Source};

/// What the server does with one request.
pub(crate) enum Reply {
    /// Answers with this status, these headers and this body.
    With(u16, &'static str, String),
    /// Answers with the first half of this body, and hangs up.
    Half(String),
    /// Never answers.
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
            r#"{"error": {"message": "not today"}}"#.to_owned(),
        )
    }
}

/// A request as it came in.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// A server that gives its replies one after the other, and then none.
pub(crate) struct Fake {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    pub(crate) async fn with(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            for reply in replies {
                let Ok((line, _)) = listener.accept().await else {
                    return;
                };
                let mut line = BufReader::new(line);
                if let Some(request) = read(&mut line).await {
                    heard.lock().expect("no test panics here").push(request);
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
                        held.push(line);
                        continue;
                    }
                };
                let head = format!(
                    "HTTP/1.1 {status} Told\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
                    body.len()
                );
                let mut answer = head.into_bytes();
                answer.extend_from_slice(&body.as_bytes()[..sent]);
                // Whoever asked may have gone away.
                drop(line.write_all(&answer).await);
                drop(line.shutdown().await);
            }
        });
        Self {
            url: format!("http://{address}/v1"),
            asked,
            task,
        }
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no test panics here").clone()
    }
}

async fn read(line: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut one = String::new();
        line.read_line(&mut one).await.ok()?;
        if one.trim().is_empty() {
            break;
        }
        let lower = one.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&one);
    }
    let mut body = vec![0; length];
    line.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).ok()?;
    Some(Asked { head, body })
}

pub(crate) fn setting<T>(value: T) -> Setting<T> {
    Setting {
        value,
        from: Source::Default,
    }
}

fn endpoint(fake: &Fake, dimensions: Option<u32>) -> Endpoint {
    let config = Embeddings {
        url: setting(Some(fake.url.clone())),
        model: setting(Some("m".to_owned())),
        dimensions: setting(dimensions),
        batch_size: setting(8),
        timeout_seconds: setting(1),
        key: Some(Key::new("sk-secret")),
    };
    let endpoint = Endpoint::of(&config).expect("it is configured");
    endpoint.hurried(Duration::from_millis(300))
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
async fn numbers_come_in_the_order_of_the_texts() {
    let fake = Fake::with(vec![Reply::ok(&vectors(&[
        (1, [0.0, 1.0]),
        (0, [1.0, 0.0]),
    ]))])
    .await;
    let endpoint = endpoint(&fake, Some(2));
    let numbers = endpoint.embed(texts(), Purpose::Chunk).await;
    assert_eq!(numbers, Ok(vec![vec![1.0, 0.0], vec![0.0, 1.0]]));
    assert_eq!(endpoint.model(), "m/2");
    let asked = fake.asked();
    let head = asked[0].head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/embeddings "), "{head}");
    assert!(head.contains("authorization: bearer sk-secret"), "{head}");
    assert_eq!(asked[0].body["input"], json!(["one", "two"]));
    assert_eq!(asked[0].body["dimensions"], 2);
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    let later = "retry-after: 0\r\n";
    for trouble in [
        Reply::With(429, later, "{}".to_owned()),
        Reply::status(500),
        Reply::status(503),
        Reply::status(408),
        Reply::Silence,
        Reply::Half(vectors(&[(0, [1.0, 0.0]), (1, [0.0, 1.0])]).to_string()),
        Reply::With(200, "", "<html>".to_owned()),
    ] {
        let fake = Fake::with(vec![trouble, good()]).await;
        let numbers = endpoint(&fake, None).embed(texts(), Purpose::Chunk).await;
        assert_eq!(numbers.map(|all| all.len()), Ok(2));
        assert_eq!(fake.asked().len(), 2);
    }
}

#[tokio::test]
async fn nobody_is_asked_for_ever() {
    let fake = Fake::with((0..9).map(|_| Reply::status(500)).collect()).await;
    let away = endpoint(&fake, None).embed(texts(), Purpose::Chunk).await;
    assert!(
        matches!(&away, Err(NotEmbedded::Away(why)) if why.contains("not today")),
        "{away:?}"
    );
    assert_eq!(fake.asked().len(), 4);
    // Somebody waits for their search: once is enough.
    let fake = Fake::with((0..9).map(|_| Reply::status(500)).collect()).await;
    let away = endpoint(&fake, None).embed(texts(), Purpose::Query).await;
    assert!(away.is_err());
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn what_is_refused_is_not_tried_again_and_no_key_is_told() {
    let said = r#"{"error": "the key sk-secret may not"}"#.to_owned();
    let fake = Fake::with(vec![Reply::With(400, "", said.clone())]).await;
    let refused = endpoint(&fake, None).embed(texts(), Purpose::Chunk).await;
    let Err(NotEmbedded::Refused(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("the key … may not"), "{why}");
    let fake = Fake::with(vec![Reply::With(401, "", said)]).await;
    let away = endpoint(&fake, None).embed(texts(), Purpose::Chunk).await;
    assert!(
        matches!(&away, Err(NotEmbedded::Away(why)) if !why.contains("secret")),
        "{away:?}"
    );
    assert_eq!(fake.asked().len(), 1, "a wrong key stays wrong");
}

#[tokio::test]
async fn numbers_that_do_not_fit_are_none() {
    for (answer, dimensions) in [
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
        let fake = Fake::with(vec![Reply::ok(&answer)]).await;
        let away = endpoint(&fake, dimensions)
            .embed(texts(), Purpose::Chunk)
            .await;
        assert!(
            matches!(away, Err(NotEmbedded::Away(_))),
            "{answer}: {away:?}"
        );
    }
    let nowhere = {
        let fake = Fake::with(Vec::new()).await;
        endpoint(&fake, None)
    };
    let away = nowhere.embed(texts(), Purpose::Query).await;
    assert!(matches!(away, Err(NotEmbedded::Away(_))), "{away:?}");
}
