//! Parses CEL string literals.
//!
//! Literals have one or three quotation marks of either kind. A raw literal (prefix `r`) has no
//! escapes. A literal with single marks ends on its line. Byte literals (`b"…"`) are rejected: JSON
//! has no bytes, so they could not equal anything. Escapes other than CEL's are rejected with their
//! position.

use super::parse_error::ParseError;

/// Parses the literal at the start of `rest`, if there is one. Returns the content and the length.
pub(super) fn read(rest: &str) -> Option<Result<(String, usize), ParseError>> {
    let prefix = rest
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    let (prefix, body) = rest.split_at(prefix);
    let mark = match body.chars().next()? {
        mark @ ('"' | '\'') => mark,
        _ => return None,
    };
    let raw = match prefix {
        "" => false,
        "r" | "R" => true,
        "b" | "B" | "br" | "bR" | "Br" | "BR" => {
            return Some(Err(ParseError::new(
                0,
                "byte literals are not supported; remove the prefix `b`",
            )));
        }
        // A name directly before a literal is a separate token; the parser reports the error.
        _ => return None,
    };
    let triple = if mark == '"' { "\"\"\"" } else { "'''" };
    let quote = if body.starts_with(triple) {
        triple
    } else {
        &triple[..1]
    };
    let start = prefix.len() + quote.len();
    Some(content(&rest[start..], quote, raw).map_or_else(
        |fault| Err(fault.after(start)),
        |(text, length)| Ok((text, start + length + quote.len())),
    ))
}

/// The content up to the closing quotation mark, and its length in the source.
fn content(source: &str, quote: &str, raw: bool) -> Result<(String, usize), ParseError> {
    let mut text = String::new();
    let mut at = 0;
    loop {
        let rest = &source[at..];
        if rest.starts_with(quote) {
            return Ok((text, at));
        }
        match rest.chars().next() {
            Some('\\') if !raw && rest.len() > 1 => {
                let (character, length) = escape(rest).map_err(|fault| fault.after(at))?;
                text.push(character);
                at += length;
            }
            // As in CEL, every line end is normalized to a newline.
            Some('\r') if quote.len() == 3 => {
                text.push('\n');
                at += if rest.starts_with("\r\n") { 2 } else { 1 };
            }
            Some('\r' | '\n') if quote.len() == 1 => {
                return Err(unclosed(at, quote, "before the end of the line"));
            }
            Some(character) => {
                text.push(character);
                at += character.len_utf8();
            }
            None => return Err(unclosed(at, quote, "before the end of the condition")),
        }
    }
}

fn unclosed(at: usize, quote: &str, place: &str) -> ParseError {
    ParseError::new(
        at,
        format!("unterminated string: expected `{quote}` {place}"),
    )
}

/// The character of the escape sequence at the start of `rest`, and its length.
fn escape(rest: &str) -> Result<(char, usize), ParseError> {
    let letter = rest[1..].chars().next().unwrap_or_default();
    let plain = match letter {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' | '\'' | '"' | '`' | '?' => letter,
        'x' | 'X' => return code_point(rest, 2, 2, 16),
        'u' => return code_point(rest, 2, 4, 16),
        'U' => return code_point(rest, 2, 8, 16),
        '0'..='3' => return code_point(rest, 1, 3, 8),
        other => {
            return Err(ParseError::new(
                0,
                format!(
                    "`\\{0}` is not a valid escape; use `\\\\{0}` or the prefix `r`",
                    other.escape_debug()
                ),
            ));
        }
    };
    Ok((plain, 2))
}

fn code_point(
    rest: &str,
    skip: usize,
    digits: usize,
    radix: u32,
) -> Result<(char, usize), ParseError> {
    let length = skip + digits;
    let code = rest
        .get(skip..length)
        .filter(|code| code.chars().all(|c| c.is_digit(radix)))
        .and_then(|code| u32::from_str_radix(code, radix).ok());
    let code = code.ok_or_else(|| {
        let base = if radix == 8 { "octal" } else { "hexadecimal" };
        let message = format!("invalid code point: expected {digits} {base} digits");
        ParseError::new(0, message)
    })?;
    let character = char::from_u32(code).ok_or_else(|| {
        let message = format!(
            "invalid code point `U+{code:04X}`: surrogates and values above `U+10FFFF` are not \
             characters"
        );
        ParseError::new(0, message)
    })?;
    Ok((character, length))
}
