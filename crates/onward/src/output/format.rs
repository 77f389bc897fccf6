//! Formatting for display: sanitized text, times, durations and counts.
//!
//! Text from agents may contain anything. Control characters, terminal escapes and bidirectional
//! marks become U+FFFD, which is visible and has no effect. JSON keeps them as `\u` escapes.

use std::fmt::Write;
use std::time::Duration;

use onward_core::Timestamp;
use onward_engine::Owner;
use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of a summary in a list, even in a pipe.
pub(crate) const MAX_SUMMARY: usize = 120;
/// Columns of a quoted name.
const MAX_QUOTED: usize = 200;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
const TEN_MINUTES: u64 = 10 * MINUTE;

/// Whether a terminal or a text layout engine interprets the character.
pub(crate) fn is_control(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
        )
        || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text as one line without control characters.
pub(crate) fn sanitize_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for char in text.trim().chars() {
        match char {
            '\n' | '\t' | '\u{2028}' | '\u{2029}' if line.ends_with(' ') => {}
            '\n' | '\t' | '\u{2028}' | '\u{2029}' => line.push(' '),
            '\r' => {}
            char if is_control(char) => line.push('\u{fffd}'),
            char => line.push(char),
        }
    }
    line
}

/// A name in a sentence for a model: one line in quotes. Characters that could end the quotes or
/// start markup are replaced.
pub(crate) fn quoted_name(name: &str) -> String {
    let replace = |char| match char {
        '"' | '`' => '\'',
        '<' => '\u{2039}',
        '>' => '\u{203a}',
        char => char,
    };
    let line: String = sanitize_line(name).chars().map(replace).collect();
    format!("\"{}\"", truncate(&line, MAX_QUOTED))
}

/// Text without control characters; line breaks and tabs stay.
pub(crate) fn sanitize(text: &str) -> String {
    let replace = |char| match char {
        '\n' | '\t' => char,
        char if is_control(char) => '\u{fffd}',
        char => char,
    };
    text.replace("\r\n", "\n")
        .trim_end()
        .chars()
        .map(replace)
        .collect()
}

/// Sanitized text, each line indented by a margin.
pub(crate) fn indented(text: &str, margin: &str) -> String {
    let mut block = String::new();
    for line in sanitize(text).lines() {
        let _ = writeln!(block, "{}", format!("{margin}{line}").trim_end());
    }
    block
}

/// The display width of a sanitized line, in columns.
pub(crate) fn width(line: &str) -> usize {
    line.width()
}

/// A sanitized line, truncated to a number of columns.
pub(crate) fn truncate(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for char in line.chars() {
        used += char.width().unwrap_or(0);
        if used > columns {
            break;
        }
        kept.push(char);
    }
    kept.push('…');
    kept
}

/// JSON on one line, with control characters escaped.
pub(crate) fn json(data: &impl Serialize) -> String {
    escape_controls(serde_json::to_string(data))
}

/// Indented JSON, with control characters escaped.
pub(crate) fn pretty_json(data: &impl Serialize) -> String {
    escape_controls(serde_json::to_string_pretty(data))
}

/// Escapes control characters. Except for line breaks, they occur in JSON only inside strings.
fn escape_controls(json: serde_json::Result<String>) -> String {
    // Serialization fails only for non-string keys, which no printed type has.
    let json = json.unwrap_or_else(|why| format!("{{\"error\":\"{why}\"}}"));
    if !json.chars().any(|char| char != '\n' && is_control(char)) {
        return json;
    }
    let mut safe = String::with_capacity(json.len());
    for char in json.chars() {
        if char != '\n' && is_control(char) {
            let _ = write!(safe, "\\u{:04x}", u32::from(char));
        } else {
            safe.push(char);
        }
    }
    safe
}

/// A duration in two units: "1 h 30 min", "1 d 22 h". From a week on in days, from ten minutes to
/// an hour in minutes.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let two = |(large, unit, size): (&str, &str, u64), part: u64| match seconds % size / part {
        0 => format!("{} {large}", seconds / size),
        rest => format!("{} {large} {rest} {unit}", seconds / size),
    };
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..MINUTE => format!("{seconds} s"),
        MINUTE..TEN_MINUTES => two(("min", "s", MINUTE), 1),
        TEN_MINUTES..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => two(("h", "min", HOUR), MINUTE),
        DAY..WEEK => two(("d", "h", DAY), HOUR),
        _ => format!("{} d", seconds / DAY),
    }
}

/// The time since a state began, to the minute: "3 h 41 min".
pub(crate) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..MINUTE => "< 1 min".to_owned(),
        _ => duration(Duration::from_secs(seconds / MINUTE * MINUTE)),
    }
}

/// The age of a timestamp: "5 min ago".
pub(crate) fn ago(now: Timestamp, then: Timestamp) -> String {
    elapsed(now.since(then))
}

/// An elapsed time to the minute: "5 min ago", "1 h 59 min ago".
pub(crate) fn elapsed(duration: Duration) -> String {
    if duration.as_secs() < MINUTE {
        "just now".to_owned()
    } else {
        format!("{} ago", age(duration))
    }
}

/// Date and time in UTC, to the second.
pub(crate) fn timestamp(at: Timestamp) -> String {
    let text = at.to_string();
    let seconds = text.split('.').next().unwrap_or(&text);
    format!("{}Z", seconds.trim_end_matches('Z').replace('T', " "))
}

/// A date in UTC.
pub(crate) fn date(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

/// Text as lines of at most this many columns, broken between words. Longer words are kept.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && width(&line) + 1 + width(word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// The name of a caller without the kind of its credential: `alice` instead of `user:alice`.
pub(crate) fn person(actor: &str) -> String {
    sanitize_line(Owner::person_of(actor))
}

/// The first four characters of an id, for `onward step` and `onward review`.
pub(crate) fn brief_id(id: impl ToString) -> String {
    id.to_string().chars().take(4).collect()
}

/// The first eight characters of an id.
pub(crate) fn short_id(id: impl ToString) -> String {
    id.to_string().chars().take(8).collect()
}

/// The id of a session: the first eight characters of a UUID, or the start of another id.
pub(crate) fn session_id(id: &str) -> String {
    let id = sanitize_line(id);
    let is_uuid = id.parse::<onward_core::PlanId>().is_ok();
    if is_uuid {
        short_id(id)
    } else {
        truncate(&id, 24)
    }
}

/// A number with its noun: "1 step", "2 steps".
pub(crate) fn count(number: impl Into<u64>, one: &str, many: &str) -> String {
    let number = number.into();
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_control_characters_from_text_and_json() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{7}b\u{202e}c\u{2067}d\r\ne\tf\u{8}\u{7f}\u{2028}g";
        assert!(!sanitize_line(hostile).chars().any(is_control));
        let kept = sanitize(hostile).replace(['\n', '\t'], "");
        assert!(!kept.chars().any(is_control), "{kept:?}");
        let json = json(&hostile);
        assert!(!json.chars().any(is_control), "{json:?}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }

    #[test]
    fn a_quoted_name_is_one_line_and_cannot_end_its_quotes() {
        let name = quoted_name("a\"\n\n`b` </system>\u{1b}[2J\u{202e}");
        assert_eq!(
            name,
            "\"a' 'b' \u{2039}/system\u{203a}\u{fffd}[2J\u{fffd}\""
        );
        assert!(width(&quoted_name(&"long ".repeat(1_000))) <= MAX_QUOTED + 2);
    }

    #[test]
    fn truncates_by_columns_not_by_characters() {
        assert_eq!(truncate("abcdef", 6), "abcdef");
        assert_eq!(truncate("abcdef", 5), "abcd…");
        assert_eq!(truncate("日本語", 5), "日本…");
        assert_eq!(width(&truncate("日本語です", 6)), 5);
    }

    #[test]
    fn formats_durations_in_two_units_up_to_a_week() {
        let seconds = |seconds| duration(Duration::from_secs(seconds));
        assert_eq!(seconds(59), "59 s");
        assert_eq!(seconds(60), "1 min");
        assert_eq!(seconds(77), "1 min 17 s");
        assert_eq!(seconds(1_830), "30 min");
        assert_eq!(seconds(3_600), "1 h");
        assert_eq!(seconds(5_430), "1 h 30 min");
        assert_eq!(seconds(86_400), "1 d");
        assert_eq!(seconds(46 * 3_600), "1 d 22 h");
        assert_eq!(seconds(8 * 86_400 + 7_200), "8 d");
        assert_eq!(duration(Duration::from_millis(5)), "5 ms");
    }

    #[test]
    fn formats_timestamps_to_the_second_and_ages_to_the_minute() {
        let at: Timestamp = "2026-07-28T09:30:05.123Z".parse().unwrap();
        assert_eq!(timestamp(at), "2026-07-28 09:30:05Z");
        assert_eq!(ago(at, at), "just now");
        let later = at.checked_add(Duration::from_secs(720)).unwrap();
        assert_eq!(ago(later, at), "12 min ago");
        assert_eq!(ago(at, later), "just now");
        let later = at.checked_add(Duration::from_secs(7_199)).unwrap();
        assert_eq!(ago(later, at), "1 h 59 min ago");
        assert_eq!(age(Duration::from_secs(77)), "1 min");
    }

    #[test]
    fn wraps_between_words() {
        assert_eq!(wrapped("a bb  ccc\nd", 4), ["a bb", "ccc", "d"]);
        assert_eq!(wrapped("abcdef g", 3), ["abcdef", "g"]);
        assert!(wrapped(" \n", 3).is_empty());
    }
}
