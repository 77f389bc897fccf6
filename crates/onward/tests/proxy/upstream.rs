//! An API that answers what a test says, and remembers what it was asked.

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
use tokio::sync::mpsc;

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// What is answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Said,
}

/// How the body comes.
#[derive(Debug)]
pub(crate) enum Said {
    Whole(Vec<u8>),
    /// Piece by piece, as a test gives them; an error breaks it off.
    Pieces(mpsc::Receiver<Result<Bytes, std::io::Error>>),
    /// Not at all.
    Never,
}

impl Reply {
    pub(crate) fn of(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type", kind.to_owned())],
            body: Said::Whole(body.into()),
        }
    }

    /// The bytes of one that is said as a whole.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        if let Said::Whole(bytes) = &self.body {
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

/// An API on a port of its own.
pub(crate) struct Upstream {
    pub(crate) url: String,
    desk: Arc<Desk>,
}

#[derive(Default)]
struct Desk {
    seen: Mutex<Vec<Seen>>,
    replies: Mutex<VecDeque<Reply>>,
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let desk = Arc::new(Desk::default());
        let site = Router::new().fallback(answer).with_state(Arc::clone(&desk));
        tokio::spawn(async move { axum::serve(listener, site).await });
        Self { url, desk }
    }

    /// What the next request that nobody has an answer for is answered.
    pub(crate) fn will(&self, reply: Reply) {
        self.desk.replies.lock().unwrap().push_back(reply);
    }

    /// Everything that was asked.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.desk.seen.lock().unwrap().clone()
    }

    pub(crate) fn last(&self) -> Seen {
        self.seen().pop().expect("it was asked")
    }

    pub(crate) fn count(&self) -> usize {
        self.desk.seen.lock().unwrap().len()
    }
}

async fn answer(State(desk): State<Arc<Desk>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await;
    let path = parts.uri.path_and_query().expect("a path").to_string();
    desk.seen.lock().unwrap().push(Seen {
        method: parts.method.to_string(),
        path,
        headers: parts.headers,
        body: body.unwrap_or_default(),
    });
    let reply = desk.replies.lock().unwrap().pop_front();
    let reply = reply.unwrap_or_else(|| Reply::of("application/json", "{}"));
    let body = match reply.body {
        Said::Whole(bytes) => Body::from(bytes),
        Said::Pieces(pieces) => Body::from_stream(stream::unfold(pieces, async |mut pieces| {
            let piece = pieces.recv().await?;
            Some((piece, pieces))
        })),
        Said::Never => {
            std::future::pending::<()>().await;
            Body::empty()
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).expect("a status");
    for (name, value) in reply.headers {
        let value = HeaderValue::from_str(&value).expect("a value");
        response
            .headers_mut()
            .append(HeaderName::from_static(name), value);
    }
    response
}
