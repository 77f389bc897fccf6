//! Loops in texts: an answer or a reasoning that repeats itself instead of calling a tool.
//!
//! Two forms are detected: the same sequence of sentences several times in one response, and the
//! same paragraph in several consecutive responses without a tool call. Code blocks and tables
//! repeat themselves by nature and are skipped.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use super::evidence::preview;
use super::hash::hash;
use crate::policy::{UnknownVariant, parse_variant};

/// The number of repetitions in one response that is a loop.
const MIN_TIMES: usize = 5;
/// The minimum number of characters in all repetitions together.
const MIN_REPEATED_CHARS: usize = 200;
/// The maximum number of sentences in a repeated sequence.
const MAX_PERIOD: usize = 24;
/// The maximum number of sentences that are compared.
const MAX_SENTENCES: usize = 4_096;
/// The number of consecutive responses with the same paragraph that is a loop.
const MIN_RESPONSES: u32 = 3;
/// The minimum number of characters in a repeated paragraph.
const MIN_PARAGRAPH_CHARS: usize = 80;
/// The number of consecutive sentences that count as a paragraph.
const WINDOW: usize = 3;

/// The reaction to a loop in texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OnTextLoop {
    /// A notice to the user.
    #[default]
    Warn,
    /// A message to the agent, and a notice to the user.
    Nudge,
    /// No detection.
    Off,
}

impl OnTextLoop {
    /// All values.
    pub const ALL: [OnTextLoop; 3] = [OnTextLoop::Warn, OnTextLoop::Nudge, OnTextLoop::Off];

    /// The value in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            OnTextLoop::Warn => "warn",
            OnTextLoop::Nudge => "nudge",
            OnTextLoop::Off => "off",
        }
    }
}

impl fmt::Display for OnTextLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OnTextLoop {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &OnTextLoop::ALL, OnTextLoop::as_str)
    }
}

/// A text that repeats itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextLoop {
    /// Where it repeats itself.
    pub scope: TextLoopScope,
    /// How often it occurs.
    pub times: u32,
    /// The beginning of the repeated text.
    pub text: String,
}

/// Where a text repeats itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextLoopScope {
    /// In one response.
    Response,
    /// In consecutive responses.
    Responses,
}

impl fmt::Display for TextLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextLoop { scope, times, text } = self;
        match scope {
            TextLoopScope::Response => {
                write!(
                    f,
                    "a response repeats the same text {times} times: `{text}`"
                )
            }
            TextLoopScope::Responses => {
                write!(
                    f,
                    "{times} responses in a row repeat the same text: `{text}`"
                )
            }
        }
    }
}

/// Finds loops in the texts of one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextMonitor {
    /// The number of consecutive responses with each paragraph.
    paragraphs: HashMap<u64, u32>,
}

impl TextMonitor {
    /// Observes a response. A response with a tool call resets the count of responses.
    pub fn observe(&mut self, text: &str, has_calls: bool) -> Option<TextLoop> {
        let sentences = sentences(text);
        let within = repeated_sequence(&sentences);
        if has_calls {
            self.paragraphs.clear();
            return within;
        }
        let mut counts = HashMap::new();
        let mut across: Option<TextLoop> = None;
        for (paragraph, start) in paragraphs(text, &sentences) {
            let times = self.paragraphs.get(&paragraph).map_or(1, |times| times + 1);
            counts.insert(paragraph, times);
            if times >= MIN_RESPONSES && across.is_none() {
                across = Some(TextLoop {
                    scope: TextLoopScope::Responses,
                    times,
                    text: preview(start),
                });
            }
        }
        self.paragraphs = counts;
        within.or(across)
    }
}

/// A sentence: its hash, its number of characters, and its text.
type Sentence<'a> = (u64, usize, &'a str);

/// The sentences of a text, without code blocks and tables.
fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
            continue;
        }
        if in_code || line.starts_with('|') {
            continue;
        }
        for sentence in line.split_inclusive(['.', '!', '?', '。', '！', '？']) {
            let sentence = sentence.trim();
            if sentence.contains(char::is_alphabetic) {
                let words: Vec<&str> = sentence.split_whitespace().collect();
                let plain = words.join(" ").to_lowercase();
                found.push((hash(plain.as_bytes()), plain.chars().count(), sentence));
            }
        }
        if found.len() > MAX_SENTENCES {
            break;
        }
    }
    found
}

/// A sequence of sentences that occurs several times in a row.
fn repeated_sequence(sentences: &[Sentence<'_>]) -> Option<TextLoop> {
    for period in 1..=MAX_PERIOD.min(sentences.len() / MIN_TIMES) {
        let mut run = 0;
        let mut longest = (0, 0);
        for (at, (this, before)) in sentences.iter().skip(period).zip(sentences).enumerate() {
            run = if this.0 == before.0 { run + 1 } else { 0 };
            if run > longest.0 {
                longest = (run, at + period);
            }
        }
        let (run, end) = longest;
        let times = run / period + 1;
        let start = (end + 1).saturating_sub(run + period);
        let repeated = sentences.get(start..=end).unwrap_or_default();
        let chars: usize = repeated.iter().map(|sentence| sentence.1).sum();
        if times >= MIN_TIMES && chars >= MIN_REPEATED_CHARS {
            let text = repeated.first().map_or("", |sentence| sentence.2);
            return Some(TextLoop {
                scope: TextLoopScope::Response,
                times: u32::try_from(times).unwrap_or(u32::MAX),
                text: preview(text),
            });
        }
    }
    None
}

/// The paragraphs of a text, and all sequences of three sentences, that are long enough: their
/// hashes and beginnings, each once.
fn paragraphs<'a>(text: &'a str, sentences: &[Sentence<'a>]) -> Vec<(u64, &'a str)> {
    let blocks = text.split("\n\n").filter_map(|block| {
        let plain: Vec<&str> = block.split_whitespace().collect();
        let plain = plain.join(" ").to_lowercase();
        let is_long = plain.chars().count() >= MIN_PARAGRAPH_CHARS && !plain.contains("```");
        is_long.then(|| (hash(plain.as_bytes()), block))
    });
    let windows = sentences.windows(WINDOW).filter_map(|window| {
        let chars: usize = window.iter().map(|sentence| sentence.1).sum();
        let combined = window
            .iter()
            .fold(0_u64, |all, sentence| all.rotate_left(21) ^ sentence.0);
        let (_, _, start) = window.first()?;
        (chars >= MIN_PARAGRAPH_CHARS).then_some((combined, *start))
    });
    let mut known = HashSet::new();
    blocks
        .chain(windows)
        .filter(|(hash, _)| known.insert(*hash))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAGRAPH: &str = "Let me check the configuration once more before I continue. The file \
                             should contain the right value. I will look at it now.";

    #[test]
    fn finds_a_sequence_that_a_response_repeats() {
        let text = "First a word. ".to_owned() + &format!("{PARAGRAPH} ").repeat(6);
        let found = TextMonitor::default().observe(&text, true).unwrap();
        assert_eq!((found.scope, found.times), (TextLoopScope::Response, 6));
        assert!(found.text.starts_with("Let me check"), "{}", found.text);
        assert_eq!(
            TextMonitor::default().observe(&format!("{PARAGRAPH} ").repeat(4), true),
            None
        );
    }

    #[test]
    fn finds_a_paragraph_in_consecutive_responses() {
        let mut monitor = TextMonitor::default();
        assert_eq!(monitor.observe(PARAGRAPH, false), None);
        assert_eq!(
            monitor.observe(&format!("Yes.\n\n{PARAGRAPH}"), false),
            None
        );
        let found = monitor
            .observe(&format!("{PARAGRAPH} And more."), false)
            .unwrap();
        assert_eq!((found.scope, found.times), (TextLoopScope::Responses, 3));
    }

    #[test]
    fn a_tool_call_or_another_text_resets_the_count() {
        for (text, has_calls) in [(PARAGRAPH, true), ("A different answer.", false)] {
            let mut monitor = TextMonitor::default();
            monitor.observe(PARAGRAPH, false);
            monitor.observe(PARAGRAPH, false);
            assert_eq!(monitor.observe(text, has_calls), None);
            assert_eq!(monitor.observe(PARAGRAPH, false), None);
        }
    }

    #[test]
    fn code_tables_and_lists_are_not_loops() {
        let code = format!(
            "```\n{}```",
            "let x = compute(x, y, z); // the same line again\n".repeat(30)
        );
        let table = "| the same row | of a table | again and again |\n".repeat(30);
        let list: String = (0..30)
            .map(|n| format!("- item {n} has a text.\n"))
            .collect();
        for text in [code.as_str(), &table, &list, "", "No. No. No. No. No. No."] {
            assert_eq!(TextMonitor::default().observe(text, false), None, "{text}");
        }
    }
}
