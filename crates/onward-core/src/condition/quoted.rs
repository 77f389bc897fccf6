//! Quoted texts: every form that CEL has, but bytes.
//!
//! One or three quotation marks of either kind; `r` before them and a backslash is only a
//! backslash. A text in single marks ends on its line. Bytes (`b"…"`) are refused: JSON has none,
//! so nothing could ever be compared with them.
//! The escapes are those of CEL and no others: a mistyped one is refused at its place.

use super::fault::Fault;

/// Reads the text that `rest` begins with, if it begins with one: what it says, and its length.
pub(super) fn read(rest: &str) -> Option<Result<(String, usize), Fault>> {
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
            return Some(Err(Fault::new(
                0,
                "bytes cannot be compared with anything in a result; expected a text without `b`",
            )));
        }
        // A name right before a text: two tokens, and the parser says what is missing.
        _ => return None,
    };
    let triple = if mark == '"' { "\"\"\"" } else { "'''" };
    let fence = if body.starts_with(triple) {
        triple
    } else {
        &triple[..1]
    };
    let start = prefix.len() + fence.len();
    Some(content(&rest[start..], fence, raw).map_or_else(
        |fault| Err(fault.after(start)),
        |(text, length)| Ok((text, start + length + fence.len())),
    ))
}

/// The text up to its closing fence, and how many bytes of the source it takes.
fn content(source: &str, fence: &str, raw: bool) -> Result<(String, usize), Fault> {
    let mut text = String::new();
    let mut at = 0;
    loop {
        let rest = &source[at..];
        if rest.starts_with(fence) {
            return Ok((text, at));
        }
        match rest.chars().next() {
            Some('\\') if !raw && rest.len() > 1 => {
                let (character, length) = escape(rest).map_err(|fault| fault.after(at))?;
                text.push(character);
                at += length;
            }
            // As in CEL, every line end inside a text is one newline.
            Some('\r') if fence.len() == 3 => {
                text.push('\n');
                at += if rest.starts_with("\r\n") { 2 } else { 1 };
            }
            Some('\r' | '\n') if fence.len() == 1 => {
                return Err(unclosed(at, fence, "before the end of the line"));
            }
            Some(character) => {
                text.push(character);
                at += character.len_utf8();
            }
            None => return Err(unclosed(at, fence, "before the end of the condition")),
        }
    }
}

fn unclosed(at: usize, fence: &str, place: &str) -> Fault {
    Fault::new(
        at,
        format!("the text is not closed; expected `{fence}` {place}"),
    )
}

/// The character that the escape at the start of `rest` stands for, and its length.
fn escape(rest: &str) -> Result<(char, usize), Fault> {
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
        'x' | 'X' => return coded(rest, 2, 2, 16),
        'u' => return coded(rest, 2, 4, 16),
        'U' => return coded(rest, 2, 8, 16),
        '0'..='3' => return coded(rest, 1, 3, 8),
        other => {
            return Err(Fault::new(
                0,
                format!(
                    "`\\{0}` is not an escape; expected `\\\\{0}`, or `r` before the text",
                    other.escape_debug()
                ),
            ));
        }
    };
    Ok((plain, 2))
}

fn coded(rest: &str, skip: usize, digits: usize, radix: u32) -> Result<(char, usize), Fault> {
    let length = skip + digits;
    rest.get(skip..length)
        .filter(|code| code.chars().all(|c| c.is_digit(radix)))
        .and_then(|code| u32::from_str_radix(code, radix).ok())
        .and_then(char::from_u32)
        .map(|character| (character, length))
        .ok_or_else(|| {
            let base = if radix == 8 { "octal" } else { "hexadecimal" };
            Fault::new(
                0,
                format!("not a character's code; expected {digits} {base} digits"),
            )
        })
}
