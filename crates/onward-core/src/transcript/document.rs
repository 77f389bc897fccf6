//! The JSON of an API, repaired: from text to rows, through the passes, and back to text.
//!
//! A document is a list of messages, or a request with one in it (`messages`, or `input` for Responses).
//! Rows that are not touched keep their bytes, and so does everything between and around them. What is
//! no such document is given back as it is: whoever asked has nothing better. So is a request that goes
//! on from what the server remembers (`previous_response_id`, `conversation`): its results have their
//! calls there.

use std::borrow::Cow;
use std::ops::Range;

use super::history::{Api, Frontier, History, HistoryRow, repair_history};
use super::json::{self, Object};
use super::{
    Message, Repair, Role, Row, What, anthropic, blank_rows, chat, doubled_tail, responses,
};

/// A document after the repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired<'a> {
    /// Its text; the same one where nothing was done.
    pub text: Cow<'a, str>,
    /// What was done.
    pub repairs: Vec<Repair>,
}

/// Puts the messages of a document in order for its API. Total: there is no text that it fails on.
pub fn repair_document(api: Api, text: &str, frontier: Frontier) -> Repaired<'_> {
    let untouched = Repaired {
        text: Cow::Borrowed(text),
        repairs: Vec::new(),
    };
    let Some((list, spans)) = list(api, text) else {
        return untouched;
    };
    let sources: Vec<&str> = spans
        .iter()
        .filter_map(|span| text.get(span.clone()))
        .collect();
    let messages: Vec<Message<'_>> = sources.iter().map(|source| read(api, source)).collect();
    let History { rows, repairs } = repair(&messages, api, frontier);
    if repairs.is_empty() {
        return untouched;
    }
    let mut cut = anthropic::Cut::of(&sources);
    let rows: Vec<(Option<usize>, Cow<'_, str>)> = rows
        .iter()
        .map(|row| {
            let message = row.from.and_then(|from| messages.get(from));
            let untouched = message.is_some_and(|message| row.is_untouched(message.parts.len()));
            let source = row.from.and_then(|from| sources.get(from).copied());
            let text = match source.filter(|_| untouched) {
                Some(source) => Cow::Borrowed(source),
                None => match api {
                    Api::Anthropic => Cow::Owned(anthropic::write(row, &mut cut)),
                    Api::Chat => Cow::Owned(chat::write(row, &sources, &messages)),
                    Api::Responses => Cow::Owned(responses::write(row, &sources)),
                },
            };
            (row.from, text)
        })
        .collect();
    Repaired {
        text: Cow::Owned(joined(text, &list, &spans, &rows)),
        repairs,
    }
}

/// The passes that need no clock, then the API's.
fn repair(messages: &[Message<'_>], api: Api, frontier: Frontier) -> History {
    let mut repairs = Vec::new();
    let rows = messages.iter().enumerate().map(|(index, message)| Row {
        index,
        message: Cow::Borrowed(message),
    });
    let mut rows = blank_rows::drop(rows.collect(), &mut repairs);
    doubled_tail::drop(&mut rows, &mut repairs);
    let mut history = repair_history(&rows, api, frontier);
    repairs.append(&mut history.repairs);
    drop_doubled_tail(messages, &mut history.rows, &mut repairs);
    repairs.sort_by_key(|repair| repair.row);
    History { repairs, ..history }
}

/// What stood between two rows may have gone, so that the last one repeats its neighbour only now.
fn drop_doubled_tail(
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
        && doubled_tail::repeats(&last, &before)
    {
        repairs.push(Repair::of_row(What::DoubledRow, last.index));
        rows.pop();
    }
}

/// Where the list of messages stands, and each of them.
fn list(api: Api, text: &str) -> Option<(Range<usize>, Vec<Range<usize>>)> {
    let Some(request) = Object::of(text) else {
        let start = text.len() - text.trim_start().len();
        let list = start..text.trim_end().len();
        return Some((list, json::elements(text)?));
    };
    let key = match api {
        Api::Anthropic | Api::Chat => "messages",
        Api::Responses => {
            let goes_on = ["previous_response_id", "conversation"]
                .iter()
                .any(|key| request.get(key).is_some_and(|value| value != "null"));
            Some("input").filter(|_| !goes_on)?
        }
    };
    Some((request.span(key)?, request.elements(key)?.to_vec()))
}

fn read(api: Api, source: &str) -> Message<'_> {
    let message = Object::of(source).and_then(|object| match api {
        Api::Anthropic => anthropic::read(&object),
        Api::Chat => chat::read(&object),
        Api::Responses => responses::read(&object),
    });
    // What is not understood is kept, and in nobody's way.
    message.unwrap_or(Message {
        role: Role::Other,
        parts: Vec::new(),
        is_queued: false,
        is_plain: false,
    })
}

/// The document with these rows. Between two rows that were neighbours stands what stood there.
fn joined(
    text: &str,
    list: &Range<usize>,
    spans: &[Range<usize>],
    rows: &[(Option<usize>, Cow<'_, str>)],
) -> String {
    let first = spans.first().map_or(list.end - 1, |span| span.start);
    let last = spans.last().map_or(list.end - 1, |span| span.end);
    let gap = |index: usize| {
        let before = spans.get(index.checked_sub(1)?)?;
        text.get(before.end..spans.get(index)?.start)
    };
    // Rows that are new stand as far apart as the first two did.
    let usual = gap(1).unwrap_or(",");
    let mut out = String::with_capacity(text.len() + 1024);
    out.push_str(text.get(..first).unwrap_or_default());
    let mut before: Option<usize> = None;
    for (number, (from, row)) in rows.iter().enumerate() {
        if number > 0 {
            let neighbours = from.filter(|from| before.is_some_and(|before| before + 1 == *from));
            out.push_str(neighbours.and_then(gap).unwrap_or(usual));
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

    /// How many bytes are cut into pieces for the repair of a list, and how many repairs there are.
    fn work(api: Api, rows: &[String]) -> (usize, usize) {
        let text = format!("[{}]", rows.join(","));
        let before = json::CUT.get();
        let repaired = repair_document(api, &text, Frontier::Answer);
        (json::CUT.get() - before, repaired.repairs.len())
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

    fn said(role: &str) -> String {
        format!(r#"{{"role":"{role}","content":"Well."}}"#)
    }

    fn in_turns(calls: usize) -> Vec<String> {
        let turn = |id: String| [row("assistant", &[anthropic_call(&id)]), said("user")];
        numbers(calls).flat_map(turn).collect()
    }

    /// Every result stands in one row at the end, as whoever appends them leaves it.
    fn all_at_the_end(calls: usize) -> Vec<String> {
        let results: Vec<String> = numbers(calls).map(|id| anthropic_result(&id)).collect();
        let mut rows = in_turns(calls);
        rows.push(row("user", &results));
        rows
    }

    fn all_in_one_row(calls: usize) -> Vec<String> {
        let calls: Vec<String> = numbers(calls).map(|id| anthropic_call(&id)).collect();
        vec![row("assistant", &calls), said("user")]
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
        vec![row, said("user")]
    }

    fn responses(calls: usize) -> Vec<String> {
        let call = |id: String| {
            format!(r#"{{"type":"function_call","call_id":"{id}","name":"t","arguments":"{{}}"}}"#)
        };
        numbers(calls).map(call).collect()
    }

    #[test]
    fn twice_the_calls_take_twice_the_work_and_not_four_times() {
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
