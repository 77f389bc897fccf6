//! What the three APIs have to be able to say and to be asked; each has a file of its own.
//!
//! A dialect reads rows of a conversation and pieces of an answer, writes what is added to a request,
//! and goes on with an answer that was begun by somebody else. It knows nothing of turns, and sends
//! nothing.

use onward_core::transcript::Api;
use serde_json::{Value, json};

use super::request::{Asked, Edit, Request, Row};
use super::{anthropic, chat, responses};

/// An API.
pub(super) trait Dialect: Sync {
    /// The field with the rows of the conversation.
    fn list(&self) -> &'static str;

    /// The field with the system's words, where it is no row.
    fn system(&self) -> Option<&'static str>;

    /// What a row is.
    fn row(&self, row: &Value) -> Row;

    /// What has to change so that the model reads this after everything else.
    fn say(&self, request: &Request<'_>, text: &str) -> Vec<Edit>;

    /// What has to change so that the model may call no tool. The definitions stay.
    fn forbid(&self, request: &Request<'_>) -> Vec<Edit>;

    /// The request with no tools at all: what was called and came of it is told in words, and this after
    /// everything else.
    fn without_tools(&self, request: Value, text: &str) -> Value;

    /// Takes in an event of an answer that comes piece by piece.
    fn event(&self, answer: &mut Answer, event: &Value) -> Piece;

    /// Takes in an answer that comes as a whole.
    fn whole(&self, answer: &mut Answer, body: &Value);

    /// An answer as a whole that says this and nothing else, made of one that said something else.
    fn sentence(&self, body: Value, text: &str) -> Value;

    /// Goes on with an answer in pieces: the beginning of a text, all that is needed before it included.
    fn begin(&self, answer: &mut Answer) -> String;

    /// A piece of that text.
    fn piece(&self, answer: &mut Answer, text: &str) -> String;

    /// The end of that text, and of the answer.
    fn end(&self, answer: &mut Answer, text: &str) -> String;

    /// An error of our own, as clients of this API read them.
    fn error(&self, message: &str) -> Value;
}

/// The dialect of an API.
pub(super) fn dialect(api: Api) -> &'static dyn Dialect {
    match api {
        Api::Anthropic => &anthropic::Anthropic,
        Api::Chat => &chat::Chat,
        Api::Responses => &responses::Responses,
    }
}

/// What an event of an answer brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Words for the person.
    Text(String),
    /// The beginning of a call.
    Call,
    /// Anything else.
    Other,
}

/// What is known of an answer so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer {
    /// Its id.
    pub(super) id: String,
    /// Which model gives it.
    pub(super) model: Value,
    /// When it was begun, where that is said.
    pub(super) created: Value,
    /// Whether its beginning was seen.
    pub(super) started: bool,
    /// Whether its end was seen, and it is the model's own.
    pub(super) finished: bool,
    /// What it calls.
    pub(super) calls: Vec<Asked>,
    /// All its words, of an answer that came as a whole.
    pub(super) text: String,
    /// How many blocks, or items, it has.
    pub(super) blocks: u64,
    /// The number of the next event, where events have one.
    pub(super) sequence: u64,
    /// Its items as far as they are done, where they are told once more in the end.
    pub(super) items: Vec<Value>,
    /// All of it that is told once more in the end.
    pub(super) response: Value,
}

impl Answer {
    /// An answer of which nothing is known, with what stands for it where nothing comes.
    pub(super) fn unknown() -> Self {
        Self {
            id: "onward".to_owned(),
            model: json!("onward"),
            created: json!(0),
            ..Self::default()
        }
    }

    /// Takes over a field that is a text, where it is there.
    pub(super) fn named(&mut self, of: &Value) {
        if let Some(id) = of["id"].as_str() {
            id.clone_into(&mut self.id);
        }
        if of["model"].is_string() {
            self.model = of["model"].clone();
        }
    }

    /// Whether the agent has been answered: in words, and to the end.
    pub(super) fn is_text(&self) -> bool {
        self.finished && self.calls.is_empty()
    }
}

/// A call of the history in words, and what came of one.
pub(super) fn called(tool: &str, input: &Value) -> String {
    let input = match input {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            input.to_string()
        }
    };
    format!("[Called `{tool}` with {input}]")
}

/// What stands before a result that is told in words.
pub(super) const RESULT: &str = "[Result of that call]";

/// One event of a stream.
pub(super) fn sse(name: Option<&str>, data: &Value) -> String {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}
