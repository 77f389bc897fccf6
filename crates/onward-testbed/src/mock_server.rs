//! An HTTP server in the test process that records requests and sends prepared replies: a model
//! API, an identity provider, a webhook receiver or a trace collector.
//!
//! It runs on a separate thread, so that tests without an async runtime can use it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use crate::TIMEOUT;

/// A received request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// The method.
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl ReceivedRequest {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("body is JSON")
    }

    /// A header; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("header is text"))
    }
}

/// A reply.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: ReplyBody,
}

/// The body of a reply.
#[derive(Debug)]
pub enum ReplyBody {
    /// All bytes together.
    Complete(Vec<u8>),
    /// Chunks from a channel; an error aborts the connection.
    Chunks(mpsc::Receiver<Result<Bytes, std::io::Error>>),
    /// No reply at all.
    Never,
}

impl Reply {
    /// A reply with status 200 and this content type.
    pub fn new(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type", content_type.to_owned())],
            body: ReplyBody::Complete(body.into()),
        }
    }

    /// A JSON reply with status 200.
    pub fn json(body: &Value) -> Self {
        Self::new("application/json", body.to_string())
    }

    /// A reply without a body.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: ReplyBody::Complete(Vec::new()),
        }
    }

    /// The request is received and never replied to.
    pub fn never() -> Self {
        Self {
            body: ReplyBody::Never,
            ..Self::status(200)
        }
    }

    /// Half of a body with status 200, then the connection closes.
    pub fn truncated(body: &str) -> Self {
        let (sender, chunks) = mpsc::channel(2);
        let half = Bytes::copy_from_slice(&body.as_bytes()[..body.len() / 2]);
        for chunk in [Ok(half), Err(std::io::ErrorKind::ConnectionAborted.into())] {
            sender.try_send(chunk).expect("channel has space");
        }
        Self {
            body: ReplyBody::Chunks(chunks),
            ..Self::status(200)
        }
    }

    /// The bytes of a complete body.
    pub fn bytes(&self) -> Vec<u8> {
        if let ReplyBody::Complete(bytes) = &self.body {
            return bytes.clone();
        }
        panic!("{self:?}")
    }

    /// Sets the status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

type Handler = dyn Fn(&ReceivedRequest) -> Reply + Send + Sync;

struct Shared {
    requests: Mutex<Vec<ReceivedRequest>>,
    received: Notify,
    replies: Mutex<VecDeque<Reply>>,
    handler: Box<Handler>,
}

/// A running server. It runs until the test process exits.
pub struct MockServer {
    /// `http://address:port`.
    pub url: String,
    shared: Arc<Shared>,
}

impl MockServer {
    /// Starts a server that sends queued replies, and then empty JSON objects.
    pub fn start() -> Self {
        Self::with_handler(|_| Reply::new("application/json", "{}"))
    }

    /// Starts a server that sends queued replies, and then those of a function.
    pub fn with_handler(
        handler: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("port bound");
        listener.set_nonblocking(true).expect("socket option set");
        let url = format!("http://{}", listener.local_addr().expect("local address"));
        let shared = Arc::new(Shared {
            requests: Mutex::default(),
            received: Notify::new(),
            replies: Mutex::default(),
            handler: Box::new(handler),
        });
        let router = Router::new()
            .fallback(handle)
            .with_state(Arc::clone(&shared));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("runtime started").block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener);
                axum::serve(listener.expect("listener registered"), router).await
            })
        });
        Self { url, shared }
    }

    /// Queues a reply.
    pub fn enqueue(&self, reply: Reply) {
        lock(&self.shared.replies).push_back(reply);
    }

    /// All received requests.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        lock(&self.shared.requests).clone()
    }

    /// The last received request.
    pub fn last_request(&self) -> ReceivedRequest {
        self.requests().pop().expect("request received")
    }

    /// The number of received requests.
    pub fn request_count(&self) -> usize {
        lock(&self.shared.requests).len()
    }

    /// Waits until a number of requests is received and each has taken its reply. Returns all
    /// requests.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<ReceivedRequest> {
        let wait = async {
            loop {
                let received = self.shared.received.notified();
                if self.request_count() >= count {
                    return self.requests();
                }
                received.await;
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, wait).await;
        waited.unwrap_or_else(|_| panic!("{} requests, not {count}", self.request_count()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await;
    let path = parts.uri.path_and_query().map(ToString::to_string);
    let request = ReceivedRequest {
        method: parts.method.to_string(),
        path: path.unwrap_or_default(),
        headers: parts.headers,
        body: body.unwrap_or_default(),
    };
    lock(&shared.requests).push(request.clone());
    let queued = lock(&shared.replies).pop_front();
    let reply = queued.unwrap_or_else(|| (shared.handler)(&request));
    shared.received.notify_waiters();
    respond(reply).await
}

async fn respond(reply: Reply) -> Response {
    let body = match reply.body {
        ReplyBody::Complete(bytes) => Body::from(bytes),
        ReplyBody::Chunks(chunks) => {
            Body::from_stream(stream::unfold(chunks, async |mut chunks| {
                let chunk = chunks.recv().await?;
                Some((chunk, chunks))
            }))
        }
        ReplyBody::Never => std::future::pending().await,
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
