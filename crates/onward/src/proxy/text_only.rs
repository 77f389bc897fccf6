//! A request that must be answered in text, and the handling of tool calls despite that.
//!
//! The request forbids tool calls. If the response calls a tool anyway, the proxy sends a second
//! request without tools. If that response calls a tool as well or the request fails, the proxy
//! ends the turn with a final message. Streamed text is relayed immediately. At the first call, the
//! text of the second response replaces the rest of the first, so the agent receives one complete
//! response.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream;
use onward_core::transcript::Api;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::codec::{EventContent, ModelResponse, codec};
use super::forward::{self, OutgoingRequest};
use super::monitor::ConversationHandle;
use super::response_reader::{BodyKind, SseParser};
use super::{Proxy, body_kind};

/// The maximum length of a JSON body that is read; longer ones are relayed unread.
const MAX_BUFFERED_BYTES: usize = 16 << 20;
/// The maximum number of chunks that wait for the agent.
const CHANNEL_CAPACITY: usize = 16;

/// A text-only request, with everything needed to repeat it without tools.
pub(super) struct TextOnlyExchange {
    pub(super) proxy: Arc<Proxy>,
    pub(super) api: Api,
    pub(super) outgoing: OutgoingRequest,
    /// The request of the agent, repaired if necessary.
    pub(super) request: String,
    pub(super) is_streaming: bool,
    pub(super) reminder: String,
    pub(super) final_message: String,
    pub(super) conversation: ConversationHandle,
}

type BodySender = mpsc::Sender<Result<Bytes, std::io::Error>>;

impl TextOnlyExchange {
    /// Relays the response to the request, or replaces it by a text answer.
    pub(super) async fn respond(self, first: reqwest::Response) -> Response {
        match body_kind(&first) {
            Some(BodyKind::EventStream) => self.respond_stream(first),
            Some(BodyKind::Json) => self.respond_json(first).await,
            None => forward::relay(first),
        }
    }

    /// Responds after the API rejected the request that forbids tools: with the text of a second
    /// request without tools, or with the final message. An error that does not concern tools, such
    /// as a conversation that is too long, is relayed if the second request fails as well.
    pub(super) async fn respond_to_rejection(self, first: reqwest::Response) -> Response {
        let head = forward::response_head(&first);
        let second = self.retry_without_tools().await;
        if second.is_none()
            && let BufferedBody::Complete(body) = buffer_body(first).await
            && !String::from_utf8_lossy(&body).contains("tool")
        {
            return head.map(|()| Body::from(body));
        }
        if let Some(second) = second {
            let is_json = body_kind(&second) == Some(BodyKind::Json);
            if !self.is_streaming && is_json {
                let head = forward::response_head(&second);
                if let BufferedBody::Complete(body) = buffer_body(second).await
                    && self.parse_text_answer(&body).is_some()
                {
                    self.proxy.monitor.end_turn(&self.conversation);
                    return head.map(|()| Body::from(body));
                }
            } else if self.is_streaming {
                return self.stream_text(Response::new(()), Some(second));
            }
        }
        if self.is_streaming {
            return self.stream_text(Response::new(()), None);
        }
        self.proxy.monitor.end_turn(&self.conversation);
        let response = ModelResponse::placeholder();
        let body = json!({ "id": response.id, "model": response.model });
        self.final_body(body, Response::new(()))
    }

    /// A streamed response with the text of the second response, or the final message.
    fn stream_text(self, mut head: Response<()>, second: Option<reqwest::Response>) -> Response {
        let kind = HeaderValue::from_static("text/event-stream");
        head.headers_mut().insert(CONTENT_TYPE, kind);
        self.respond_with_task(head, move |exchange, sender| {
            let response = ModelResponse::placeholder();
            exchange.write_text(response, second, sender)
        })
    }

    /// A JSON response with the final message as its only content.
    fn final_body(&self, body: Value, head: Response<()>) -> Response {
        let text = codec(self.api).text_body(body, &self.final_message);
        let mut response = head.map(|()| Body::from(text.to_string()));
        *response.status_mut() = StatusCode::OK;
        response.headers_mut().remove(CONTENT_LENGTH);
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    async fn respond_json(self, first: reqwest::Response) -> Response {
        let head = forward::response_head(&first);
        let body = match buffer_body(first).await {
            BufferedBody::Complete(body) => body,
            BufferedBody::Incomplete(body) => return head.map(|()| body),
        };
        let relay = |head: Response<()>, body: Bytes| head.map(|()| Body::from(body));
        let Ok(value) = serde_json::from_slice::<Value>(&body) else {
            return relay(head, body);
        };
        let mut response = ModelResponse::placeholder();
        codec(self.api).read_body(&mut response, &value);
        self.proxy
            .monitor
            .record_usage(&self.conversation, &response);
        if !response.started {
            return relay(head, body);
        }
        if response.is_text_answer() {
            self.proxy.monitor.end_turn(&self.conversation);
            return relay(head, body);
        }
        let retried = self.retry_without_tools().await;
        self.proxy.monitor.end_turn(&self.conversation);
        if let Some(second) = retried
            && body_kind(&second) == Some(BodyKind::Json)
        {
            let head = forward::response_head(&second);
            if let BufferedBody::Complete(body) = buffer_body(second).await
                && self.parse_text_answer(&body).is_some()
            {
                return relay(head, body);
            }
        }
        self.final_body(value, head)
    }

    /// The text of a response body without calls.
    fn parse_text_answer(&self, body: &[u8]) -> Option<String> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let mut response = ModelResponse::placeholder();
        codec(self.api).read_body(&mut response, &value);
        self.proxy
            .monitor
            .record_usage(&self.conversation, &response);
        (response.is_text_answer() && !response.text.trim().is_empty()).then_some(response.text)
    }

    fn respond_stream(self, first: reqwest::Response) -> Response {
        let mut head = forward::response_head(&first);
        head.headers_mut().remove(CONTENT_LENGTH);
        self.respond_with_task(head, move |exchange, sender| {
            exchange.relay_streams(first, sender)
        })
    }

    /// A streamed response whose body a task writes. If the agent disconnects, the task is
    /// cancelled, and with it the upstream request.
    fn respond_with_task<F, W>(self, head: Response<()>, write: W) -> Response
    where
        W: FnOnce(Self, BodySender) -> F + Send + 'static,
        F: Future<Output = ()> + Send,
    {
        let (sender, receiver) = mpsc::channel(CHANNEL_CAPACITY);
        tokio::spawn(async move {
            let open = sender.clone();
            tokio::select! {
                () = open.closed() => {}
                () = write(self, sender) => {}
            }
        });
        let body = stream::unfold(receiver, async |mut receiver| {
            let chunk = receiver.recv().await?;
            Some((chunk, receiver))
        });
        head.map(|()| Body::from_stream(body))
    }

    /// Relays the first response up to its first call, then the text of the second one.
    async fn relay_streams(self, mut first: reqwest::Response, sender: BodySender) {
        let sender = &sender;
        let mut response = ModelResponse::placeholder();
        let mut events = SseParser::default();
        'call: loop {
            match first.chunk().await {
                Ok(Some(bytes)) => {
                    events.push(&bytes);
                    while let Some(event) = events.next_event() {
                        if event.apply(self.api, &mut response) == EventContent::ToolCall {
                            break 'call;
                        }
                        send_chunk(sender, event.raw).await;
                    }
                }
                Ok(None) => {
                    send_chunk(sender, events.into_rest()).await;
                    self.proxy
                        .monitor
                        .record_usage(&self.conversation, &response);
                    if response.finished {
                        self.proxy.monitor.end_turn(&self.conversation);
                    }
                    return;
                }
                Err(error) => {
                    // Relay the failure: a truncated response must not look complete.
                    drop(sender.send(Err(std::io::Error::other(error))).await);
                    return;
                }
            }
        }
        drop(first);
        response.finished = false;
        let second = self.retry_without_tools().await;
        self.write_text(response, second, sender.clone()).await;
    }

    /// Continues a response with the text of the second one, or with the final message.
    async fn write_text(
        self,
        response: ModelResponse,
        second: Option<reqwest::Response>,
        sender: BodySender,
    ) {
        let sender = &sender;
        let mut writer = TextWriter {
            api: self.api,
            response,
            text: String::new(),
            started: false,
        };
        let is_complete = match second {
            Some(second) => self.relay_retry(second, &mut writer, sender).await,
            None => false,
        };
        if !is_complete {
            let separator = if writer.text.is_empty() { "" } else { "\n\n" };
            let text = format!("{separator}{}", self.final_message);
            send_chunk(sender, writer.write(&text).into_bytes()).await;
        }
        send_chunk(sender, writer.finish().into_bytes()).await;
        self.proxy.monitor.end_turn(&self.conversation);
    }

    /// Relays the text of the second response. Returns whether it is a complete text answer.
    async fn relay_retry(
        &self,
        mut second: reqwest::Response,
        writer: &mut TextWriter,
        sender: &BodySender,
    ) -> bool {
        if body_kind(&second) == Some(BodyKind::Json) {
            let BufferedBody::Complete(body) = buffer_body(second).await else {
                return false;
            };
            let Some(text) = self.parse_text_answer(&body) else {
                return false;
            };
            send_chunk(sender, writer.write(&text).into_bytes()).await;
            return true;
        }
        let mut events = SseParser::default();
        let mut response = ModelResponse::placeholder();
        while let Ok(Some(bytes)) = second.chunk().await {
            events.push(&bytes);
            while let Some(event) = events.next_event() {
                match event.apply(self.api, &mut response) {
                    EventContent::Text(text) => {
                        writer.adopt_identity(&response);
                        send_chunk(sender, writer.write(&text).into_bytes()).await;
                    }
                    EventContent::ToolCall => return false,
                    EventContent::Other => {}
                }
            }
        }
        self.proxy
            .monitor
            .record_usage(&self.conversation, &response);
        response.finished && !writer.text.trim().is_empty()
    }

    /// Repeats the request without tools. Returns the response if it is successful and readable.
    async fn retry_without_tools(&self) -> Option<reqwest::Response> {
        let request: Value = serde_json::from_str(&self.request).ok()?;
        let request = codec(self.api).without_tools(request, &self.reminder);
        let sent = self
            .proxy
            .upstream
            .send(&self.outgoing, request.to_string().into());
        let response = sent.await.ok()?;
        let readable = body_kind(&response).is_some();
        (response.status().is_success() && readable).then_some(response)
    }
}

/// Writes text into a response that the upstream server started.
struct TextWriter {
    api: Api,
    response: ModelResponse,
    text: String,
    started: bool,
}

impl TextWriter {
    /// Writes as the response with this identity, unless another one has started.
    fn adopt_identity(&mut self, response: &ModelResponse) {
        if !self.started && !self.response.started {
            self.response.id.clone_from(&response.id);
            self.response.model.clone_from(&response.model);
            self.response.created.clone_from(&response.created);
        }
    }

    fn write(&mut self, text: &str) -> String {
        let mut out = String::new();
        if !std::mem::replace(&mut self.started, true) {
            out.push_str(&codec(self.api).begin_text(&mut self.response));
        }
        self.text.push_str(text);
        out.push_str(&codec(self.api).text_delta(&mut self.response, text));
        out
    }

    fn finish(&mut self) -> String {
        codec(self.api).end_text(&mut self.response, &self.text)
    }
}

async fn send_chunk(sender: &BodySender, bytes: impl Into<Bytes>) {
    let bytes = bytes.into();
    if !bytes.is_empty() {
        // An error means that the agent has disconnected, which cancels the task.
        drop(sender.send(Ok(bytes)).await);
    }
}

enum BufferedBody {
    Complete(Bytes),
    /// Too long or truncated: the bytes read so far, and the rest.
    Incomplete(Body),
}

/// Reads a response body, up to the maximum length.
async fn buffer_body(mut response: reqwest::Response) -> BufferedBody {
    let mut read = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) => read.extend_from_slice(&bytes),
            Ok(None) => return BufferedBody::Complete(read.into()),
            Err(error) => {
                let pieces: [Result<Bytes, std::io::Error>; 2] =
                    [Ok(read.into()), Err(std::io::Error::other(error))];
                return BufferedBody::Incomplete(Body::from_stream(stream::iter(pieces)));
            }
        }
        if read.len() > MAX_BUFFERED_BYTES {
            let rest = stream::unfold(response, async |mut response| {
                let chunk = response.chunk().await.transpose()?;
                Some((chunk, response))
            });
            let read = stream::iter([Ok(Bytes::from(read))]);
            use futures_util::StreamExt;
            return BufferedBody::Incomplete(Body::from_stream(read.chain(rest)));
        }
    }
}
