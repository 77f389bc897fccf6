//! A test API that sends queued replies and records the requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};

use crate::test_server::TIMEOUT;

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ReceivedRequest {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON body")
    }
}

/// A reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: ReplyBody,
}

/// The body of a reply.
#[derive(Debug)]
pub(crate) enum ReplyBody {
    Complete(Vec<u8>),
    /// Chunks from a channel; an error aborts the connection.
    Chunks(mpsc::Receiver<Result<Bytes, std::io::Error>>),
    /// No reply at all.
    Never,
}

impl Reply {
    pub(crate) fn new(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type", kind.to_owned())],
            body: ReplyBody::Complete(body.into()),
        }
    }

    /// The bytes of a complete body.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        if let ReplyBody::Complete(bytes) = &self.body {
            return bytes.clone();
        }
        panic!("{self:?}")
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A running test API.
pub(crate) struct Upstream {
    pub(crate) url: String,
    state: Arc<UpstreamState>,
}

#[derive(Default)]
struct UpstreamState {
    requests: Mutex<Vec<ReceivedRequest>>,
    received: Notify,
    replies: Mutex<VecDeque<Reply>>,
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("port bound");
        let url = format!("http://{}", listener.local_addr().expect("local address"));
        let state = Arc::new(UpstreamState::default());
        let router = Router::new()
            .fallback(handle)
            .with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, state }
    }

    /// Queues a reply. Without one, the API replies with an empty object.
    pub(crate) fn enqueue(&self, reply: Reply) {
        self.state.replies.lock().unwrap().push_back(reply);
    }

    /// All received requests.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.state.requests.lock().unwrap().clone()
    }

    pub(crate) fn last_request(&self) -> ReceivedRequest {
        self.requests().pop().expect("request received")
    }

    pub(crate) fn request_count(&self) -> usize {
        self.state.requests.lock().unwrap().len()
    }

    /// Waits until a number of requests is received and each has taken its reply.
    pub(crate) async fn wait_for_requests(&self, count: usize) {
        let wait = async {
            loop {
                let received = self.state.received.notified();
                if self.request_count() >= count {
                    return;
                }
                received.await;
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, wait).await;
        waited.expect("requests received before the deadline");
    }
}

async fn handle(State(state): State<Arc<UpstreamState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await;
    let path = parts
        .uri
        .path_and_query()
        .expect("path present")
        .to_string();
    state.requests.lock().unwrap().push(ReceivedRequest {
        method: parts.method.to_string(),
        path,
        headers: parts.headers,
        body: body.unwrap_or_default(),
    });
    let reply = state.replies.lock().unwrap().pop_front();
    state.received.notify_waiters();
    let reply = reply.unwrap_or_else(|| Reply::new("application/json", "{}"));
    let body = match reply.body {
        ReplyBody::Complete(bytes) => Body::from(bytes),
        ReplyBody::Chunks(chunks) => {
            Body::from_stream(stream::unfold(chunks, async |mut chunks| {
                let chunk = chunks.recv().await?;
                Some((chunk, chunks))
            }))
        }
        ReplyBody::Never => {
            std::future::pending::<()>().await;
            Body::empty()
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).expect("valid status");
    for (name, value) in reply.headers {
        let value = HeaderValue::from_str(&value).expect("valid header value");
        response
            .headers_mut()
            .append(HeaderName::from_static(name), value);
    }
    response
}
