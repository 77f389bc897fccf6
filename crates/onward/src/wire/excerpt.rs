//! Short forms for lists: summaries of at most 200 characters, lists of at most 50 ids.

use onward_core::StepId;
use onward_engine::context::truncate;
use serde::Serialize;

/// Maximum characters of a summary in a list.
const MAX_SUMMARY: usize = 200;
/// Maximum number of ids in a list.
pub(crate) const MAX_IDS: usize = 50;

/// How to read a truncated text.
pub(super) const WHOLE_TEXT: &str =
    "{get_research_context} with `stepId`, `part` and `offset` returns a whole text";

/// The beginning of a text. Sets `cut` if the text is longer.
pub(super) fn summary(text: &str, cut: &mut bool) -> String {
    summary_of(text, MAX_SUMMARY, cut)
}

/// The beginning of a text with at most this many characters.
pub(super) fn summary_of(text: &str, max_chars: usize, cut: &mut bool) -> String {
    // A longer text never fits, and need not be copied.
    let mut text: String = text.chars().take(max_chars + 1).collect();
    *cut |= truncate(&mut text, max_chars);
    text
}

/// The first ids, and the number of the others.
pub(crate) fn ids<'s>(ids: impl ExactSizeIterator<Item = &'s StepId>) -> (Vec<String>, usize) {
    let omitted = ids.len().saturating_sub(MAX_IDS);
    (ids.take(MAX_IDS).map(StepId::to_string).collect(), omitted)
}

/// Keeps the first entries whose JSON has at most this many characters, at least one. Returns their
/// number.
pub(super) fn limit_chars<T: Serialize>(entries: &mut Vec<T>, max_chars: usize) -> usize {
    let mut left = max_chars;
    let fitting = entries.iter().take_while(|entry| {
        let json = serde_json::to_string(entry).unwrap_or_default();
        let rest = left.checked_sub(json.chars().count().saturating_add(1));
        left = rest.unwrap_or(0);
        rest.is_some()
    });
    let fitting = fitting.count().max(1).min(entries.len());
    entries.truncate(fitting);
    fitting
}

pub(super) fn is_zero(number: &usize) -> bool {
    *number == 0
}

pub(super) fn is_false(flag: &bool) -> bool {
    !*flag
}

pub(super) fn is_first(attempt: &u32) -> bool {
    *attempt <= 1
}
