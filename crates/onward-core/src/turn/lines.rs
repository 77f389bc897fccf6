//! New lines: an output with known lines and one new line is judged by the new line.
//!
//! Lines are compared without variable content, numbers and leading line numbers. Lines without a
//! letter are ignored. A line is new if neither the line itself nor the line without the words of
//! the input is known. Of a very long output, only the beginning and the end are compared.
//!
//! A number or an address may be the answer to a question that was not asked before. For such a
//! question [`Novelty::detail`] compares lines with their numbers.

use super::bounded_map::BoundedMap;
use super::clean::{without_line_number, without_numbers};
use super::hash::key;
use super::input_echo::InputWords;
use super::mask::{Extent, masked};
use super::policy::Parts;

/// The maximum number of stored lines.
pub(crate) const MAX_LINES: usize = 8192;
/// The number of bytes compared at each end of a text.
const END_BYTES: usize = 32 * 1024;

/// The maximum length of a text in which numbers are compared.
const MAX_DETAILED: usize = 4 * 1024;

/// The known lines.
pub(crate) type Lines = BoundedMap<u32, (), MAX_LINES>;

/// A normalized line of an output.
pub(crate) struct Line {
    whole: String,
    /// The line without the words of the input, if it contains any.
    added: Option<String>,
    /// The line with its numbers, without the words of the input, if it has numbers and the text is
    /// short.
    detail: Option<String>,
}

/// The news in an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Novelty {
    /// The number of characters in new lines, without the words of the input. `None` if no line is
    /// new.
    pub(crate) chars: Option<usize>,
    /// Whether any line is new if compared with its numbers.
    pub(crate) detail: bool,
}

/// The normalized lines of a text.
pub(crate) fn read(text: &str, input: Option<&InputWords<'_>>, parts: &Parts) -> Vec<Line> {
    let is_short = text.len() <= MAX_DETAILED;
    lines(text)
        .map(|line| {
            let blanked = input.and_then(|input| input.mask(line));
            let detail = blanked.as_deref().unwrap_or(line);
            let has_numbers = is_short && detail.contains(|c: char| c.is_ascii_digit());
            Line {
                detail: has_numbers.then(|| normalized(detail, Extent::Times, parts)),
                whole: normalized(line, Extent::Variable, parts),
                added: blanked.map(|line| normalized(&line, Extent::Variable, parts)),
            }
        })
        .collect()
}

/// The lines as one text, with numbers and without the words of the input.
pub(crate) fn joined(lines: &[Line]) -> String {
    let exact: Vec<&str> = lines.iter().map(Line::added).collect();
    exact.join("\n")
}

/// Finds new lines, and stores all lines as known.
pub(crate) fn record(lines: &[Line], seen: &mut Lines) -> Novelty {
    let mut novelty = Novelty::default();
    for line in lines {
        if let Some(detail) = &line.detail {
            let detail = key(&format!("\u{2}{detail}"));
            novelty.detail |= seen.insert(detail, ()).is_none();
        }
        let Some(whole) = comparable(&line.whole) else {
            continue;
        };
        let known = seen.insert(key(&whole), ()).is_some();
        let added = comparable(line.added()).unwrap_or_default();
        let known_without = added != whole && seen.insert(key(&added), ()).is_some();
        if !known && !known_without {
            novelty.chars = Some(novelty.chars.unwrap_or(0) + added.chars().count());
        }
    }
    novelty.detail |= novelty.chars.is_some();
    novelty
}

/// Stores the agent's own lines as known, so that repeating them in an output is not new.
pub(crate) fn add_known<'a>(texts: impl Iterator<Item = &'a str>, seen: &mut Lines, parts: &Parts) {
    for line in texts.flat_map(lines) {
        if let Some(whole) = comparable(&normalized(line, Extent::Variable, parts)) {
            seen.insert(key(&whole), ());
        }
    }
}

impl Line {
    fn added(&self) -> &str {
        self.added.as_ref().unwrap_or(&self.whole)
    }
}

/// The lines at both ends of a text.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let [head, tail] = if text.len() > 2 * END_BYTES {
        [
            text.get(..text.floor_char_boundary(END_BYTES)),
            text.get(text.ceil_char_boundary(text.len() - END_BYTES)..),
        ]
    } else {
        [Some(text), None]
    };
    let ends = head.into_iter().chain(tail);
    ends.flat_map(|end| end.split(['\n', '\r']))
}

/// A line without a leading line number and without variable content.
fn normalized(line: &str, extent: Extent, parts: &Parts) -> String {
    let line = without_line_number(line);
    if parts.masks {
        masked(line, extent)
    } else {
        line.trim().to_owned()
    }
}

/// A line without numbers. `None` if it contains no letter.
fn comparable(line: &str) -> Option<String> {
    let plain = without_numbers(line);
    plain.contains(char::is_alphabetic).then_some(plain)
}
