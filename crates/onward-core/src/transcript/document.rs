//! Repairs the JSON of an API: parses the rows, runs the passes and serializes the result.
//!
//! A document is a list of messages or a request that contains one (`messages`, or `input` for
//! Responses). Unchanged rows, and everything between and around the rows, keep their bytes. Any
//! other document is returned unchanged. So is a request that continues a conversation on the
//! server (`previous_response_id`, `conversation`): its results belong to calls on the server.

use std::borrow::Cow;
use std::ops::Range;

use super::history::{Api, HistoryRow, TrailingCalls, repair_history};
use super::json::{self, Object};
use super::message::{Message, Role, Row};
use super::repair::{Repair, RepairKind};
use super::{anthropic, blank_rows, chat, duplicate_ids, duplicate_tail, responses};

/// A repaired document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired<'a> {
    /// The text, borrowed if nothing was changed.
    pub text: Cow<'a, str>,
    /// The repairs.
    pub repairs: Vec<Repair>,
}

/// Repaired rows of an API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedRows {
    /// The rows.
    pub rows: Vec<RepairedRow>,
    /// The repairs.
    pub repairs: Vec<Repair>,
}

/// A row after a repair. At least one of the fields is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedRow {
    /// The input row that it comes from. `None` for a synthetic row.
    pub from: Option<usize>,
    /// The text of a changed or synthetic row.
    pub text: Option<String>,
}

/// Repairs the messages of a document for its API. Never fails.
pub fn repair_document(api: Api, text: &str, trailing: TrailingCalls) -> Repaired<'_> {
    if let Some(request) = Object::parse(text) {
        return repair_request(api, &request, trailing);
    }
    let start = text.len() - text.trim_start().len();
    let list = start..text.trim_end().len();
    match json::elements(text) {
        Some(spans) => repair_list(api, text, &list, &spans, trailing),
        None => untouched(text),
    }
}

/// [`repair_document`] with a request that is split already.
pub fn repair_request<'a>(api: Api, request: &Object<'a>, trailing: TrailingCalls) -> Repaired<'a> {
    let key = match api {
        Api::Anthropic | Api::Chat => "messages",
        Api::Responses => "input",
    };
    let continues = ["previous_response_id", "conversation"]
        .iter()
        .any(|key| request.get(key).is_some_and(|value| value != "null"));
    match (request.span(key), request.elements(key)) {
        (Some(list), Some(spans)) if !(api == Api::Responses && continues) => {
            repair_list(api, request.text(), &list, spans, trailing)
        }
        (Some(_) | None, _) => untouched(request.text()),
    }
}

fn untouched(text: &str) -> Repaired<'_> {
    Repaired {
        text: Cow::Borrowed(text),
        repairs: Vec::new(),
    }
}

/// Repairs the messages of a list, which have these spans.
fn repair_list<'a>(
    api: Api,
    text: &'a str,
    list: &Range<usize>,
    spans: &[Range<usize>],
    trailing: TrailingCalls,
) -> Repaired<'a> {
    let sources: Vec<&str> = spans
        .iter()
        .filter_map(|span| text.get(span.clone()))
        .collect();
    let RepairedRows { rows, repairs } = repair_rows(api, &sources, trailing);
    if repairs.is_empty() {
        return untouched(text);
    }
    let rows: Vec<(Option<usize>, &str)> = rows
        .iter()
        .map(|row| {
            let source = row.from.and_then(|from| sources.get(from).copied());
            (row.from, row.text.as_deref().or(source).unwrap_or_default())
        })
        .collect();
    Repaired {
        text: Cow::Owned(joined(text, list, spans, &rows)),
        repairs,
    }
}

/// Repairs rows, each of which is a message of the API as JSON. Never fails.
pub fn repair_rows(api: Api, sources: &[&str], trailing: TrailingCalls) -> RepairedRows {
    let messages: Vec<Message<'_>> = sources.iter().map(|source| read(api, source)).collect();
    let mut repairs = Vec::new();
    let rows = relevant_rows(&messages, &mut repairs);
    let renamed = duplicate_ids::rename(api, sources, &messages, &rows, &mut repairs);
    if renamed.is_empty() {
        return repair_unique(api, sources, &messages, rows, repairs, trailing);
    }
    let sources: Vec<&str> = sources
        .iter()
        .enumerate()
        .map(|(index, source)| renamed.get(&index).map_or(*source, String::as_str))
        .collect();
    let messages: Vec<Message<'_>> = sources.iter().map(|source| read(api, source)).collect();
    let rows = relevant_rows(&messages, &mut Vec::new());
    let mut repaired = repair_unique(api, &sources, &messages, rows, repairs, trailing);
    for row in &mut repaired.rows {
        if row.text.is_none() {
            row.text = row.from.and_then(|from| renamed.get(&from).cloned());
        }
    }
    repaired
}

/// Drops blank rows and a duplicate tail.
fn relevant_rows<'m, 'a>(
    messages: &'m [Message<'a>],
    repairs: &mut Vec<Repair>,
) -> Vec<Row<'m, 'a>> {
    let rows = messages.iter().enumerate().map(|(index, message)| Row {
        index,
        message: Cow::Borrowed(message),
    });
    let mut rows = blank_rows::drop(rows.collect(), repairs);
    duplicate_tail::drop(&mut rows, repairs);
    rows
}

/// Repairs rows without duplicate ids in one row.
fn repair_unique(
    api: Api,
    sources: &[&str],
    messages: &[Message<'_>],
    rows: Vec<Row<'_, '_>>,
    mut repairs: Vec<Repair>,
    trailing: TrailingCalls,
) -> RepairedRows {
    let mut history = repair_history(&rows, api, trailing);
    repairs.append(&mut history.repairs);
    drop_duplicate_tail(messages, &mut history.rows, &mut repairs);
    repairs.sort_by_key(|repair| repair.row);
    let mut blocks = anthropic::BlockCache::new(sources);
    let rows = history.rows.iter().map(|row| {
        let message = row.from.and_then(|from| messages.get(from));
        let untouched = message.is_some_and(|message| row.is_untouched(message.parts.len()));
        RepairedRow {
            from: row.from,
            text: (!untouched).then(|| match api {
                Api::Anthropic => anthropic::write(row, &mut blocks),
                Api::Chat => chat::write(row, sources, messages),
                Api::Responses => responses::write(row, sources),
            }),
        }
    });
    RepairedRows {
        rows: rows.collect(),
        repairs,
    }
}

/// Removing rows can turn the last row into a duplicate of its new neighbour.
fn drop_duplicate_tail(
    messages: &[Message<'_>],
    rows: &mut Vec<HistoryRow>,
    repairs: &mut Vec<Repair>,
) {
    let row = |row: &HistoryRow| {
        let index = row.from?;
        let message = messages.get(index)?;
        row.is_untouched(message.parts.len()).then_some(Row {
            index,
            message: Cow::Borrowed(message),
        })
    };
    while let [.., before, last] = rows.as_slice()
        && let (Some(before), Some(last)) = (row(before), row(last))
        && duplicate_tail::repeats(&last, &before)
    {
        repairs.push(Repair::for_row(RepairKind::DuplicateRow, last.index));
        rows.pop();
    }
}

fn read(api: Api, source: &str) -> Message<'_> {
    let message = Object::parse(source).and_then(|object| match api {
        Api::Anthropic => anthropic::read(&object),
        Api::Chat => chat::read(&object),
        Api::Responses => responses::read(&object),
    });
    // A row in an unknown form is kept and ignored.
    message.unwrap_or(Message {
        role: Role::Other,
        parts: Vec::new(),
        is_queued: false,
        is_plain: false,
    })
}

/// The document with these rows. Adjacent rows keep the original text between them.
fn joined(
    text: &str,
    list: &Range<usize>,
    spans: &[Range<usize>],
    rows: &[(Option<usize>, &str)],
) -> String {
    let first = spans.first().map_or(list.end - 1, |span| span.start);
    let last = spans.last().map_or(list.end - 1, |span| span.end);
    let gap = |index: usize| {
        let before = spans.get(index.checked_sub(1)?)?;
        text.get(before.end..spans.get(index)?.start)
    };
    // New rows use the separator of the first two rows.
    let separator = gap(1).unwrap_or(",");
    let mut out = String::with_capacity(text.len() + 1024);
    out.push_str(text.get(..first).unwrap_or_default());
    let mut before: Option<usize> = None;
    for (number, (from, row)) in rows.iter().enumerate() {
        if number > 0 {
            let neighbours = from.filter(|from| before.is_some_and(|before| before + 1 == *from));
            out.push_str(neighbours.and_then(gap).unwrap_or(separator));
        }
        out.push_str(row);
        before = *from;
    }
    out.push_str(text.get(last..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of scanned bytes and of repairs for a list.
    fn work(api: Api, rows: &[String]) -> (usize, usize) {
        let text = format!("[{}]", rows.join(","));
        let before = json::SCANNED_BYTES.get();
        let repaired = repair_document(api, &text, TrailingCalls::Answer);
        (json::SCANNED_BYTES.get() - before, repaired.repairs.len())
    }

    fn numbers(calls: usize) -> impl Iterator<Item = String> {
        (10_000..10_000 + calls).map(|number| format!("call-{number}"))
    }

    fn anthropic_call(id: &str) -> String {
        format!(r#"{{"type":"tool_use","id":"{id}","name":"t","input":{{}}}}"#)
    }

    fn anthropic_result(id: &str) -> String {
        format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"r"}}"#)
    }

    fn row(role: &str, blocks: &[String]) -> String {
        format!(r#"{{"role":"{role}","content":[{}]}}"#, blocks.join(","))
    }

    fn text_row(role: &str) -> String {
        format!(r#"{{"role":"{role}","content":"Well."}}"#)
    }

    fn in_turns(calls: usize) -> Vec<String> {
        let turn = |id: String| [row("assistant", &[anthropic_call(&id)]), text_row("user")];
        numbers(calls).flat_map(turn).collect()
    }

    /// All results in one row at the end, as a client that appends them leaves it.
    fn all_at_the_end(calls: usize) -> Vec<String> {
        let results: Vec<String> = numbers(calls).map(|id| anthropic_result(&id)).collect();
        let mut rows = in_turns(calls);
        rows.push(row("user", &results));
        rows
    }

    fn all_in_one_row(calls: usize) -> Vec<String> {
        let calls: Vec<String> = numbers(calls).map(|id| anthropic_call(&id)).collect();
        vec![row("assistant", &calls), text_row("user")]
    }

    fn all_orphans(calls: usize) -> Vec<String> {
        let results: Vec<String> = numbers(calls).map(|id| anthropic_result(&id)).collect();
        vec![row("user", &results)]
    }

    fn chat(calls: usize) -> Vec<String> {
        let call = |id: String| {
            format!(
                r#"{{"id":"{id}","type":"function","function":{{"name":"t","arguments":"{{}}"}}}}"#
            )
        };
        let calls: Vec<String> = numbers(calls).map(call).collect();
        let calls = calls.join(",");
        let row = format!(r#"{{"role":"assistant","content":null,"tool_calls":[{calls}]}}"#);
        vec![row, text_row("user")]
    }

    fn responses(calls: usize) -> Vec<String> {
        let call = |id: String| {
            format!(r#"{{"type":"function_call","call_id":"{id}","name":"t","arguments":"{{}}"}}"#)
        };
        numbers(calls).map(call).collect()
    }

    #[test]
    fn work_is_linear_in_the_number_of_calls() {
        type Shape = fn(usize) -> Vec<String>;
        let shapes: [(Api, &str, Shape); 6] = [
            (Api::Anthropic, "in turns", in_turns),
            (Api::Anthropic, "results at the end", all_at_the_end),
            (Api::Anthropic, "in one row", all_in_one_row),
            (Api::Anthropic, "orphans", all_orphans),
            (Api::Chat, "in one row", chat),
            (Api::Responses, "items", responses),
        ];
        for (api, shape, rows) in shapes {
            let (once, repairs) = work(api, &rows(300));
            assert!(repairs >= 300, "{api:?}, {shape}: {repairs}");
            let (twice, _) = work(api, &rows(600));
            assert!(
                twice * 10 <= once * 22,
                "{api:?}, {shape}: {once} bytes for 300 calls, {twice} for 600"
            );
        }
    }
}
