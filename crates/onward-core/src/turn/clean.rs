//! Normalizes output: removes terminal escape codes, surrounding whitespace, line numbers and
//! numbers.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

/// The output without terminal escape codes, trimmed.
pub(crate) fn clean(output: &str) -> Cow<'_, str> {
    if !output.contains(['\u{1b}', '\u{9b}']) {
        return Cow::Borrowed(output.trim());
    }
    let mut plain = String::with_capacity(output.len());
    let mut rest = output.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_control(&mut rest),
            c => plain.push(c),
        }
    }
    Cow::Owned(plain.trim().to_owned())
}

/// Skips an escape sequence: `[ … letter` (colours, cursor), `] … BEL` and similar (titles, links),
/// or a character set selection.
fn skip_escape(rest: &mut Peekable<Chars<'_>>) {
    match rest.next() {
        Some('[') => skip_control(rest),
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = rest.next() {
                if c == '\u{7}' || c == '\u{9c}' {
                    return;
                }
                if c == '\u{1b}' {
                    rest.next_if_eq(&'\\');
                    return;
                }
            }
        }
        Some('\u{20}'..='\u{2f}') => {
            while rest
                .next_if(|c| ('\u{20}'..='\u{2f}').contains(c))
                .is_some()
            {}
            rest.next();
        }
        Some(_) | None => {}
    }
}

/// Skips a control sequence up to and including its final letter. Stops at a line end, which is not
/// part of a control sequence.
fn skip_control(rest: &mut Peekable<Chars<'_>>) {
    while let Some(c) = rest.next_if(|c| *c != '\n') {
        if ('\u{40}'..='\u{7e}').contains(&c) {
            return;
        }
    }
}

/// A line without a leading line number: `12:`, `12|`, `12→`, or `12` and a tab.
pub(crate) fn without_line_number(line: &str) -> &str {
    let text = line.trim_start_matches([' ', '\t']);
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let mark = after.trim_start_matches(' ');
    let marked = mark.strip_prefix([':', '|', '→', '\t']);
    marked.filter(|_| after.len() < text.len()).unwrap_or(line)
}

/// Replaces every number by `#`: `7`, `-7`, `1,024` and `0.35` become equal.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut in_word = false;
    while let Some(c) = rest.next() {
        let digit_follows = rest.peek().is_some_and(char::is_ascii_digit);
        let signs = matches!(c, '-' | '+') && !in_word && digit_follows;
        in_word = c.is_alphanumeric();
        if !c.is_ascii_digit() {
            if !signs {
                masked.push(c);
            }
            continue;
        }
        masked.push('#');
        loop {
            if rest.next_if(char::is_ascii_digit).is_some() {
                continue;
            }
            let mut ahead = rest.clone();
            let joins = matches!(ahead.next(), Some('.' | ','))
                && ahead.next().is_some_and(|c| c.is_ascii_digit());
            if !joins {
                break;
            }
            rest.next();
        }
    }
    masked
}
