//! Polling is not looping: the same call whose answer moves on is progress.
//!
//! An answer moves on if it brings a new line, if more is done than it ever said before (`45%`, `7/12`,
//! `3 of 8`), or if it is short and moved from its first line to its last, as the end of a log does. A
//! table keeps its head and a page most of its lines: where only numbers in them differ, they are
//! readings. While a background task runs, waiting counts by the clock; that is in
//! [`detector`](super::detector), which knows the time.

use super::hash::key;

/// Lines of an answer that is polled, at most; what is longer is read.
const POLLED: usize = 20;

/// What is remembered of the answers to one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LastAnswer {
    /// How much they said was done, at most.
    pub(crate) done: u64,
    /// The hashes of the last one's first and last line.
    pub(crate) ends: (u32, u32),
}

impl LastAnswer {
    /// The next answer to a call that was answered before, or to one that was not.
    pub(crate) fn after(last: Option<LastAnswer>, answer: &str) -> Self {
        LastAnswer {
            done: degree(answer).max(last.map_or(0, |last| last.done)),
            ends: (
                key(answer.lines().next().unwrap_or_default()),
                key(answer.lines().next_back().unwrap_or_default()),
            ),
        }
    }

    /// Whether an answer moves on from the one before it.
    pub(crate) fn moves_on_from(self, last: LastAnswer, answer: &str) -> bool {
        let [(head, tail), (last_head, last_tail)] = [self.ends, last.ends];
        let moved = head != last_head && tail != last_tail;
        self.done > last.done || (moved && answer.lines().count() <= POLLED)
    }
}

/// How much is done, as far as a text says: its percentages, and the `n` of every `n/m` and `n of m`.
fn degree(text: &str) -> u64 {
    let words: Vec<&str> = text.split_whitespace().collect();
    let of_word = |at: usize, word: &str| {
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
        .filter_map(|(at, word)| of_word(at, word))
        .fold(0, u64::saturating_add)
}

/// The whole part of a number, whatever stands around it.
fn number(word: &str) -> Option<u64> {
    let digits = word.trim_matches(|c: char| !c.is_ascii_digit());
    digits.split(['.', ',']).next()?.parse().ok()
}
