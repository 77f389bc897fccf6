//! Polling: a repeated call whose output advances is progress.
//!
//! An output advances if it has a new line, if its reported progress exceeds every earlier value
//! (`45%`, `7/12`, `3 of 8`), or if one of its numbers moves in the same direction as in all earlier
//! outputs of the call: a queue that gets shorter, a build that gets further. Numbers that go up and
//! down are measurements. The tail of a log, of which every line changes, advances a limited number
//! of times: another number is not news indefinitely.

use super::hash::key;

/// The maximum number of lines in a polled output.
const MAX_POLLED_LINES: usize = 20;
/// The number of tracked numbers.
const TRACKED: usize = 3;
/// The maximum number of outputs of a call that differ from all earlier ones without advancing and
/// still count as news.
pub(crate) const MAX_DRIFTS: u8 = 8;

/// The bits of a number that an output does not have. Comparisons with it are false.
const ABSENT: u32 = f32::NAN.to_bits();

/// The stored properties of the outputs of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastOutput {
    /// The maximum reported progress.
    pub done: u32,
    /// The hashes of the first and last line of the last output.
    pub ends: (u32, u32),
    /// The first numbers of the last output, as the bits of floating-point numbers.
    pub numbers: [u32; TRACKED],
    /// For each number, whether it ever increased (bits 0 to 2) or decreased (bits 4 to 6).
    pub moves: u8,
    /// The number of outputs that differed without advancing.
    pub drifts: u8,
}

/// How an output of a repeated call differs from the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trend {
    /// Towards an end.
    Advances,
    /// All its lines changed.
    Moves,
    /// Only in measurements, or not at all.
    None,
}

impl LastOutput {
    /// The properties of the first output of a call.
    pub(crate) fn first(output: &str) -> Self {
        LastOutput {
            done: reported_progress(output),
            ends: ends(output),
            numbers: numbers(output),
            moves: 0,
            drifts: 0,
        }
    }

    /// The properties after the next output of the call, and its trend.
    pub(crate) fn next(self, output: &str) -> (Self, Trend) {
        let mut next = LastOutput::first(output);
        let reached = next.done > self.done;
        next.done = next.done.max(self.done);
        next.drifts = self.drifts;
        next.moves = self.moves;
        let mut is_monotone = false;
        for (place, (now, last)) in next.numbers.iter().zip(self.numbers).enumerate() {
            let (now, last) = (f32::from_bits(*now), f32::from_bits(last));
            let (up, down) = (1 << place, 16 << place);
            if now > last {
                next.moves |= up;
                is_monotone |= next.moves & down == 0;
            } else if now < last {
                next.moves |= down;
                is_monotone |= next.moves & up == 0;
            }
        }
        let lines = output.lines().take(MAX_POLLED_LINES + 1).count();
        let [(head, tail), (last_head, last_tail)] = [next.ends, self.ends];
        let moved = head != last_head && tail != last_tail;
        let trend = if reached || (is_monotone && lines <= MAX_POLLED_LINES) {
            Trend::Advances
        } else if moved && (2..=MAX_POLLED_LINES).contains(&lines) {
            Trend::Moves
        } else {
            Trend::None
        };
        (next, trend)
    }
}

fn ends(output: &str) -> (u32, u32) {
    (
        key(output.lines().next().unwrap_or_default()),
        key(output.lines().next_back().unwrap_or_default()),
    )
}

/// The first numbers of a text. Digits inside a word are not a number.
fn numbers(text: &str) -> [u32; TRACKED] {
    let mut numbers = [ABSENT; TRACKED];
    let words = text
        .split(|c: char| c.is_whitespace() || "=:/()[]{}\"';|%".contains(c))
        .filter_map(|word| word.replace(',', "").parse::<f32>().ok())
        .filter(|number| number.is_finite());
    for (place, number) in numbers.iter_mut().zip(words) {
        *place = number.to_bits();
    }
    numbers
}

/// The sum of all progress values in a text: percentages, and the `n` of `n/m` and `n of m`.
fn reported_progress(text: &str) -> u32 {
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
        .fold(0, u32::saturating_add)
}

/// The integer part of a number, ignoring surrounding characters.
fn number(word: &str) -> Option<u32> {
    let digits = word.trim_matches(|c: char| !c.is_ascii_digit());
    digits.split(['.', ',']).next()?.parse().ok()
}
