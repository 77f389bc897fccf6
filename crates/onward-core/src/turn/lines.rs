//! News by the line: an output that repeats known lines with one new line is judged by that line.
//!
//! A line is compared without what varies without meaning, without its numbers, and without a line
//! number in front of it. Lines that then hold no letter say nothing by themselves. A line is news if
//! neither it nor what is left of it without the words of the question was seen before. Of a very long
//! output its two ends are compared.

use super::clean::{without_line_number, without_numbers};
use super::echo::Question;
use super::hash::key;
use super::mask::masked;
use super::memory::Memory;
use super::policy::Parts;

/// How many lines are remembered.
pub(crate) const REMEMBERED: usize = 8192;
/// How many bytes of each end of a text are compared.
const END: usize = 32 * 1024;

/// The lines seen.
pub(crate) type Lines = Memory<u32, (), REMEMBERED>;

/// A line of an output, made comparable.
pub(crate) struct Line {
    whole: String,
    /// What is left of it without the words of the question, where it has any.
    added: Option<String>,
}

/// The lines of a text.
pub(crate) fn read(text: &str, question: Option<&Question<'_>>, parts: &Parts) -> Vec<Line> {
    lines(text)
        .map(|line| {
            let blanked = question.and_then(|question| question.blank(line));
            Line {
                whole: settled(line, parts),
                added: blanked.map(|line| settled(&line, parts)),
            }
        })
        .collect()
}

/// The text that the lines make, with their numbers and without their question.
pub(crate) fn exact(lines: &[Line]) -> String {
    let exact: Vec<&str> = lines.iter().map(Line::added).collect();
    exact.join("\n")
}

/// How many characters stand in lines that were not seen before, the question left out; `None` where
/// there is no such line. All of them are remembered.
pub(crate) fn news(lines: &[Line], seen: &mut Lines) -> Option<usize> {
    let mut news = None;
    for line in lines {
        let Some(whole) = comparable(&line.whole) else {
            continue;
        };
        let known = seen.put(key(&whole), ()).is_some();
        let added = comparable(line.added()).unwrap_or_default();
        let known_without = added != whole && seen.put(key(&added), ()).is_some();
        if !known && !known_without {
            news = Some(news.unwrap_or(0) + added.chars().count());
        }
    }
    news
}

/// Remembers lines that are no answer: what the agent wrote itself is no news when it is shown to it.
pub(crate) fn remember<'a>(texts: impl Iterator<Item = &'a str>, seen: &mut Lines, parts: &Parts) {
    for line in texts.flat_map(lines) {
        if let Some(whole) = comparable(&settled(line, parts)) {
            seen.put(key(&whole), ());
        }
    }
}

impl Line {
    fn added(&self) -> &str {
        self.added.as_ref().unwrap_or(&self.whole)
    }
}

/// The lines of both ends of a text.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let [head, tail] = match text.len() > 2 * END {
        true => [
            text.get(..text.floor_char_boundary(END)),
            text.get(text.ceil_char_boundary(text.len() - END)..),
        ],
        false => [Some(text), None],
    };
    let ends = head.into_iter().chain(tail);
    ends.flat_map(|end| end.split(['\n', '\r']))
}

/// A line without its number in front and without what varies without meaning.
fn settled(line: &str, parts: &Parts) -> String {
    let line = without_line_number(line);
    match parts.masks {
        true => masked(line),
        false => line.trim().to_owned(),
    }
}

/// A line without its numbers; `None` where nothing is left of it.
fn comparable(line: &str) -> Option<String> {
    let plain = without_numbers(line);
    plain.contains(char::is_alphabetic).then_some(plain)
}
