//! A request to a model's API: parsing, turns and steps, and edits.
//!
//! A row is one message or item of the conversation, stored as a span of the text. A request
//! repeats the whole conversation, so only rows after the anchor are parsed. The codecs parse rows
//! ([`Codec::parse_row`]); this file builds turns and steps from them. Changes are edits of the
//! text, which leave all other bytes unchanged.

use std::ops::Range;

use onward_core::transcript::Api;
use onward_core::transcript::json::{self, Object};
use onward_engine::session::ObservedCall;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::codec::{Codec, codec};

/// The type of the Responses item that contains tool definitions.
pub(super) const ADDITIONAL_TOOLS: &str = "additional_tools";

/// A span of the text, and its replacement.
pub(super) type Edit = (Range<usize>, String);

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

/// A model response with the results of its calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Step {
    calls: Vec<ToolCall>,
    results: Vec<ToolResult>,
}

/// The user message that started a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    /// The row index.
    pub(super) row: usize,
    /// The digest of the text.
    pub(super) digest: String,
    /// Whether it is the agent's summary of a compacted conversation.
    pub(super) is_summary: bool,
}

/// The position up to which a conversation was read: the number of rows, and the digest of one row
/// to recognize the conversation by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor {
    row_count: usize,
    row: usize,
    digest: String,
}

/// The part of a request after the anchor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Delta {
    /// Whether the anchor was found, so that all steps are new.
    pub(super) continues: bool,
    /// The last user message, if there is one.
    pub(super) prompt: Option<Prompt>,
    /// The steps after that message.
    pub(super) steps: Vec<Step>,
    /// The anchor for the next request.
    pub(super) anchor: Option<Anchor>,
}

impl<'a> Request<'a> {
    /// Parses a request to this API.
    pub(super) fn parse(api: Api, text: &'a str) -> Option<Self> {
        let fields = Object::parse(text)?;
        let list = codec(api).messages_key();
        let rows = match fields.elements(list) {
            Some(rows) => rows.to_vec(),
            // The input of Responses may be a string.
            None => fields.string(list).map(|_| Vec::new())?,
        };
        Some(Self {
            api,
            text,
            rows,
            fields,
        })
    }

    fn codec(&self) -> &'static dyn Codec {
        codec(self.api)
    }

    /// The span of the list of rows.
    pub(super) fn rows_span(&self) -> Range<usize> {
        self.fields
            .span(self.codec().messages_key())
            .unwrap_or_default()
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

    fn parse_row(&self, row: usize) -> Row {
        let value = self.row_text(row).map(serde_json::from_str::<Value>);
        match value {
            Some(Ok(value)) => self.codec().parse_row(&value),
            Some(Err(_)) | None => Row::Other,
        }
    }

    /// The part of the request after the anchor, or from the last user message on.
    pub(super) fn delta(&self, anchor: Option<&Anchor>) -> Delta {
        match anchor.filter(|anchor| self.matches_anchor(anchor)) {
            Some(anchor) => self.delta_from(anchor.row_count, Some(anchor)),
            None => {
                let last = (0..self.rows.len())
                    .rev()
                    .find(|row| matches!(self.parse_row(*row), Row::Prompt(_)));
                self.delta_from(last.unwrap_or(0), None)
            }
        }
    }

    fn matches_anchor(&self, anchor: &Anchor) -> bool {
        let digest = || row_digest(&self.parse_row(anchor.row));
        self.rows.len() >= anchor.row_count && digest().as_ref() == Some(&anchor.digest)
    }

    fn delta_from(&self, from: usize, found: Option<&Anchor>) -> Delta {
        let mut prompt = None;
        let mut steps: Vec<Step> = Vec::new();
        let mut anchor = found.cloned();
        for index in from..self.rows.len() {
            let row = self.parse_row(index);
            if let Some(digest) = row_digest(&row) {
                anchor = Some(Anchor {
                    row_count: self.rows.len(),
                    row: index,
                    digest,
                });
            }
            match row {
                Row::Prompt(text) => {
                    steps.clear();
                    prompt = Some(Prompt {
                        row: index,
                        digest: digest(&[&text]),
                        is_summary: is_summary(&text),
                    });
                }
                Row::Assistant(calls) => match steps.last_mut() {
                    Some(step) if step.results.is_empty() => step.calls.extend(calls),
                    Some(_) | None => steps.push(Step {
                        calls,
                        results: Vec::new(),
                    }),
                },
                Row::ToolResults(results) => match steps.last_mut() {
                    Some(step) => step.results.extend(results),
                    None => steps.push(Step {
                        calls: Vec::new(),
                        results,
                    }),
                },
                Row::Other => {}
            }
        }
        if let Some(anchor) = &mut anchor {
            anchor.row_count = self.rows.len();
        }
        if self.rows.is_empty() {
            prompt = self.plain_text_prompt();
        }
        steps.retain(|step| !step.results.is_empty());
        Delta {
            continues: found.is_some(),
            prompt,
            steps,
            anchor,
        }
    }

    /// Whether the agent requests a summary to compact the conversation. Such a request is not part
    /// of a turn.
    pub(super) fn is_compaction_request(&self) -> bool {
        let last = self.rows.len().checked_sub(1);
        let last = last.map(|row| self.parse_row(row));
        matches!(last, Some(Row::Prompt(text)) if requests_summary(&text))
    }

    /// Whether the conversation starts with a summary of a compacted conversation.
    pub(super) fn starts_with_summary(&self) -> bool {
        let first = (0..self.rows.len()).find_map(|row| match self.parse_row(row) {
            Row::Prompt(text) => Some(is_summary(&text)),
            Row::Assistant(_) | Row::ToolResults(_) | Row::Other => None,
        });
        first.unwrap_or(false)
    }

    fn plain_text_prompt(&self) -> Option<Prompt> {
        let text = self.fields.string(self.codec().messages_key())?;
        Some(Prompt {
            row: 0,
            digest: digest(&[&text]),
            is_summary: false,
        })
    }

    /// The digest of the conversation's beginning: the system prompt and the first user message.
    pub(super) fn conversation_digest(&self) -> String {
        let system = self.codec().system_key();
        let system = system.and_then(|key| self.fields.get(key));
        let system: Option<Value> = system.and_then(|text| serde_json::from_str(text).ok());
        let system = system.as_ref().map(content_text).unwrap_or_default();
        let first = (0..self.rows.len()).find_map(|row| match self.parse_row(row) {
            Row::Prompt(text) => Some(text),
            Row::Assistant(_) | Row::ToolResults(_) | Row::Other => None,
        });
        let plain = || self.fields.string(self.codec().messages_key());
        let first = first.or_else(|| plain().map(|text| text.into_owned()));
        digest(&[&system, &first.unwrap_or_default()])
    }
}

impl Step {
    /// The ids of the calls with a result.
    pub(super) fn result_ids(&self) -> impl Iterator<Item = &str> {
        self.results.iter().map(|result| result.id.as_str())
    }

    /// The calls with their results. `find` returns calls that are not in the conversation.
    pub(super) fn into_observed_calls(
        self,
        find: impl Fn(&str) -> Option<ToolCall>,
    ) -> Vec<ObservedCall> {
        let Step { calls, results } = self;
        let observed = results.into_iter().map(|result| {
            let call = calls.iter().find(|call| call.id == result.id).cloned();
            let call = call.or_else(|| find(&result.id));
            let (tool, input) = call.map(|call| (call.tool, call.input)).unwrap_or_default();
            ObservedCall {
                id: Some(result.id),
                tool,
                input,
                ok: result.ok,
                output: result.output,
            }
        });
        observed.collect()
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
    const OPENING: &str = "<system-reminder>";
    const CLOSING: &str = "</system-reminder>";
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPENING) {
        left.push_str(before);
        rest = after.split_once(CLOSING).map_or("", |(_, after)| after);
    }
    left.push_str(rest);
    match left.trim() {
        "" => Row::Other,
        text => Row::Prompt(text.to_owned()),
    }
}

/// Whether a text is an agent's summary of a compacted conversation, which continues the turn.
fn is_summary(text: &str) -> bool {
    const OPENINGS: [&str; 3] = [
        "This session is being continued from a previous conversation",
        "Another language model started to solve this problem",
        "The following is a summary of the conversation so far",
    ];
    OPENINGS.iter().any(|opening| text.starts_with(opening))
}

/// Whether a text is an agent's request for such a summary.
fn requests_summary(text: &str) -> bool {
    const OPENINGS: [&str; 2] = [
        "Your task is to create a detailed summary of the conversation so far",
        "You are performing a CONTEXT CHECKPOINT COMPACTION",
    ];
    // Newer versions start with other sentences.
    let end = text.char_indices().nth(600);
    let head = end.and_then(|(end, _)| text.get(..end)).unwrap_or(text);
    OPENINGS.iter().any(|opening| head.contains(opening))
}

/// The digest of a row, if it can serve as an anchor.
fn row_digest(row: &Row) -> Option<String> {
    match row {
        Row::Prompt(text) => Some(digest(&[text])),
        Row::Assistant(calls) if !calls.is_empty() => {
            let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
            Some(digest(&ids))
        }
        Row::Assistant(_) | Row::ToolResults(_) | Row::Other => None,
    }
}

/// A short, stable digest of texts.
pub(super) fn digest(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text.as_bytes());
    }
    let hash = hash.finalize();
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
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
    use serde_json::json;

    use super::*;

    /// A conversation with Anthropic; its last row has a cache marker.
    fn conversation(steps: usize, more: &[Value]) -> String {
        let mut rows = vec![json!({ "role": "user", "content": [
            { "type": "text", "text": "<system-reminder>a</system-reminder>" },
            { "type": "text", "text": "Tides?" } ] })];
        for step in 0..steps {
            let id = format!("call_{step}");
            rows.push(json!({ "role": "assistant", "content": [
                { "type": "tool_use", "id": id, "name": "Bash", "input": {} } ] }));
            rows.push(json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": id, "content": "ok" } ] }));
        }
        rows.extend_from_slice(more);
        if let Some(last) = rows.last_mut() {
            last["content"][0]["cache_control"] = json!({ "type": "ephemeral" });
        }
        json!({ "messages": rows, "tools": [{ "name": "Bash" }] }).to_string()
    }

    #[test]
    fn detects_and_removes_tools_in_an_item() {
        let body = |choice: &str| {
            json!({ "tool_choice": choice, "input": [
                { "type": ADDITIONAL_TOOLS, "role": "developer", "tools": [{ "type": "custom" }] },
                { "type": "message", "role": "user", "content": "Tides?" },
            ] })
        };
        for (choice, expected) in [("auto", true), ("none", false)] {
            let text = body(choice).to_string();
            let request = Request::parse(Api::Responses, &text).expect("valid request");
            assert_eq!(request.allows_tools(), expected, "{choice}");
        }
        let bare = codec(Api::Responses).without_tools(body("none"), "Answer in text.");
        assert!(!bare.to_string().contains(ADDITIONAL_TOOLS), "{bare}");
        assert_eq!(bare["input"].as_array().map(Vec::len), Some(2), "{bare}");
    }

    fn delta(text: &str, anchor: Option<&Anchor>) -> Delta {
        let request = Request::parse(Api::Anthropic, text).expect("valid request");
        request.delta(anchor)
    }

    fn ids(delta: &Delta) -> Vec<&str> {
        delta.steps.iter().flat_map(Step::result_ids).collect()
    }

    #[test]
    fn returns_only_steps_after_the_anchor() {
        let first = delta(&conversation(2, &[]), None);
        assert_eq!(ids(&first), ["call_0", "call_1"]);
        assert!(first.prompt.is_some() && !first.continues);
        let retry = delta(&conversation(2, &[]), first.anchor.as_ref());
        assert_eq!((ids(&retry), retry.continues), (vec![], true));
        let next = delta(&conversation(4, &[]), retry.anchor.as_ref());
        assert_eq!(ids(&next), ["call_2", "call_3"]);
        assert_eq!(next.prompt, None);
    }

    #[test]
    fn reads_a_rewound_conversation_from_its_last_prompt() {
        let long = delta(&conversation(3, &[]), None);
        let rewound = delta(&conversation(1, &[]), long.anchor.as_ref());
        assert!(!rewound.continues);
        assert_eq!(ids(&rewound), ["call_0"]);
    }

    #[test]
    fn a_new_prompt_discards_earlier_steps() {
        let first = delta(&conversation(1, &[]), None);
        let prompt = json!({ "role": "user", "content": [{ "type": "text", "text": "And?" }] });
        let reminder = json!({ "role": "user", "content": [
            { "type": "text", "text": "<system-reminder>b</system-reminder>" } ] });
        let next = delta(&conversation(2, &[prompt, reminder]), first.anchor.as_ref());
        assert_eq!(next.prompt.map(|prompt| prompt.row), Some(5));
        assert_eq!(next.steps, []);
    }

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
