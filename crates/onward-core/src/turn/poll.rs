//! Polling: a repeated call whose output advances is progress.
//!
//! An output advances if it has a new line, if its reported progress exceeds every earlier value
//! (`45%`, `7/12`, `3 of 8`), or if it is short and both its first and last line changed, as in the
//! tail of a log. A table keeps its header and a page most of its lines: if only numbers differ,
//! they are measurements. While a background task runs, waiting is measured by time, in
//! [`detector`](super::detector).

use super::hash::key;

/// The maximum number of lines in a polled output.
const MAX_POLLED_LINES: usize = 20;

/// The stored properties of the outputs of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LastOutput {
    /// The maximum reported progress.
    pub(crate) done: u64,
    /// The hashes of the first and last line of the last output.
    pub(crate) ends: (u32, u32),
}

impl LastOutput {
    /// The properties after the next output of a call.
    pub(crate) fn next(last: Option<LastOutput>, output: &str) -> Self {
        LastOutput {
            done: reported_progress(output).max(last.map_or(0, |last| last.done)),
            ends: (
                key(output.lines().next().unwrap_or_default()),
                key(output.lines().next_back().unwrap_or_default()),
            ),
        }
    }

    /// Whether an output advances from the previous one.
    pub(crate) fn advanced_from(self, last: LastOutput, output: &str) -> bool {
        let [(head, tail), (last_head, last_tail)] = [self.ends, last.ends];
        let moved = head != last_head && tail != last_tail;
        self.done > last.done || (moved && output.lines().count() <= MAX_POLLED_LINES)
    }
}

/// The sum of all progress values in a text: percentages, and the `n` of `n/m` and `n of m`.
fn reported_progress(text: &str) -> u64 {
    let words: Vec<&str> = text.split_whitespace().collect();
    let word_progress = |at: usize, word: &str| {
        if let Some(percent) = word.find('%') {
            return number(word.get(..percent)?);
        }
        if let Some((done, all)) = word.split_once('/') {
            return number(all).and(number(done));
        }
        let all = words
            .get(at + 2)
            .filter(|_| words.get(at + 1) == Some(&"of"))?;
        number(all).and(number(word))
    };
    (0..)
        .zip(&words)
        .filter_map(|(at, word)| word_progress(at, word))
        .fold(0, u64::saturating_add)
}

/// The integer part of a number, ignoring surrounding characters.
fn number(word: &str) -> Option<u64> {
    let digits = word.trim_matches(|c: char| !c.is_ascii_digit());
    digits.split(['.', ',']).next()?.parse().ok()
}
