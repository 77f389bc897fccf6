//! The words of a condition: its source cut into tokens, each with its place.
//!
//! `===` and `!==` are read here as `==` and `!=`; inside a text or a comment they are never
//! seen, since those are one token and none. What other languages write and CEL does not
//! (`=`, `&`, `and`) is refused with what to write instead, here or in the parser.
//! Quoted texts are read in `quoted`.

use super::fault::Fault;
use super::quoted;

/// One token and the byte at which it starts.
#[derive(Debug)]
pub(super) struct Token<'s> {
    pub(super) at: usize,
    pub(super) source: &'s str,
    pub(super) kind: Kind,
}

#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    /// A name or a word of the language; which, the parser knows.
    Name,
    Text(String),
    /// A whole number without its sign.
    Int(u64),
    Uint(u64),
    Double(f64),
    /// An operator or a bracket, in the spelling that the parser knows.
    Mark(&'static str),
    End,
}

/// As they are written, and as they are read. A mark stands before every one that begins it.
const MARKS: [(&str, &str); 26] = [
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

/// Cuts the whole source; the last token is always the end.
pub(super) fn tokens(source: &str) -> Result<Vec<Token<'_>>, Fault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at += blank(&source[at..]);
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

/// How much white space and comment `rest` begins with.
fn blank(rest: &str) -> usize {
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

fn token(rest: &str) -> Result<(Kind, usize), Fault> {
    if let Some(quoted) = quoted::read(rest) {
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
    if let Some((written, read)) = MARKS.iter().find(|(written, _)| rest.starts_with(written)) {
        return Ok((Kind::Mark(read), written.len()));
    }
    Err(Fault::new(0, stray(rest, first)))
}

/// What to say about a character that begins no token.
fn stray(rest: &str, first: char) -> String {
    let instead = match first {
        '=' if rest.starts_with("=>") => "`=>` is not an operator; expected `>=`",
        '=' if rest.starts_with("=<") => "`=<` is not an operator; expected `<=`",
        '=' => "`=` is not an operator; expected `==`",
        '&' => "`&` is not an operator; expected `&&`",
        '|' => "`|` is not an operator; expected `||`",
        '`' => "names are not quoted; expected a key in brackets, as in `result[\"a key\"]`",
        '\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}' => {
            "a typographic quotation mark; expected `\"` or `'`"
        }
        other => {
            return format!(
                "the character `{}` has no meaning here; expected a name, a literal or an \
                 operator",
                other.escape_debug()
            );
        }
    };
    instead.to_owned()
}

fn span(rest: &str, belongs: impl Fn(char) -> bool) -> usize {
    rest.find(|c| !belongs(c)).unwrap_or(rest.len())
}

fn number(rest: &str) -> Result<(Kind, usize), Fault> {
    let length = number_length(rest);
    let digits = &rest[..length];
    let too_large = || Fault::new(0, format!("the number `{}` is too large", shown(digits)));
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
        (Some(_) | None, _) => Err(Fault::new(
            length,
            format!(
                "`{}` cannot follow a number; expected an operator",
                shown(suffix)
            ),
        )),
    }
}

/// The bytes of the longest number that `rest` begins with, without a suffix.
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

/// A piece of the source for a message: cut where it is long.
pub(super) fn shown(source: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = source.chars().take(LONGEST).collect();
    if shown.len() < source.len() {
        shown.push('…');
    }
    shown
}
