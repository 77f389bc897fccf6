//! The size limit of responses: no response has more characters than requested, regardless of the
//! plan's content.
//!
//! A response that is too large keeps its structure: first its longest texts are cut to equal
//! lengths, then its lists. A cut text ends with `…`, a cut list has a count `…Omitted` beside it,
//! `truncated` is true and `more` names the call for the rest. Ids, tokens and cursors are never
//! cut. A response that already omits entries of a list is marked in the same way.

use onward_engine::context::{cost, truncate};
use serde_json::Value;

use crate::wire::step::MORE as MORE_STEPS;

/// Room for `truncated` and `more`.
const MARK_CHARS: usize = 220;
/// Texts are cut to at least this many characters before lists are cut.
const MIN_TEXT: usize = 80;
/// Fields whose names an agent chooses.
const FREE_FORM: [&str; 4] = ["result", "stepExecutionReport", "metadata", "data"];
/// Longest possible id, token or cursor.
const MAX_KEY: usize = 200;

/// How to read the truncated part.
pub(crate) const MORE: &str = "`maxChars` up to 40000 returns more; {get_research_context} with \
    `stepId`, `part` and `offset` returns a whole text";

/// Limits a response to this many characters of JSON.
pub(super) fn fit(value: &mut Value, max_chars: usize) {
    let omits = value.get("more").is_none() && omits_entries(value);
    let marks = if omits { MARK_CHARS } else { 0 };
    if chars(value).saturating_add(marks) > max_chars {
        shorten(value, max_chars.saturating_sub(MARK_CHARS));
    } else if !omits {
        return;
    }
    if let Value::Object(fields) = value {
        fields.insert("truncated".to_owned(), true.into());
        let more = if omits { MORE_STEPS } else { MORE };
        fields.entry("more").or_insert_with(|| more.into());
    }
}

/// Cuts texts, then lists, to this many characters of JSON.
fn shorten(value: &mut Value, max: usize) {
    let shortened = largest(MIN_TEXT, max, |length| {
        let mut cut = value.clone();
        cut_texts(&mut cut, "", length);
        (chars(&cut) <= max).then_some(cut)
    });
    let fitted = shortened.or_else(|| {
        let mut short = value.clone();
        cut_texts(&mut short, "", MIN_TEXT);
        largest(0, max, |entries| {
            let mut cut = short.clone();
            cut_lists(&mut cut, entries);
            // The structure itself is never cut, so that a response matches its schema.
            (entries == 0 || chars(&cut) <= max).then_some(cut)
        })
    });
    if let Some(fitted) = fitted {
        *value = fitted;
    }
}

/// Whether a list of the response has a count of omitted entries beside it.
fn omits_entries(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter();
            let mut fields = fields.filter(|(name, _)| !FREE_FORM.contains(&name.as_str()));
            fields.any(|(name, value)| name.ends_with("Omitted") || omits_entries(value))
        }
        Value::Array(entries) => entries.iter().any(omits_entries),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The characters of a value as JSON.
pub(super) fn chars(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| cost(name) + 4 + chars(value));
            fields.sum::<usize>() + 2
        }
        Value::Array(entries) => entries.iter().map(|entry| chars(entry) + 1).sum::<usize>() + 2,
        Value::String(text) => cost(text) + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().len(),
    }
}

/// The result for the largest number between `min` and `max` that has one.
fn largest(min: usize, max: usize, attempt: impl Fn(usize) -> Option<Value>) -> Option<Value> {
    let mut best = attempt(min)?;
    let (mut low, mut high) = (min, max);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match attempt(middle) {
            Some(value) => {
                best = value;
                low = middle;
            }
            None => high = middle - 1,
        }
    }
    Some(best)
}

fn cut_texts(value: &mut Value, name: &str, max_chars: usize) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                cut_texts(value, name, max_chars);
            }
        }
        Value::Array(entries) => entries
            .iter_mut()
            .for_each(|entry| cut_texts(entry, name, max_chars)),
        Value::String(text) => {
            let is_key = name.ends_with("Id")
                || name.ends_with("Ids")
                || name.ends_with("Token")
                || name.ends_with("Cursor");
            if !is_key || text.len() > MAX_KEY {
                truncate(text, max_chars);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Cuts every list to this many entries, and counts the rest beside it.
fn cut_lists(value: &mut Value, max_entries: usize) {
    match value {
        Value::Object(fields) => {
            let mut counts = Vec::new();
            for (name, value) in fields.iter_mut() {
                if let Value::Array(entries) = value
                    && entries.len() > max_entries
                {
                    counts.push((format!("{name}Omitted"), entries.len() - max_entries));
                    entries.truncate(max_entries);
                }
                cut_lists(value, max_entries);
            }
            for (name, count) in counts {
                let before = fields.get(&name).and_then(Value::as_u64).unwrap_or(0);
                let count = u64::try_from(count).unwrap_or(u64::MAX);
                fields.insert(name, before.saturating_add(count).into());
            }
        }
        Value::Array(entries) => entries
            .iter_mut()
            .for_each(|entry| cut_lists(entry, max_entries)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fitted(mut value: Value, max_chars: usize) -> Value {
        fit(&mut value, max_chars);
        let actual = value.to_string().chars().count();
        assert!(actual <= max_chars, "{actual} characters");
        value
    }

    #[test]
    fn leaves_a_response_within_the_limit_unchanged() {
        let value = json!({ "summary": "short", "steps": [1, 2] });
        assert_eq!(fitted(value.clone(), 100), value);
    }

    #[test]
    fn cuts_the_longest_texts_and_says_so() {
        let value =
            json!({ "short": "kept", "one": "x".repeat(9_000), "two": "\u{1}".repeat(9_000) });
        let value = fitted(value, 4_000);
        assert_eq!(value["short"], "kept");
        assert_eq!(value["truncated"], true);
        assert!(value["more"].is_string());
        let one = value["one"].as_str().unwrap();
        assert!(one.ends_with('…') && one.len() > 1_500, "{}", one.len());
    }

    #[test]
    fn marks_a_response_that_omits_entries_once() {
        let mut value = json!({ "steps": [{ "dependsOn": [1], "dependsOnOmitted": 5 }] });
        fit(&mut value, 1_000);
        assert_eq!(value["truncated"], true);
        assert!(value["more"].is_string());
        let marked = value.clone();
        fit(&mut value, 1_000);
        assert_eq!(value, marked);
        let agents = json!({ "steps": [{ "result": { "rowsOmitted": 5 } }] });
        assert_eq!(fitted(agents.clone(), 100), agents);
    }

    #[test]
    fn cuts_lists_and_counts_the_rest_but_never_cuts_ids() {
        let id = "0198a1b2-c3d4-7e5f-8a6b-9c7d8e9f0a1b";
        let steps: Vec<Value> = (0..1_000)
            .map(|order| json!({ "stepId": id, "order": order }))
            .collect();
        let value = fitted(
            json!({ "planId": id, "steps": steps, "stepsOmitted": 5 }),
            2_000,
        );
        let listed = value["steps"].as_array().unwrap().len();
        assert!(listed > 10, "{listed}");
        assert_eq!(value["stepsOmitted"], 1_005 - listed);
        assert_eq!(value["steps"][0]["stepId"], id);
    }
}
