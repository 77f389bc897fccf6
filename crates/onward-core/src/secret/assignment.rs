//! Values of secret-like names: assignments, fields of JSON and YAML, options, headers, XML
//! elements, and commands that set a variable.

use std::ops::Range;

use super::MASK;
use super::name::{self, NameKind};
use super::value::{FoundValue, closing_quote, find_value, is_harmless, line_end, skip_spaces};

/// Authentication schemes between a name and its secret.
const SCHEMES: &[&str] = &[
    "bearer",
    "basic",
    "token",
    "apikey",
    "key",
    "negotiate",
    "splunk",
    "bot",
    "genie-key",
];
/// Words before `NAME value` that set a variable.
const SETTERS: &[&str] = &["ENV", "ARG", "set", "setx", "-x", "setenv"];
/// Words before `token:` in messages of parsers.
const PARSER_WORDS: &[&str] = &[
    "unexpected",
    "expected",
    "invalid",
    "unknown",
    "missing",
    "illegal",
    "unrecognized",
    "bad",
];
/// Ends of names whose values have several words.
const PHRASES: [&str; 2] = ["passphrase", "mnemonic"];
/// Keywords at the beginning of a line of a program.
const KEYWORDS: &[&str] = &[
    "let", "const", "var", "val", "auto", "if", "while", "return", "for", "match", "case", "fn",
    "def", "pub",
];

/// Adds the values of secret-like names.
pub(super) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(found) = text[at..].find(is_name) {
        let start = at + found;
        let length = text[start..].find(|c| !is_name(c));
        // The last word names nothing.
        let Some(length) = length else { return };
        at = start + length;
        let word = Word {
            text,
            start,
            end: at,
        };
        let kind = name::kind(word.name());
        if let Some(span) = word.secret(kind) {
            at = at.max(span.end);
            spans.push(span);
        } else if let Some(end) = kind.and_then(|kind| word.list(kind, spans)) {
            at = at.max(end);
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// A word that may be a name.
struct Word<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

/// What separates a name from its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    /// `=` or `:` without spaces before the value.
    Tight,
    /// `=` or `:` with spaces.
    Spaced,
    /// A space after an option or a command.
    Space,
    /// The end of an XML tag.
    Tag,
}

impl Word<'_> {
    fn name(&self) -> &str {
        self.text[self.start..self.end].trim_end_matches('.')
    }

    fn before(&self) -> &str {
        &self.text[..self.start]
    }

    /// The span of the secret after this name.
    fn secret(&self, kind: Option<NameKind>) -> Option<Range<usize>> {
        let name = self.name();
        if let Some(span) = self.after_scheme() {
            return Some(span);
        }
        // `${NAME:-default}` refers to a variable; the mask is not a name.
        let is_mask = self.before().ends_with('[') && self.text[self.start - 1..].starts_with(MASK);
        if self.before().ends_with("${") || is_mask {
            return None;
        }
        let Some(kind) = kind else {
            return self.after_phrase();
        };
        if kind == NameKind::Header {
            return self.header();
        }
        let (separator, at) = self.separator()?;
        let at = self.skip_scheme(at);
        let value = find_value(self.text, at)?;
        if separator == Separator::Space && !self.is_argument(&value) {
            return None;
        }
        if is_harmless(self.text, name, kind, &value) || self.is_program(&value, separator) {
            return None;
        }
        if separator == Separator::Spaced && self.is_parser_message() {
            return None;
        }
        Some(self.extended(value, kind, separator))
    }

    /// `Bearer` and `Basic` outside of a header.
    fn after_scheme(&self) -> Option<Range<usize>> {
        let name = self.name();
        let is_scheme = name.eq_ignore_ascii_case("bearer") || name.eq_ignore_ascii_case("basic");
        if !is_scheme || !self.text[self.end..].starts_with(' ') {
            return None;
        }
        let value = find_value(self.text, self.end)?;
        let content = &self.text[value.span.clone()];
        let has_digit = content.bytes().any(|b| b.is_ascii_digit());
        let has_capital = content.bytes().skip(1).any(|b| b.is_ascii_uppercase());
        let is_token = content.len() >= 6 && (has_digit || has_capital || content.contains('='));
        (is_token && !is_harmless(self.text, name, NameKind::Token, &value)).then_some(value.span)
    }

    /// The end of the spans of a list of strings after this name.
    fn list(&self, kind: NameKind, spans: &mut Vec<Range<usize>>) -> Option<usize> {
        if kind == NameKind::Header {
            return None;
        }
        let name = self.name();
        let (_, at) = self.separator()?;
        let mut at = skip_spaces(self.text, at);
        if !self.text[at..].starts_with('[') {
            return None;
        }
        at += 1;
        while let Some(value) = find_value(self.text, at).filter(|value| value.is_quoted) {
            if !is_harmless(self.text, name, kind, &value) {
                spans.push(value.span.clone());
            }
            at = value.span.end;
            let rest = self.text[at..].trim_start_matches(['\\', '"', '\'']);
            let Some(next) = rest.trim_start().strip_prefix(',') else {
                break;
            };
            at = self.text.len() - next.trim_start().len();
        }
        Some(at)
    }

    /// What follows the name, and where the value begins.
    fn separator(&self) -> Option<(Separator, usize)> {
        let rest = &self.text[self.end..];
        let unquoted = rest.trim_start_matches(['\\', '"', '\'', '`']);
        let is_quoted = unquoted.len() < rest.len();
        let unquoted = unquoted.strip_prefix(']').unwrap_or(unquoted);
        let at = self.text.len() - unquoted.len();
        let spaced = skip_spaces(self.text, at);
        let operator = ["===", "=>", ":=", "==", "=", ":"]
            .into_iter()
            .find(|operator| self.text[spaced..].starts_with(operator));
        if let Some(operator) = operator {
            let after = spaced + operator.len();
            let is_path = self.text[after..].starts_with([':', '=', '>']);
            let is_tight = spaced == at && skip_spaces(self.text, after) == after;
            let separator = if is_tight {
                Separator::Tight
            } else {
                Separator::Spaced
            };
            return (!is_path).then_some((separator, after));
        }
        if self.before().ends_with('<') && rest.starts_with('>') {
            return Some((Separator::Tag, self.end + 1));
        }
        let is_option = self.name().starts_with('-') && self.name().len() > 3;
        // `"--token","value"` in a list of arguments, `define('DB_PASSWORD', 'value')`.
        let is_constant = !self.name().bytes().any(|b| b.is_ascii_lowercase());
        let is_listed =
            (is_option || is_constant) && is_quoted && unquoted.trim_start().starts_with(',');
        if is_listed {
            let after = unquoted.trim_start().trim_start_matches(',');
            return Some((Separator::Space, self.text.len() - after.len()));
        }
        (rest.starts_with([' ', '\t']) && (is_option || self.is_set() || self.is_login()))
            .then_some((Separator::Space, self.end))
    }

    /// Whether the word before sets a variable: `ENV DB_PASSWORD value`.
    fn is_set(&self) -> bool {
        let is_between = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
        let mut before = self.before().trim_end().rsplit(is_between).take(2);
        let is_variable = self.name().contains('_');
        is_variable && before.any(|word| SETTERS.contains(&word))
    }

    /// Whether it is the password of a `.netrc` line, of an SQL statement or of a configuration
    /// without separators.
    fn is_login(&self) -> bool {
        let line = self.before().rsplit('\n').next().unwrap_or_default();
        let value = self.text[self.end..].trim_start();
        let is_password = self.name().eq_ignore_ascii_case("password");
        let is_sql = is_password && value.starts_with(['\'', '"']) && !line.trim().is_empty();
        let is_netrc = is_password && line.split_whitespace().any(|word| word == "login");
        is_sql || is_netrc || self.name() == "requirepass"
    }

    /// `IDENTIFIED BY 'secret'`.
    fn after_phrase(&self) -> Option<Range<usize>> {
        let is_phrase = self.name().eq_ignore_ascii_case("by")
            && self
                .before()
                .trim_end()
                .to_ascii_lowercase()
                .ends_with("identified");
        if !is_phrase {
            return None;
        }
        let value = find_value(self.text, self.end).filter(|value| value.is_quoted)?;
        (!is_harmless(self.text, "password", NameKind::Password, &value)).then_some(value.span)
    }

    /// Whether the word after an option is its argument.
    fn is_argument(&self, value: &FoundValue) -> bool {
        let content = &self.text[value.span.clone()];
        let is_option = !value.is_quoted && content.starts_with('-');
        // `--secret id=name,src=file` names a file.
        let is_pair = content.starts_with("id=") || content.starts_with("type=");
        !is_option && !is_pair
    }

    /// Whether the line is a line of a program and the value an identifier.
    fn is_program(&self, value: &FoundValue, separator: Separator) -> bool {
        let line = self.before().rsplit('\n').next().unwrap_or_default();
        let first = line.split_whitespace().next().unwrap_or_default();
        let content = &self.text[value.span.clone()];
        let is_identifier = content
            .chars()
            .all(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '.' | '&' | ':'));
        separator == Separator::Spaced
            && !value.is_quoted
            && KEYWORDS.contains(&first)
            && is_identifier
    }

    /// Whether a parser reports a token.
    fn is_parser_message(&self) -> bool {
        let before = self
            .before()
            .split_whitespace()
            .next_back()
            .unwrap_or_default();
        let before = before
            .trim_matches(|c: char| !c.is_alphanumeric())
            .to_ascii_lowercase();
        self.name().eq_ignore_ascii_case("token") && PARSER_WORDS.contains(&before.as_str())
    }

    /// The span of a value. A password at the beginning of a line extends to its end, because
    /// YAML has values with spaces. A phrase extends to the next separator.
    fn extended(&self, value: FoundValue, kind: NameKind, separator: Separator) -> Range<usize> {
        let line = self.before().rsplit('\n').next().unwrap_or_default();
        let is_field = separator == Separator::Spaced
            && kind == NameKind::Password
            && !value.is_quoted
            && line.trim().is_empty()
            && self.text[self.end..].starts_with(':');
        let value_is_quoted = value.is_quoted;
        let mut span = value.span;
        let rest = &self.text[span.start..];
        // In a connection string a value extends to the next semicolon.
        let is_connection = self.before().trim_end().ends_with(';') && !value_is_quoted;
        if is_connection {
            let line = &rest[..line_end(rest)];
            let end = line.find([';', '"', '\'', '\\']).unwrap_or(span.len());
            span.end = span.end.max(span.start + line[..end].trim_end().len());
        }
        let name = self.name().to_ascii_lowercase();
        let is_phrase = separator == Separator::Spaced
            && !value_is_quoted
            && PHRASES.iter().any(|phrase| name.ends_with(phrase));
        if is_phrase {
            let line = &rest[..line_end(rest)];
            let is_end = |c: char| "\"'`\\,;|<&".contains(c);
            let phrase = line.split(is_end).next().unwrap_or(line);
            span.end = span.end.max(span.start + phrase.trim_end().len());
        }
        if is_field {
            let line = &rest[..line_end(rest)];
            let content = line.split(" #").next().unwrap_or(line).trim_end();
            span.end = span.end.max(span.start + content.len());
        }
        span
    }

    /// The span of a header's value: one word after a known scheme, otherwise the rest of the line
    /// or of the quoted text.
    fn header(&self) -> Option<Range<usize>> {
        let (separator, at) = self.separator()?;
        let quoted = find_value(self.text, at).filter(|value| value.is_quoted);
        if let Some(value) = quoted {
            let start = self.skip_scheme(value.span.start);
            let value = FoundValue {
                span: start.min(value.span.end)..value.span.end,
                ..value
            };
            return (!is_harmless(self.text, self.name(), NameKind::Header, &value))
                .then_some(value.span);
        }
        let start = skip_spaces(self.text, at);
        let value = self.skip_scheme(start);
        let rest = &self.text[value..];
        let has_scheme = value > start;
        let first = find_value(self.text, value)?;
        if is_harmless(self.text, self.name(), NameKind::Header, &first)
            || separator == Separator::Space
        {
            return None;
        }
        let mut before = self.before().chars().rev();
        let quote = before.next().filter(|c| matches!(c, '"' | '\''));
        let is_escaped = before.next() == Some('\\');
        let line = line_end(rest);
        let end = quote.and_then(|quote| closing_quote(rest, quote, is_escaped));
        let end = end.unwrap_or(line).min(line);
        let is_word = has_scheme || !rest[..end].contains([' ', '=']);
        let span = if is_word {
            first.span
        } else {
            value..value + rest[..end].trim_end().len()
        };
        Some(span)
    }

    /// Where the value begins after an authentication scheme.
    fn skip_scheme(&self, at: usize) -> usize {
        let start = skip_spaces(self.text, at);
        let rest = &self.text[start..];
        let length = rest
            .find(|c: char| !c.is_alphanumeric() && c != '-')
            .unwrap_or(rest.len());
        let is_scheme = SCHEMES
            .iter()
            .any(|scheme| scheme.eq_ignore_ascii_case(&rest[..length]));
        let after = skip_spaces(self.text, start + length);
        if is_scheme && after > start + length && after < self.text.len() {
            after
        } else {
            at
        }
    }
}
