//! The turns and steps in a request.
//!
//! A request repeats the whole conversation, so only rows after the anchor are parsed. The codec of
//! the API parses a row; this file builds turns and steps from the rows.

use std::borrow::Cow;

use onward_engine::session::ObservedCall;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::codec::codec;
use super::request::{Request, Row, ToolCall, ToolResult, without_reminders};

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
    is_prompt: bool,
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
    /// The steps before that message, which belong to the last turn.
    pub(super) earlier_steps: Vec<Step>,
    /// The anchor for the next request.
    pub(super) anchor: Option<Anchor>,
}

fn parse_row(request: &Request<'_>, row: usize) -> Row {
    let value = request.row_text(row).map(serde_json::from_str::<Value>);
    match value {
        Some(Ok(value)) => codec(request.api).parse_row(&value),
        Some(Err(_)) | None => Row::Other,
    }
}

/// The part of the request after the anchor, or from the last user message on.
pub(super) fn delta(request: &Request<'_>, anchor: Option<&Anchor>) -> Delta {
    match anchor.filter(|anchor| matches_anchor(request, anchor)) {
        Some(anchor) => delta_from(request, anchor.row_count, Some(anchor)),
        None => {
            let last = (0..request.rows().len()).rev().find(|row| {
                let row = parse_row(request, *row);
                matches!(row, Row::Prompt(_) | Row::ResultsAndPrompt(..))
            });
            delta_from(request, last.unwrap_or(0), None)
        }
    }
}

fn matches_anchor(request: &Request<'_>, anchor: &Anchor) -> bool {
    let digest = || row_digest(&parse_row(request, anchor.row));
    request.rows().len() >= anchor.row_count && digest().as_ref() == Some(&anchor.digest)
}

fn delta_from(request: &Request<'_>, from: usize, found: Option<&Anchor>) -> Delta {
    let mut prompt = None;
    let mut steps: Vec<Step> = Vec::new();
    let mut earlier_steps: Vec<Step> = Vec::new();
    let mut anchor = found.cloned();
    for index in from..request.rows().len() {
        let row = parse_row(request, index);
        if let Some(digest) = row_digest(&row) {
            anchor = Some(Anchor {
                row_count: request.rows().len(),
                row: index,
                digest,
                is_prompt: !matches!(row, Row::Assistant(_)),
            });
        }
        let (row, text) = match row {
            Row::Prompt(text) => (Row::Other, Some(text)),
            Row::ResultsAndPrompt(results, text) => (Row::ToolResults(results), Some(text)),
            row @ (Row::Assistant(_) | Row::ToolResults(_) | Row::Other) => (row, None),
        };
        match row {
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
            Row::Prompt(_) | Row::ResultsAndPrompt(..) | Row::Other => {}
        }
        if let Some(text) = text {
            earlier_steps.append(&mut steps);
            prompt = Some(Prompt {
                row: index,
                digest: digest(&[&text]),
                is_summary: is_summary(&text),
            });
        }
    }
    if let Some(anchor) = &mut anchor {
        anchor.row_count = request.rows().len();
    }
    if request.rows().is_empty() {
        prompt = plain_text_prompt(request);
    }
    for steps in [&mut steps, &mut earlier_steps] {
        steps.retain(|step| !step.results.is_empty());
    }
    Delta {
        continues: found.is_some(),
        prompt,
        steps,
        earlier_steps,
        anchor,
    }
}

/// The digests of all rows with calls.
pub(super) fn call_digests(request: &Request<'_>) -> Vec<String> {
    (0..request.rows().len())
        .map(|row| parse_row(request, row))
        .filter(|row| matches!(row, Row::Assistant(_)))
        .filter_map(|row| row_digest(&row))
        .collect()
}

impl Anchor {
    /// Whether a request continues the conversation with this anchor. `is_answered`: the model has
    /// answered the last request, or is answering it. An agent that then sends the first prompt
    /// alone again starts another conversation.
    pub(super) fn is_continued_by(&self, request: &Request<'_>, is_answered: bool) -> bool {
        let is_restart = self.is_prompt && request.rows().len() == self.row_count && self.row == 0;
        matches_anchor(request, self) && !(is_restart && is_answered)
    }

    /// Whether one of these digests is the anchor's.
    pub(super) fn is_one_of(&self, digests: &[String]) -> bool {
        !self.is_prompt && digests.contains(&self.digest)
    }
}

/// Whether the agent requests a summary to compact the conversation. Such a request is not part
/// of a turn.
pub(super) fn is_compaction_request(request: &Request<'_>) -> bool {
    let last = request.rows().len().checked_sub(1);
    let last = last.map(|row| parse_row(request, row));
    matches!(
        last,
        Some(Row::Prompt(text) | Row::ResultsAndPrompt(_, text)) if requests_summary(&text)
    )
}

/// Whether the conversation starts with a summary of a compacted conversation.
pub(super) fn starts_with_summary(request: &Request<'_>) -> bool {
    first_prompt(request).is_some_and(|text| is_summary(&text))
}

fn plain_text_prompt(request: &Request<'_>) -> Option<Prompt> {
    let text = request.plain_text()?;
    Some(Prompt {
        row: 0,
        digest: digest(&[&text]),
        is_summary: false,
    })
}

/// The digest of the conversation's beginning: the system prompt and the first user message.
pub(super) fn conversation_digest(request: &Request<'_>) -> String {
    let system = request.system().unwrap_or_default();
    let first = first_prompt(request);
    let first = first.or_else(|| request.plain_text().map(Cow::into_owned));
    digest(&[&system, &first.unwrap_or_default()])
}

fn first_prompt(request: &Request<'_>) -> Option<String> {
    (0..request.rows().len()).find_map(|row| match parse_row(request, row) {
        Row::Prompt(text) | Row::ResultsAndPrompt(_, text) => Some(text),
        Row::Assistant(_) | Row::ToolResults(_) | Row::Other => None,
    })
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
                output: without_reminders(&result.output).into_owned(),
            }
        });
        observed.collect()
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
        Row::Prompt(text) | Row::ResultsAndPrompt(_, text) => Some(digest(&[text])),
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

#[cfg(test)]
mod tests {
    use onward_core::transcript::Api;
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

    fn delta(text: &str, anchor: Option<&Anchor>) -> Delta {
        let request = Request::parse(Api::Anthropic, text).expect("valid request");
        super::delta(&request, anchor)
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
}
