//! Values of secret-like names: where a value ends, and which values are not secrets
//! (references to variables, types, prose, code).

use std::ops::Range;

use super::name::NameKind;

/// A value after a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundValue {
    /// The content, without quotes.
    pub(super) span: Range<usize>,
    pub(super) is_quoted: bool,
}

/// Values that are types, states or prose.
const NO_SECRETS: &[&str] = &[
    "true",
    "false",
    "null",
    "none",
    "nil",
    "undefined",
    "yes",
    "no",
    "on",
    "off",
    "enabled",
    "disabled",
    "required",
    "optional",
    "missing",
    "invalid",
    "expired",
    "valid",
    "empty",
    "redacted",
    "hidden",
    "masked",
    "changed",
    "unchanged",
    "ok",
    "string",
    "str",
    "&str",
    "bool",
    "boolean",
    "int",
    "integer",
    "number",
    "float",
    "bytes",
    "any",
    "object",
    "text",
    "uuid",
    "inherit",
    "passed",
    "failed",
    "unknown",
    "default",
    "must",
    "is",
    "are",
    "was",
    "should",
    "cannot",
    "can't",
    "can",
    "may",
    "has",
    "have",
    "does",
    "not",
    "the",
    "a",
    "an",
    "this",
    "your",
    "you",
    "please",
    "expected",
    "unexpected",
    "too",
    "incorrect",
    "wrong",
    "error",
    "use",
    "see",
    "for",
    "to",
    "in",
    "and",
    "or",
    "click",
    "enter",
    "with",
    "from",
    "of",
    "it",
    "we",
    "if",
    "when",
    "at",
    "by",
    "as",
    "i",
    "self",
    "value",
    "new",
    "let",
    "char",
    "date",
    "file",
    "secretstring",
    "bearer",
    "basic",
    "keyword",
    "ident",
    "identifier",
    "vec",
    "unset",
    "n/a",
    "-",
    "varchar",
];
/// Beginnings of references to a value that is elsewhere.
const REFERENCES: &[&str] = &[
    "<",
    "{{",
    "${",
    "$(",
    "#{",
    "%(",
    "op://",
    "vault:",
    "env:",
    "process.env",
    "os.environ",
    "os.getenv",
    "std::env",
    "getenv(",
    "env(",
    "secrets.",
];

/// Finds a value at `at`, on the same line. Quotes may be escaped.
pub(super) fn find_value(text: &str, at: usize) -> Option<FoundValue> {
    let at = skip_spaces(text, at);
    let (quote, start) = opening_quote(text, at);
    if let Some(quote) = quote {
        let rest = &text[start..];
        let end = closing_quote(rest, quote, start - at > 1).unwrap_or_else(|| line_end(rest));
        return (end > 0).then_some(FoundValue {
            span: start..start + end,
            is_quoted: true,
        });
    }
    let end = at + unquoted_length(&text[at..]);
    (end > at).then_some(FoundValue {
        span: at..end,
        is_quoted: false,
    })
}

/// Where the spaces of a line end.
pub(super) fn skip_spaces(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    at + (rest.len() - rest.trim_start_matches([' ', '\t']).len())
}

/// The quote at `at`, after backslashes and a prefix as in `b"…"`, and where its content begins.
fn opening_quote(text: &str, at: usize) -> (Option<char>, usize) {
    let rest = &text[at..];
    let prefix = rest.len() - rest.trim_start_matches('\\').len();
    let prefix = match rest.as_bytes() {
        [b'b' | b'r' | b'f' | b'@', b'"' | b'\'', ..] => 1,
        _ => prefix,
    };
    match rest[prefix..].chars().next() {
        Some(quote @ ('"' | '\'' | '`')) => (Some(quote), at + prefix + 1),
        _ => (None, at),
    }
}

/// The offset of the closing quote, without the backslashes before it. In a text with escaped
/// quotes, an escaped quote closes the value.
pub(super) fn closing_quote(rest: &str, quote: char, is_escaped: bool) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = rest[from..].find(quote) {
        let at = from + found;
        let slashes = at - rest[..at].trim_end_matches('\\').len();
        if is_escaped || slashes.is_multiple_of(2) {
            return Some(if is_escaped { at - slashes } else { at });
        }
        from = at + 1;
    }
    None
}

pub(super) fn line_end(rest: &str) -> usize {
    rest.find(['\n', '\r']).unwrap_or(rest.len())
}

/// The length of a value without quotes. A separator inside a value belongs to it, unless
/// whitespace or another name follows.
fn unquoted_length(rest: &str) -> usize {
    let mut end = rest.len();
    for (at, c) in rest.char_indices() {
        let is_end = match c {
            '"' | '\'' | '`' | '<' | '>' | '|' => true,
            ',' | ';' | '&' => is_separator(&rest[at + 1..]),
            // A line break in a JSON string.
            '\\' => rest[at + 1..].starts_with(['n', 'r', 't', '"', '\'']),
            c => c.is_whitespace(),
        };
        if is_end {
            end = at;
            break;
        }
    }
    rest[..end]
        .trim_end_matches([')', ']', '}', ',', '.', ';', ':'])
        .len()
}

/// Whether a separator ends a value: before the end, a space, a quote, itself or the next name.
fn is_separator(after: &str) -> bool {
    let name = after
        .trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' '));
    after.is_empty()
        || after.starts_with(|c: char| c.is_whitespace() || "\"'`&;,{}[]".contains(c))
        || (name.len() < after.len() && name.starts_with(['=', ':']))
}

/// Whether a value is not a secret.
pub(super) fn is_harmless(text: &str, name: &str, kind: NameKind, value: &FoundValue) -> bool {
    let content = text[value.span.clone()].trim();
    let after = &text[value.span.end..];
    is_placeholder(content)
        || is_reference(content)
        || is_path(content)
        || is_word(content, name)
        || is_number(content, name, kind)
        || (!value.is_quoted && is_code(content, after, name))
        || (kind == NameKind::Ambiguous
            && !looks_random(content, value.is_quoted, name, &text[..value.span.start]))
}

fn is_placeholder(content: &str) -> bool {
    let is_filler = |c: char| matches!(c, '*' | 'x' | 'X' | '.' | '-' | '…' | '•' | '_' | '?');
    content.starts_with(super::MASK.trim_end_matches(']'))
        || content.starts_with("[REDACTED")
        || content == "…"
        || (content.chars().count() >= 3 && content.chars().all(is_filler))
        || !content.contains(|c: char| c.is_alphanumeric() || !c.is_ascii())
            && content.chars().count() < 4
}

fn is_reference(content: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.'))
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    };
    let wrapped = |begin: &str, end: &str| {
        let inner = content
            .strip_prefix(begin)
            .and_then(|rest| rest.strip_suffix(end));
        inner.is_some_and(is_name)
    };
    REFERENCES.iter().any(|begin| content.starts_with(begin))
        || content.strip_prefix('$').is_some_and(is_name)
        || wrapped("%", "%")
        || wrapped("{", "}")
}

/// Usual first folders of a path.
const FOLDERS: [&str; 6] = ["home", "Users", "var", "run", "etc", "tmp"];

/// Whether it is a path: a secret in Base64 that begins with a slash has capital letters.
fn is_path(content: &str) -> bool {
    let is_rooted = ["/", "./", "../", "~/"]
        .iter()
        .any(|root| content.starts_with(root));
    let is_drive = matches!(content.as_bytes(), [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    let is_plain = content.bytes().all(|b| {
        b.is_ascii_lowercase()
            || b.is_ascii_digit()
            || matches!(b, b'.' | b'_' | b'/' | b'-' | b'~')
    });
    let mut folders = content.split('/');
    let is_folder = match (folders.next(), folders.next()) {
        (Some(""), Some(first)) => FOLDERS.contains(&first),
        (Some(first), Some(_)) => matches!(first, "~" | "."),
        (_, None) | (None, _) => false,
    };
    is_drive || is_folder || (is_rooted && is_plain)
}

fn is_word(content: &str, name: &str) -> bool {
    let word = content.trim_end_matches([',', '.', ';', ':', '!', '?']);
    NO_SECRETS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(word))
        || name.trim_start_matches('-').eq_ignore_ascii_case(word)
}

/// Whether it is a number that counts something.
fn is_number(content: &str, name: &str, kind: NameKind) -> bool {
    let is_number = content
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'%' | b'/' | b',' | b'k' | b'K' | b'M'));
    let is_plural = name.ends_with('s') || name.ends_with('S');
    is_number
        && match kind {
            NameKind::Password | NameKind::Header => false,
            NameKind::Token => is_plural || content.len() < 6,
            NameKind::Ambiguous => true,
        }
}

/// Whether it is an expression of a program: a call, a path of identifiers, a type.
fn is_code(content: &str, after: &str, name: &str) -> bool {
    let is_variable = name.bytes().any(|b| b.is_ascii_lowercase());
    let is_identifier = |part: &str| {
        !part.is_empty()
            && !part.starts_with(|c: char| c.is_ascii_digit())
            && part.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
    };
    let head = content.trim_start_matches(['&', '*', '!']);
    let head = head.strip_prefix("await ").unwrap_or(head);
    let callee = head.split(['(', '[', '<']).next().unwrap_or(head);
    let mut parts = callee
        .split("::")
        .flat_map(|part| part.split('.'))
        .filter(|part| !part.is_empty());
    let is_path = parts.clone().count() > 0 && parts.all(is_identifier);
    let last = callee.rsplit(['.', ':']).next().unwrap_or(callee);
    let is_called = callee.len() < head.len() || after.starts_with(['(', '[', '<']);
    let is_member = callee.contains("::") || (callee.contains('.') && super::is_secret_name(last));
    is_variable && is_path && (is_called || is_member)
}

/// Whether a value of an ambiguous name looks like a secret.
fn looks_random(content: &str, is_quoted: bool, name: &str, before: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has_digit = content.bytes().any(|b| b.is_ascii_digit());
    let has_capital = content.bytes().skip(1).any(|b| b.is_ascii_uppercase());
    let has_space = content.contains(' ');
    if name.ends_with("auth") {
        !has_space && content.len() >= 8 && (has_digit || has_capital || content.contains(':'))
    } else if name.ends_with("key") {
        !has_space && content.len() >= 16 && has_digit
    } else {
        is_quoted || has_digit || has_capital || content.len() >= 8 || before.ends_with('=')
    }
}
