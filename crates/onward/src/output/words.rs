//! Text for people: stored text without anything that a terminal would obey, times and spans as one
//! says them.
//!
//! What agents wrote may hold anything. Control characters, terminal escapes and marks that turn the
//! direction of text around become U+FFFD: they can be seen, and do nothing. JSON keeps them, as
//! escapes.

use std::fmt::Write;
use std::time::Duration;

use onward_core::Timestamp;
use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Whether a terminal, or whoever lays out the line, would obey it.
fn commands(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
        )
        || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Stored text as one harmless line.
pub(crate) fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for char in text.trim().chars() {
        match char {
            '\n' | '\t' | '\u{2028}' | '\u{2029}' if line.ends_with(' ') => {}
            '\n' | '\t' | '\u{2028}' | '\u{2029}' => line.push(' '),
            '\r' => {}
            char if commands(char) => line.push('\u{fffd}'),
            char => line.push(char),
        }
    }
    line
}

/// Stored text, harmless, with its lines.
pub(crate) fn lines(text: &str) -> String {
    let harmless = |char| match char {
        '\n' | '\t' => char,
        char if commands(char) => '\u{fffd}',
        char => char,
    };
    text.replace("\r\n", "\n")
        .trim_end()
        .chars()
        .map(harmless)
        .collect()
}

/// Stored text, harmless, each of its lines behind a margin.
pub(crate) fn indented(text: &str, margin: &str) -> String {
    let mut block = String::new();
    for line in lines(text).lines() {
        let _ = writeln!(block, "{}", format!("{margin}{line}").trim_end());
    }
    block
}

/// How many columns a harmless line takes.
pub(crate) fn width(line: &str) -> usize {
    line.width()
}

/// A harmless line, cut where it is longer than that many columns.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let mut kept = String::new();
    let mut taken = 1;
    for char in line.chars() {
        taken += char.width().unwrap_or(0);
        if taken > columns {
            break;
        }
        kept.push(char);
    }
    kept.push('…');
    kept
}

/// Data as JSON on one line, with everything escaped that a terminal would obey.
pub(crate) fn json(data: &impl Serialize) -> String {
    escaped(serde_json::to_string(data))
}

/// Data as JSON that people can read, with everything escaped that a terminal would obey.
pub(crate) fn pretty_json(data: &impl Serialize) -> String {
    escaped(serde_json::to_string_pretty(data))
}

/// What stands unescaped in JSON beside line breaks stands inside of a text.
fn escaped(json: serde_json::Result<String>) -> String {
    // What is printed here has keys that are texts, and numbers that JSON has.
    let json = json.unwrap_or_else(|why| format!("{{\"error\":\"{why}\"}}"));
    if !json.chars().any(|char| char != '\n' && commands(char)) {
        return json;
    }
    let mut safe = String::with_capacity(json.len());
    for char in json.chars() {
        if char != '\n' && commands(char) {
            let _ = write!(safe, "\\u{:04x}", u32::from(char));
        } else {
            safe.push(char);
        }
    }
    safe
}

/// How long, in the largest units that matter.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{} ms", span.as_millis()),
        1..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY if (seconds % HOUR) / MINUTE == 0 => format!("{} h", seconds / HOUR),
        HOUR..DAY => format!("{} h {} min", seconds / HOUR, (seconds % HOUR) / MINUTE),
        _ => format!("{} d", seconds / DAY),
    }
}

/// How long ago something was.
pub(crate) fn ago(now: Timestamp, then: Timestamp) -> String {
    since(now.since(then))
}

/// So long ago, in the largest unit.
pub(crate) fn since(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..MINUTE => "just now".to_owned(),
        MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        HOUR..DAY => format!("{} h ago", seconds / HOUR),
        _ => format!("{} d ago", seconds / DAY),
    }
}

/// An instant in UTC, to the second.
pub(crate) fn instant(at: Timestamp) -> String {
    let text = at.to_string();
    let seconds = text.split('.').next().unwrap_or(&text);
    format!("{}Z", seconds.trim_end_matches('Z').replace('T', " "))
}

/// A day in UTC.
pub(crate) fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

/// The beginning of an id, which is enough to name a plan.
pub(crate) fn short(id: impl ToString) -> String {
    id.to_string().chars().take(8).collect()
}

/// A number of things, in the singular where it is one.
pub(crate) fn count(number: impl Into<u64>, one: &str, many: &str) -> String {
    let number = number.into();
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stored_text_commands_a_terminal() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{7}b\u{202e}c\u{2067}d\r\ne\tf\u{8}\u{7f}\u{2028}g";
        assert!(!line(hostile).chars().any(commands), "{:?}", line(hostile));
        let kept = lines(hostile).replace(['\n', '\t'], "");
        assert!(!kept.chars().any(commands), "{kept:?}");
        let json = json(&hostile);
        assert!(!json.chars().any(commands), "{json:?}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }

    #[test]
    fn a_line_is_cut_by_columns_not_by_characters() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 5), "abcd…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(width(&cut("日本語です", 6)), 5);
    }

    #[test]
    fn spans_are_said_in_the_units_that_matter() {
        let said = |seconds| span(Duration::from_secs(seconds));
        assert_eq!(said(59), "59 s");
        assert_eq!(said(60), "1 min");
        assert_eq!(said(3_600), "1 h");
        assert_eq!(said(5_430), "1 h 30 min");
        assert_eq!(said(200_000), "2 d");
        assert_eq!(span(Duration::from_millis(5)), "5 ms");
    }

    #[test]
    fn an_instant_is_shown_to_the_second() {
        let at: Timestamp = "2026-07-28T09:30:05.123Z".parse().unwrap();
        assert_eq!(instant(at), "2026-07-28 09:30:05Z");
        assert_eq!(ago(at, at), "just now");
        let later = at.checked_add(Duration::from_secs(720)).unwrap();
        assert_eq!(ago(later, at), "12 min ago");
        assert_eq!(ago(at, later), "just now");
    }
}
