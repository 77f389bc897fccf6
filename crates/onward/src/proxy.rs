//! `onward proxy`: a proxy between an agent and its model's API.
//!
//! The proxy forwards requests unchanged, with two exceptions. It repairs a conversation that the
//! API would reject. It injects a text into a looping turn (`monitor.rs`), and finally allows only
//! a text answer (`text_only.rs`). `codec.rs` and one file per API read and write the three
//! supported APIs. Requests that the proxy cannot parse are forwarded as they are: other paths, and
//! bodies that are compressed, too long or not JSON. API keys are forwarded and never stored or
//! logged. `recorder.rs` stores the same facts about a conversation as hooks report.

mod codec;
mod content_coding;
mod forward;
#[cfg(test)]
mod fuzz;
mod monitor;
mod recorder;
mod request;
mod response_reader;
mod session;
mod text_only;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use onward_core::transcript::json::Object;
use onward_core::transcript::{Api, RepairKind, TrailingCalls, repair_request};
use onward_core::turn::LoopControl;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::failure::Result;
use crate::web::listen::listen;
use crate::web::origin::OriginPolicy;
use codec::codec;
use content_coding::ContentCoding;
use forward::{OutgoingRequest, Upstream};
#[cfg(test)]
pub(crate) use fuzz::{read_request, read_response};
use monitor::{Action, ConversationHandle, Monitor};
pub(crate) use recorder::Recorder;
use request::{Request, apply_edits};
use response_reader::{BodyKind, ResponseReader};
use text_only::TextOnlyExchange;

/// The maximum length of a request that is parsed. The APIs do not accept longer ones.
const MAX_REQUEST_BYTES: usize = 32 << 20;
/// The maximum number of concurrent connections.
const MAX_CONNECTIONS: usize = 1_024;
/// How long an agent may read nothing of a response.
const READ_PAUSE: Duration = Duration::from_secs(10 * 60);
/// How long open requests may take after the proxy is stopped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The proxy server.
pub(crate) struct Proxy {
    upstream: Upstream,
    origin_policy: OriginPolicy,
    monitor: Monitor,
}

impl Proxy {
    /// Creates a proxy for the API at `upstream`, or for the vendors' APIs.
    pub(crate) fn new(
        upstream: Option<&str>,
        control: LoopControl,
        recorder: Recorder,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            upstream: Upstream::new(upstream)?,
            origin_policy: OriginPolicy {
                loopback_only: true,
                public: None,
                allowed_origins: Vec::new(),
            },
            monitor: Monitor::new(control, recorder),
        }))
    }

    /// Serves requests until `stop` is set, then waits up to [`SHUTDOWN_TIMEOUT`] for open
    /// requests.
    pub(crate) async fn run(
        self: Arc<Self>,
        listener: TcpListener,
        mut stop: watch::Receiver<bool>,
    ) {
        let router = Router::new().fallback(handle_request).with_state(self);
        let serving = listen(listener, router, MAX_CONNECTIONS, READ_PAUSE, stop.clone());
        let stopping = async {
            // A closed channel stops the proxy as well.
            drop(stop.wait_for(|stop| *stop).await);
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
            tracing::warn!("stopped with open requests");
        };
        tokio::select! {
            () = serving => {}
            () = stopping => {}
        }
    }

    async fn handle(self: Arc<Self>, request: axum::extract::Request) -> Response {
        if self.origin_policy.check(&request).is_err() {
            return forward::error_response(
                None,
                StatusCode::FORBIDDEN,
                "onward proxy: rejected a request from another host or a web page; call it as \
                 `127.0.0.1` or `localhost`",
            );
        }
        let (parts, body) = request.into_parts();
        let api = detect_api(&parts);
        let Some(outgoing) = self.upstream.prepare(&parts, api) else {
            let message = "onward proxy: the request path does not form a valid URL";
            return forward::error_response(api, StatusCode::BAD_REQUEST, message);
        };
        let readable = !parts.headers.contains_key(CONTENT_ENCODING);
        let Some(api) = api.filter(|_| readable) else {
            return self.relay_unread(api, outgoing, Vec::new(), body).await;
        };
        match read_body(body).await {
            Incoming::Complete(body) => {
                self.handle_conversation(api, &parts.headers, outgoing, body)
                    .await
            }
            Incoming::TooLong(read, rest) => {
                self.relay_unread(Some(api), outgoing, read, rest).await
            }
            Incoming::Aborted => {
                let message = "onward proxy: the request body ended early; send it again";
                forward::error_response(Some(api), StatusCode::BAD_REQUEST, message)
            }
        }
    }

    /// Forwards a request that is not parsed.
    async fn relay_unread(
        &self,
        api: Option<Api>,
        outgoing: OutgoingRequest,
        read: Vec<Bytes>,
        rest: Body,
    ) -> Response {
        match self.upstream.stream(outgoing, read, rest).await {
            Ok(response) => forward::relay(response),
            Err(error) => forward::unreachable_response(api, &error),
        }
    }

    /// Handles a request to one of the three APIs, read completely.
    async fn handle_conversation(
        self: Arc<Self>,
        api: Api,
        headers: &HeaderMap,
        mut outgoing: OutgoingRequest,
        body: Bytes,
    ) -> Response {
        // A request is long: it is split once for the repair and for the monitor.
        let fields = std::str::from_utf8(&body).ok().and_then(Object::parse);
        let repaired = fields
            .as_ref()
            .and_then(|fields| repaired_text(api, fields));
        let request = match &repaired {
            Some(text) => Request::parse(api, text),
            None => fields.and_then(|fields| Request::from_fields(api, fields)),
        };
        let Some(request) = request else {
            return self.forward(api, &outgoing, body.clone(), body, None).await;
        };
        let (action, conversation) = self.monitor.decide(headers, &request).await;
        let sent: Bytes = match &action {
            Action::Forward => match &repaired {
                Some(text) => text.clone().into(),
                None => body.clone(),
            },
            Action::Inject(text) => {
                apply_edits(request.text, codec(api).inject(&request, text)).into()
            }
            Action::TextOnly { reminder, .. } => {
                let mut edits = codec(api).inject(&request, reminder);
                edits.extend(codec(api).forbid_tools(&request));
                apply_edits(request.text, edits).into()
            }
        };
        let (
            Action::TextOnly {
                reminder,
                final_message,
            },
            Some(conversation),
        ) = (action, conversation.clone())
        else {
            return self.forward(api, &outgoing, sent, body, conversation).await;
        };
        tracing::info!(
            streaming = request.is_streaming(),
            "tools are disabled: the next response must be text"
        );
        let whole = request.text.to_owned();
        outgoing.disable_compression();
        let first = self.upstream.send(&outgoing, sent).await;
        let exchange = TextOnlyExchange {
            proxy: Arc::clone(&self),
            api,
            outgoing,
            request: whole,
            is_streaming: request.is_streaming(),
            reminder,
            final_message,
            conversation,
        };
        match first {
            Ok(first) if first.status().is_success() => exchange.respond(first).await,
            Ok(first) if is_rejection(first.status()) => {
                tracing::warn!(
                    status = first.status().as_u16(),
                    "the API rejected the request that forbids tools; sending it without tools"
                );
                exchange.respond_to_rejection(first).await
            }
            Ok(first) => forward::relay(first),
            Err(error) => forward::unreachable_response(Some(api), &error),
        }
    }

    /// Sends a request, and relays the response while reading it.
    async fn forward(
        self: Arc<Self>,
        api: Api,
        outgoing: &OutgoingRequest,
        sent: Bytes,
        original: Bytes,
        conversation: Option<ConversationHandle>,
    ) -> Response {
        match self.send_with_fallback(outgoing, sent, original).await {
            Ok(response) => self.relay_observed(api, response, conversation),
            Err(error) => forward::unreachable_response(Some(api), &error),
        }
    }

    /// Sends a request. If the API rejects a modified request, sends the original instead, so that
    /// a modification never makes a request fail.
    async fn send_with_fallback(
        &self,
        outgoing: &OutgoingRequest,
        sent: Bytes,
        original: Bytes,
    ) -> reqwest::Result<reqwest::Response> {
        let changed = sent != original;
        let response = self.upstream.send(outgoing, sent).await?;
        if !changed || !is_rejection(response.status()) {
            return Ok(response);
        }
        tracing::warn!(
            status = response.status().as_u16(),
            "the API rejected the modified request; sending the original"
        );
        drop(response);
        self.upstream.send(outgoing, original).await
    }

    /// Relays a response. Each chunk is read after it has been relayed.
    fn relay_observed(
        self: Arc<Self>,
        api: Api,
        response: reqwest::Response,
        conversation: Option<ConversationHandle>,
    ) -> Response {
        let format = body_format(&response);
        let (Some(conversation), Some((kind, coding))) = (conversation, format) else {
            return forward::relay(response);
        };
        if !response.status().is_success() {
            return forward::relay(response);
        }
        let head = forward::response_head(&response);
        let observed = ObservedBody {
            proxy: self,
            api,
            remaining: response.content_length(),
            response,
            reader: Some(ResponseReader::new(api, kind, coding)),
            last_chunk: None,
            conversation,
        };
        let body = stream::unfold(Some(observed), async |observed| {
            let mut observed = observed?;
            observed.read_last_chunk();
            match observed.response.chunk().await {
                Ok(Some(bytes)) => {
                    observed.last_chunk = Some(bytes.clone());
                    Some((Ok(bytes), Some(observed)))
                }
                Ok(None) => {
                    observed.finish();
                    None
                }
                Err(error) => Some((Err(error), None)),
            }
        });
        head.map(|()| Body::from_stream(body))
    }
}

/// Whether the API does not accept a request.
fn is_rejection(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
    )
}

/// The body of a response that is read while it is relayed.
struct ObservedBody {
    proxy: Arc<Proxy>,
    api: Api,
    response: reqwest::Response,
    /// Bytes still to come, if the response has a length.
    remaining: Option<u64>,
    reader: Option<ResponseReader>,
    /// The chunk that was relayed and is not read yet.
    last_chunk: Option<Bytes>,
    conversation: ConversationHandle,
}

impl ObservedBody {
    fn read_last_chunk(&mut self) {
        let Some(chunk) = self.last_chunk.take() else {
            return;
        };
        self.remaining = self
            .remaining
            .map(|remaining| remaining.saturating_sub(chunk.len() as u64));
        if let Some(reader) = &mut self.reader {
            reader.push(&chunk);
        }
    }

    fn finish(&mut self) {
        if let Some(reader) = self.reader.take() {
            let response = reader.finish();
            self.proxy
                .monitor
                .record_response(&self.conversation, self.api, response);
        }
    }
}

impl Drop for ObservedBody {
    /// The server stops polling a body of known length after its last byte, so the end is detected
    /// here.
    fn drop(&mut self) {
        self.read_last_chunk();
        if self.remaining == Some(0) {
            self.finish();
        }
    }
}

async fn handle_request(
    State(proxy): State<Arc<Proxy>>,
    request: axum::extract::Request,
) -> Response {
    proxy.handle(request).await
}

/// The API of a request, if it is a conversation.
fn detect_api(parts: &Parts) -> Option<Api> {
    let path = parts.uri.path().trim_end_matches('/');
    if parts.method != Method::POST {
        None
    } else if path.ends_with("/v1/messages") {
        Some(Api::Anthropic)
    } else if path.ends_with("/chat/completions") {
        Some(Api::Chat)
    } else if path.ends_with("/responses") {
        Some(Api::Responses)
    } else {
        None
    }
}

/// The repaired text of a request that the API would reject. Cosmetic defects are not repaired.
fn repaired_text(api: Api, fields: &Object<'_>) -> Option<String> {
    let repaired = repair_request(api, fields, TrailingCalls::Answer);
    let rejected = |kind: RepairKind| match kind {
        RepairKind::Dangling
        | RepairKind::Stale
        | RepairKind::Orphan
        | RepairKind::DuplicateResult
        | RepairKind::DuplicateId => true,
        // Responses accepts results that do not directly follow their calls.
        RepairKind::Misplaced => api != Api::Responses,
        RepairKind::BlankRow
        | RepairKind::DuplicateRow
        | RepairKind::Reordered
        | RepairKind::Merged => false,
    };
    if !repaired.repairs.iter().any(|repair| rejected(repair.kind)) {
        return None;
    }
    tracing::info!(
        repairs = repaired.repairs.len(),
        "repaired a conversation that the API would reject"
    );
    Some(repaired.text.into_owned())
}

/// The kind of a response body, if it can be read without decoding.
fn body_kind(response: &reqwest::Response) -> Option<BodyKind> {
    let (kind, coding) = body_format(response)?;
    (coding == ContentCoding::Identity).then_some(kind)
}

/// The kind and the coding of a response body, if they are known.
fn body_format(response: &reqwest::Response) -> Option<(BodyKind, ContentCoding)> {
    let header = |name| response.headers().get(name).map(|value| value.as_bytes());
    let coding = match header(CONTENT_ENCODING) {
        Some(name) => ContentCoding::from_name(name)?,
        None => ContentCoding::Identity,
    };
    match header(CONTENT_TYPE)? {
        kind if kind.starts_with(b"text/event-stream") => Some((BodyKind::EventStream, coding)),
        kind if kind.starts_with(b"application/json") => Some((BodyKind::Json, coding)),
        _ => None,
    }
}

/// A request body.
enum Incoming {
    Complete(Bytes),
    /// Longer than [`MAX_REQUEST_BYTES`]: the chunks read so far, and the rest.
    TooLong(Vec<Bytes>, Body),
    Aborted,
}

async fn read_body(body: Body) -> Incoming {
    let mut rest = body.into_data_stream();
    let mut read: Vec<Bytes> = Vec::new();
    let mut length = 0;
    while let Some(piece) = rest.next().await {
        let Ok(piece) = piece else {
            return Incoming::Aborted;
        };
        length += piece.len();
        read.push(piece);
        if length > MAX_REQUEST_BYTES {
            return Incoming::TooLong(read, Body::from_stream(rest));
        }
    }
    match <[Bytes; 1]>::try_from(read) {
        Ok([only]) => Incoming::Complete(only),
        Err(several) => Incoming::Complete(several.concat().into()),
    }
}
