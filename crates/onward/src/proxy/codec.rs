//! The codec of an API: reads and writes requests and responses. Each API has its own file.
//!
//! A codec parses rows of a conversation and events of a response, edits requests, and continues a
//! response that the upstream server started. It does not track turns and does no I/O.

mod anthropic;
mod chat;
mod responses;

use onward_core::transcript::Api;
use onward_core::usage::TokenUsage;
use serde_json::{Value, json};

use super::request::{Edit, Request, Row, ToolCall};

/// Reads and writes the format of one API.
pub(super) trait Codec: Sync {
    /// Parses a row.
    fn parse_row(&self, row: &Value) -> Row;

    /// The edits that append a text for the model to the conversation.
    fn inject(&self, request: &Request<'_>, text: &str) -> Vec<Edit>;

    /// The edits that forbid tool calls. The tool definitions stay.
    fn forbid_tools(&self, request: &Request<'_>) -> Vec<Edit>;

    /// The request without tools: calls and results are converted to text, and `text` is appended.
    fn without_tools(&self, request: Value, text: &str) -> Value;

    /// Adds an event of a streamed response to `response`.
    fn read_event(&self, response: &mut ModelResponse, event: &Value) -> EventContent;

    /// Adds a JSON response body to `response`.
    fn read_body(&self, response: &mut ModelResponse, body: &Value);

    /// A copy of a JSON response body with `text` as its only content.
    fn text_body(&self, body: Value, text: &str) -> Value;

    /// The events that start a text in a streamed response, and the response itself if necessary.
    fn begin_text(&self, response: &mut ModelResponse) -> String;

    /// The event with a part of that text.
    fn text_delta(&self, response: &mut ModelResponse, text: &str) -> String;

    /// The events that end that text and the response.
    fn end_text(&self, response: &mut ModelResponse, text: &str) -> String;

    /// An error body in the format of the API.
    fn error_body(&self, message: &str) -> Value;
}

/// The codec of an API.
pub(super) fn codec(api: Api) -> &'static dyn Codec {
    match api {
        Api::Anthropic => &anthropic::Anthropic,
        Api::Chat => &chat::Chat,
        Api::Responses => &responses::Responses,
    }
}

/// The content of an event of a streamed response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventContent {
    /// Text for the user.
    Text(String),
    /// The start of a tool call.
    ToolCall,
    /// Anything else.
    Other,
}

/// The part of a model response that was read so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ModelResponse {
    /// The response id.
    pub(super) id: String,
    /// The model.
    pub(super) model: Value,
    /// The creation time, if the API reports one.
    pub(super) created: Value,
    /// Whether the start was read.
    pub(super) started: bool,
    /// Whether the end was read and the model ended the response.
    pub(super) finished: bool,
    /// The tool calls.
    pub(super) calls: Vec<ToolCall>,
    /// The text of a JSON body, or the beginning of the text of an event stream.
    pub(super) text: String,
    /// The number of content blocks or items.
    pub(super) block_count: u64,
    /// The sequence number of the next event, if events are numbered.
    pub(super) next_sequence: u64,
    /// The completed items, repeated in the last event of Responses.
    pub(super) completed_items: Vec<Value>,
    /// The response object, repeated in the last event of Responses.
    pub(super) response: Value,
    /// The token counts, if the API reported them.
    pub(super) usage: Option<TokenUsage>,
}

impl ModelResponse {
    /// A response with placeholder ids, for the case that the upstream server sends none.
    pub(super) fn placeholder() -> Self {
        Self {
            id: "onward".to_owned(),
            model: json!("onward"),
            created: json!(0),
            ..Self::default()
        }
    }

    /// Sets the id and the model from a response object.
    pub(super) fn set_identity(&mut self, source: &Value) {
        if let Some(id) = source["id"].as_str() {
            id.clone_into(&mut self.id);
        }
        if source["model"].is_string() {
            self.model = source["model"].clone();
        }
    }

    /// Sets the token counts of OpenAI's formats. The cached tokens are included in the input.
    pub(super) fn set_usage(&mut self, usage: &Value, input: &str, output: &str) {
        let (Some(all), Some(output)) = (usage[input].as_u64(), usage[output].as_u64()) else {
            return;
        };
        let details = &usage[format!("{input}_details")];
        let cached = details["cached_tokens"].as_u64().unwrap_or(0).min(all);
        self.usage = Some(TokenUsage {
            input: all - cached,
            cache_creation: 0,
            cache_read: cached,
            output,
        });
    }

    /// Whether the response ended without tool calls.
    pub(super) fn is_text_answer(&self) -> bool {
        self.finished && self.calls.is_empty()
    }
}

/// A tool call as text.
pub(super) fn call_as_text(tool: &str, input: &Value) -> String {
    let input = match input {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            input.to_string()
        }
    };
    format!("[Called `{tool}` with {input}]")
}

/// The line before a result that is converted to text.
pub(super) const RESULT_HEADING: &str = "[Result of that call]";

/// A server-sent event.
pub(super) fn sse_event(name: Option<&str>, data: &Value) -> String {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}
