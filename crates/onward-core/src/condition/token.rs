//! The tokenizer for conditions.
//!
//! `===` and `!==` become `==` and `!=`, except in string literals and comments. Operators of other
//! languages (`=`, `&`, `and`) are rejected here or in the parser, with a suggestion. String
//! literals are parsed in `string_literal`.

use super::parse_error::ParseError;
use super::string_literal;

/// A token with its byte offset.
#[derive(Debug)]
pub(super) struct Token<'s> {
    pub(super) at: usize,
    pub(super) source: &'s str,
    pub(super) kind: Kind,
}

#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    /// A name or a keyword; the parser distinguishes them.
    Name,
    Text(String),
    /// An integer without its sign.
    Int(u64),
    Uint(u64),
    Double(f64),
    /// An operator or a bracket in its canonical spelling.
    Symbol(&'static str),
    End,
}

/// Source spelling and canonical spelling. A symbol precedes all its prefixes.
const SYMBOLS: [(&str, &str); 26] = [
    ("===", "=="),
    ("!==", "!="),
    ("==", "=="),
    ("!=", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("&&", "&&"),
    ("||", "||"),
    ("<", "<"),
    (">", ">"),
    ("[", "["),
    ("]", "]"),
    ("{", "{"),
    ("}", "}"),
    ("(", "("),
    (")", ")"),
    (".", "."),
    (",", ","),
    ("-", "-"),
    ("!", "!"),
    ("?", "?"),
    (":", ":"),
    ("+", "+"),
    ("*", "*"),
    ("/", "/"),
    ("%", "%"),
];

/// Tokenizes the source. The last token is always `End`.
pub(super) fn tokens(source: &str) -> Result<Vec<Token<'_>>, ParseError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at += blank_length(&source[at..]);
        let rest = &source[at..];
        if rest.is_empty() {
            tokens.push(Token {
                at,
                source: "",
                kind: Kind::End,
            });
            return Ok(tokens);
        }
        let (kind, length) = token(rest).map_err(|fault| fault.after(at))?;
        tokens.push(Token {
            at,
            source: &rest[..length],
            kind,
        });
        at += length;
    }
}

/// The length of the whitespace and comments at the start of `rest`.
fn blank_length(rest: &str) -> usize {
    let mut at = 0;
    loop {
        let here = rest[at..].trim_start_matches(['\t', ' ', '\r', '\n', '\u{c}']);
        at = rest.len() - here.len();
        if !here.starts_with("//") {
            return at;
        }
        at += here.find('\n').unwrap_or(here.len());
    }
}

fn token(rest: &str) -> Result<(Kind, usize), ParseError> {
    if let Some(quoted) = string_literal::read(rest) {
        return quoted.map(|(text, length)| (Kind::Text(text), length));
    }
    let mut characters = rest.chars();
    let first = characters.next().unwrap_or_default();
    let second = characters.next().unwrap_or_default();
    if first.is_ascii_digit() || (first == '.' && second.is_ascii_digit()) {
        return number(rest);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = span(rest, |c| c.is_ascii_alphanumeric() || c == '_');
        return Ok((Kind::Name, length));
    }
    if let Some((written, read)) = SYMBOLS
        .iter()
        .find(|(written, _)| rest.starts_with(written))
    {
        return Ok((Kind::Symbol(read), written.len()));
    }
    Err(ParseError::new(0, unexpected_character(rest, first)))
}

/// The error message for a character that does not start a token.
fn unexpected_character(rest: &str, first: char) -> String {
    let message = match first {
        '=' if rest.starts_with("=>") => "`=>` is not an operator; use `>=`",
        '=' if rest.starts_with("=<") => "`=<` is not an operator; use `<=`",
        '=' => "`=` is not an operator; use `==`",
        '&' => "`&` is not an operator; use `&&`",
        '|' => "`|` is not an operator; use `||`",
        '`' => "names cannot be quoted; use brackets, as in `result[\"a key\"]`",
        '\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}' => {
            "typographic quotation mark; use `\"` or `'`"
        }
        other => {
            return format!(
                "unexpected character `{}`; expected a name, a literal or an operator",
                other.escape_debug()
            );
        }
    };
    message.to_owned()
}

fn span(rest: &str, belongs: impl Fn(char) -> bool) -> usize {
    rest.find(|c| !belongs(c)).unwrap_or(rest.len())
}

fn number(rest: &str) -> Result<(Kind, usize), ParseError> {
    let length = number_length(rest);
    let digits = &rest[..length];
    let too_large = || ParseError::new(0, format!("the number `{}` is too large", excerpt(digits)));
    let after = span(&rest[length..], |c| c.is_ascii_alphanumeric() || c == '_');
    let suffix = &rest[length..length + after];
    let whole = match digits.strip_prefix("0x") {
        Some(hex) => Some(u64::from_str_radix(hex, 16)),
        None if digits.bytes().all(|b| b.is_ascii_digit()) => Some(digits.parse()),
        None => None,
    };
    match (whole, suffix) {
        (Some(value), "") => Ok((Kind::Int(value.map_err(|_| too_large())?), length)),
        (Some(value), "u" | "U") => {
            Ok((Kind::Uint(value.map_err(|_| too_large())?), length + after))
        }
        (None, "") => match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok((Kind::Double(value), length)),
            Ok(_) | Err(_) => Err(too_large()),
        },
        (Some(_) | None, _) => Err(ParseError::new(
            length,
            format!(
                "`{}` cannot follow a number; expected an operator",
                excerpt(suffix)
            ),
        )),
    }
}

/// The length of the number at the start of `rest`, without a suffix.
fn number_length(rest: &str) -> usize {
    let digits = |from: usize| from + span(&rest[from..], |c| c.is_ascii_digit());
    if let Some(hex) = rest.strip_prefix("0x") {
        let hex_digits = span(hex, |c| c.is_ascii_hexdigit());
        if hex_digits > 0 {
            return "0x".len() + hex_digits;
        }
    }
    let mut end = digits(0);
    if rest[end..].starts_with('.') && digits(end + 1) > end + 1 {
        end = digits(end + 1);
    }
    if rest[end..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
        let start = end + 1 + sign;
        if digits(start) > start {
            end = digits(start);
        }
    }
    end
}

/// A part of the source for a message, truncated if it is long.
pub(super) fn excerpt(source: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut excerpt: String = source.chars().take(MAX_CHARS).collect();
    if excerpt.len() < source.len() {
        excerpt.push('…');
    }
    excerpt
}
