//! A request to a model's API: its fields, rows and edits.
//!
//! A row is one message or item of the conversation, stored as a span of the text. The codecs
//! (`codec.rs`) parse rows, and `turns.rs` builds turns and steps from them. Changes are edits of
//! the text, which leave all other bytes unchanged.

use std::borrow::Cow;
use std::ops::Range;

use onward_core::transcript::Api;
use onward_core::transcript::json::{self, Object};
use serde_json::Value;

/// The type of the Responses item that contains tool definitions.
pub(super) const ADDITIONAL_TOOLS: &str = "additional_tools";

/// A span of the text, and its replacement.
pub(super) type Edit = (Range<usize>, String);

/// The field with the rows of the conversation.
fn messages_key(api: Api) -> &'static str {
    match api {
        Api::Anthropic | Api::Chat => "messages",
        Api::Responses => "input",
    }
}

/// A parsed request.
pub(super) struct Request<'a> {
    pub(super) api: Api,
    pub(super) text: &'a str,
    pub(super) fields: Object<'a>,
    rows: Vec<Range<usize>>,
}

/// The content of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row {
    /// A user message.
    Prompt(String),
    /// A model response, with its calls.
    Assistant(Vec<ToolCall>),
    /// The results of calls.
    ToolResults(Vec<ToolResult>),
    /// The results of calls, and a user message after them: the user has interrupted the turn.
    ResultsAndPrompt(Vec<ToolResult>, String),
    /// Any other row: a system message, a reminder, reasoning.
    Other,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) input: Value,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolResult {
    pub(super) id: String,
    pub(super) ok: Option<bool>,
    pub(super) output: String,
}

impl<'a> Request<'a> {
    /// Parses a request to this API.
    pub(super) fn parse(api: Api, text: &'a str) -> Option<Self> {
        Self::from_fields(api, Object::parse(text)?)
    }

    /// The request with these fields.
    pub(super) fn from_fields(api: Api, fields: Object<'a>) -> Option<Self> {
        let list = messages_key(api);
        let rows = match fields.elements(list) {
            Some(rows) => rows.to_vec(),
            // The input of Responses may be a string.
            None => fields.string(list).map(|_| Vec::new())?,
        };
        Some(Self {
            api,
            text: fields.text(),
            rows,
            fields,
        })
    }

    /// The span of the list of rows.
    pub(super) fn rows_span(&self) -> Range<usize> {
        self.fields.span(messages_key(self.api)).unwrap_or_default()
    }

    /// The text of the user message, if the request has no rows.
    pub(super) fn plain_text(&self) -> Option<Cow<'a, str>> {
        self.fields.string(messages_key(self.api))
    }

    /// The system prompt, unless it is a row.
    pub(super) fn system(&self) -> Option<String> {
        let key = match self.api {
            Api::Anthropic => "system",
            Api::Chat => return None,
            Api::Responses => "instructions",
        };
        let system: Value = serde_json::from_str(self.fields.get(key)?).ok()?;
        Some(content_text(&system))
    }

    /// The spans of the rows.
    pub(super) fn rows(&self) -> &[Range<usize>] {
        &self.rows
    }

    /// The text of a row.
    pub(super) fn row_text(&self, row: usize) -> Option<&'a str> {
        self.text.get(self.rows.get(row)?.clone())
    }

    /// Whether a streamed response is requested.
    pub(super) fn is_streaming(&self) -> bool {
        self.fields.get("stream") == Some("true")
    }

    /// Whether the model may call tools.
    pub(super) fn allows_tools(&self) -> bool {
        let has = |key| {
            let tools = self.fields.elements(key);
            tools.is_some_and(|tools| !tools.is_empty())
        };
        let choice = self.fields.get("tool_choice").unwrap_or_default();
        let forbidden = json::string(choice).is_some_and(|choice| choice == "none")
            || Object::parse(choice).is_some_and(|choice| {
                let kind = choice.string("type");
                kind.is_some_and(|kind| kind == "none")
            });
        (has("tools") || has("functions") || self.has_tool_rows()) && !forbidden
    }

    /// Whether tools are defined in an item, as Codex does for some models.
    fn has_tool_rows(&self) -> bool {
        let defines_tools = |row: &Range<usize>| {
            let item = self.text.get(row.clone()).and_then(Object::parse);
            item.is_some_and(|item| {
                item.string("type")
                    .is_some_and(|kind| kind == ADDITIONAL_TOOLS)
            })
        };
        self.api == Api::Responses && self.rows.iter().any(defines_tools)
    }

    /// The id of the response that this request continues, if the server stores the conversation.
    pub(super) fn previous_response_id(&self) -> Option<String> {
        let id = self.fields.string("previous_response_id");
        let id = id.filter(|_| self.api == Api::Responses)?;
        (!id.is_empty()).then(|| id.into_owned())
    }
}

/// Applies edits, which must not overlap.
pub(super) fn apply_edits(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    let added: usize = edits.iter().map(|(_, piece)| piece.len()).sum();
    let mut out = String::with_capacity(text.len() + added);
    let mut from = 0;
    for (span, piece) in &edits {
        out.push_str(text.get(from..span.start).unwrap_or_default());
        out.push_str(piece);
        from = span.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

/// An edit that sets a field of the request, present or not.
pub(super) fn set_field(request: &Request<'_>, key: &str, value: &str) -> Edit {
    if let Some(span) = request.fields.span(key) {
        return (span, value.to_owned());
    }
    let end = request.text.trim_end().len().saturating_sub(1);
    (end..end, format!(",\"{key}\":{value}"))
}

/// An edit that appends an element to the list in this span.
pub(super) fn append_element(text: &str, list: &Range<usize>, element: &str) -> Edit {
    let inside = text.get(list.clone()).unwrap_or_default();
    let is_empty = json::elements(inside).is_none_or(|elements| elements.is_empty());
    let end = list.end.saturating_sub(1);
    let comma = if is_empty { "" } else { "," };
    (end..end, format!("{comma}{element}"))
}

/// The text of a content: a string, or the texts of its blocks, one per line.
pub(super) fn content_text(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().into_iter().flatten();
    let texts: Vec<String> = blocks
        .map(|block| match block["text"].as_str().or(block.as_str()) {
            Some(text) => text.to_owned(),
            // An image is its data, so that different images are different texts.
            None => block.to_string(),
        })
        .collect();
    texts.join("\n")
}

/// Classifies a user message by its text without `<system-reminder>` elements.
pub(super) fn parse_user_text(text: &str) -> Row {
    match without_reminders(text).trim() {
        "" => Row::Other,
        text => Row::Prompt(text.to_owned()),
    }
}

/// The user's text in a message with tool results, without the texts that agents add.
pub(super) fn prompt_beside_results(text: &str) -> Option<String> {
    const INTERRUPTION: &str = "[Request interrupted by user";
    let text = without_reminders(text);
    let text = without_elements(&text, "environment_details");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with(INTERRUPTION))
        .collect();
    let prompt = lines.join("\n").trim().to_owned();
    (!prompt.is_empty()).then_some(prompt)
}

/// A text without the `<system-reminder>` elements that agents add to messages and results.
pub(super) fn without_reminders(text: &str) -> Cow<'_, str> {
    without_elements(text, "system-reminder")
}

/// A text without elements of this name. An element that is not closed extends to the end.
fn without_elements<'a>(text: &'a str, name: &str) -> Cow<'a, str> {
    let (opening, closing) = (format!("<{name}>"), format!("</{name}>"));
    if !text.contains(&opening) {
        return Cow::Borrowed(text);
    }
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(&opening) {
        left.push_str(before);
        rest = after.split_once(&closing).map_or("", |(_, after)| after);
    }
    left.push_str(rest);
    Cow::Owned(left)
}

/// The arguments of a call: the parsed JSON, or the string itself if it is not JSON.
pub(super) fn parse_arguments(arguments: &Value) -> Value {
    let parsed = arguments.as_str().map(serde_json::from_str);
    match parsed {
        Some(Ok(input)) => input,
        Some(Err(_)) | None => arguments.clone(),
    }
}

/// A string field, or an empty string.
pub(super) fn string_field(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_leave_other_bytes_unchanged() {
        let text = r#"{ "a" : [1], "b":2 }"#;
        let request = |text| Request::parse(Api::Anthropic, text);
        assert!(
            request(text).is_none(),
            "a request without messages was parsed"
        );
        let text = r#"{ "messages" : [ ], "b":2 } "#;
        let request = request(text).expect("valid request");
        let edits = vec![
            set_field(&request, "c", "3"),
            set_field(&request, "b", "4"),
            append_element(text, &request.rows_span(), "5"),
        ];
        assert_eq!(
            apply_edits(text, edits),
            r#"{ "messages" : [ 5], "b":4 ,"c":3} "#
        );
    }
}
