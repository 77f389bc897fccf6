//! JSON as spans of text: the positions of array elements and object members.
//!
//! Unrepaired content must keep its bytes: key order, whitespace and number formats, which a parsed
//! value loses. So only brackets are parsed: a list or object is split into spans, and the content
//! of a span is parsed on demand. Text with unbalanced brackets, quotes or commas is neither a list
//! nor an object.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;
use serde_json::Value;

#[cfg(test)]
thread_local! {
    /// The number of bytes scanned on this thread, for tests of the complexity.
    pub(super) static SCANNED_BYTES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The spans of an array's elements.
pub fn elements(text: &str) -> Option<Vec<Range<usize>>> {
    let mut spans = Vec::new();
    whole(text, |bytes, start| {
        let end;
        (spans, end) = array(bytes, start)?;
        Some(end)
    })?;
    Some(spans)
}

/// An object split into members. Members that are arrays are split into elements in the same pass.
#[derive(Debug, Clone)]
pub struct Object<'a> {
    text: &'a str,
    members: Vec<Member<'a>>,
}

#[derive(Debug, Clone)]
struct Member<'a> {
    name: Cow<'a, str>,
    value: Range<usize>,
    elements: Option<Vec<Range<usize>>>,
}

impl<'a> Object<'a> {
    /// Parses a text as an object.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut members = Vec::new();
        whole(text, |bytes, start| {
            each(bytes, start, *b"{}", |at| {
                let end = string_end(bytes, at)?;
                let name = string(text.get(at..end)?)?;
                let colon = skip_whitespace(bytes, end);
                if bytes.get(colon) != Some(&b':') {
                    return None;
                }
                let start = skip_whitespace(bytes, colon + 1);
                // A malformed array still counts as a value.
                let (elements, end) = match array(bytes, start) {
                    Some((elements, end)) => (Some(elements), end),
                    None => (None, value_end(bytes, start)?),
                };
                members.push(Member {
                    name,
                    value: start..end,
                    elements,
                });
                Some(end)
            })
        })?;
        Some(Self { text, members })
    }

    /// The text of the whole object.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The last of duplicate members, as in most parsers.
    fn member(&self, key: &str) -> Option<&Member<'a>> {
        let mut members = self.members.iter().rev();
        members.find(|member| member.name == key)
    }

    /// The span of a member's value.
    pub fn span(&self, key: &str) -> Option<Range<usize>> {
        self.member(key).map(|member| member.value.clone())
    }

    /// The spans of the elements of a member that is an array.
    pub fn elements(&self, key: &str) -> Option<&[Range<usize>]> {
        self.member(key)?.elements.as_deref()
    }

    /// The texts of the elements of a member that is an array.
    pub fn pieces(&self, key: &str) -> Option<impl Iterator<Item = &'a str>> {
        let text = self.text;
        let elements = self.elements(key)?.iter();
        Some(elements.filter_map(move |span| text.get(span.clone())))
    }

    /// The text of a member's value.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.text.get(self.span(key)?)
    }

    /// A member that is a string.
    pub fn string(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(string)
    }

    /// Whether the object has no members except these.
    pub fn has_only(&self, keys: &[&str]) -> bool {
        self.members
            .iter()
            .all(|member| keys.contains(&member.name.as_ref()))
    }
}

/// Parses a text as a string.
pub fn string(text: &str) -> Option<Cow<'_, str>> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    if !inside.contains('\\') {
        return Some(Cow::Borrowed(inside));
    }
    serde_json::from_str(text).ok().map(Cow::Owned)
}

/// Serializes a string.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The text with another text in place of a span.
pub fn splice(text: &str, span: Range<usize>, replacement: &str) -> String {
    let (before, after) = (text.get(..span.start), text.get(span.end..));
    [
        before.unwrap_or_default(),
        replacement,
        after.unwrap_or_default(),
    ]
    .concat()
}

/// Parses a whole text with `take`, which gets the start of a value and returns its end. Only
/// whitespace is allowed around the value.
fn whole(text: &str, take: impl FnOnce(&[u8], usize) -> Option<usize>) -> Option<()> {
    let bytes = text.as_bytes();
    #[cfg(test)]
    SCANNED_BYTES.with(|count| count.set(count.get() + bytes.len()));
    let end = take(bytes, skip_whitespace(bytes, 0))?;
    (skip_whitespace(bytes, end) == bytes.len()).then_some(())
}

/// The elements of the array at this offset, and its end.
fn array(bytes: &[u8], start: usize) -> Option<(Vec<Range<usize>>, usize)> {
    let mut spans = Vec::new();
    let end = each(bytes, start, *b"[]", |at| {
        let end = value_end(bytes, at)?;
        spans.push(at..end);
        Some(end)
    })?;
    Some((spans, end))
}

/// Iterates over the comma-separated values between two brackets. `take` gets the start of a value
/// and returns its end. Returns the end of the whole.
fn each(
    bytes: &[u8],
    start: usize,
    [opening, closing]: [u8; 2],
    mut take: impl FnMut(usize) -> Option<usize>,
) -> Option<usize> {
    if bytes.get(start) != Some(&opening) {
        return None;
    }
    let mut at = skip_whitespace(bytes, start + 1);
    if bytes.get(at) == Some(&closing) {
        return Some(at + 1);
    }
    loop {
        at = skip_whitespace(bytes, take(at)?);
        match bytes.get(at) {
            Some(b',') => at = skip_whitespace(bytes, at + 1),
            Some(byte) if *byte == closing => return Some(at + 1),
            Some(_) | None => return None,
        }
    }
}

fn skip_whitespace(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The end of the string at this offset.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let start = at + 1;
    let mut at = start;
    // Most of a conversation is inside strings and is scanned several times. Texts contain many
    // `\n`, so only quotes are searched, and the backslashes before each are counted.
    loop {
        at += memchr(b'"', bytes.get(at..)?)?;
        let before = bytes.get(start..at)?;
        let escapes = before.iter().rev().take_while(|byte| **byte == b'\\');
        at += 1;
        if escapes.count().is_multiple_of(2) {
            return Some(at);
        }
    }
}

/// The end of the value at this offset. Nesting uses no stack.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => string_end(bytes, at),
        b'{' | b'[' => {
            let mut depth = 0usize;
            let mut at = at;
            loop {
                match bytes.get(at)? {
                    b'"' => {
                        at = string_end(bytes, at)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        b'}' | b']' | b',' | b':' => None,
        _ => {
            let is_plain = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
            let rest = bytes.get(at..)?;
            let length = rest.iter().take_while(is_plain).count();
            (length > 0).then_some(at + length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Option<Vec<&str>> {
        elements(text).map(|spans| spans.into_iter().map(|span| &text[span]).collect())
    }

    #[test]
    fn splits_a_list_into_its_elements() {
        assert_eq!(pieces("[]"), Some(vec![]));
        assert_eq!(
            pieces(" [ 1.50 ,\t{\"a\" : [\"]\"] }, \"\\\"]\",null ]\n"),
            Some(vec!["1.50", "{\"a\" : [\"]\"] }", "\"\\\"]\"", "null"])
        );
    }

    #[test]
    fn rejects_text_that_is_not_a_list() {
        for text in [
            "", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1]]", "{}", "[\"a]", "[[1]",
            "[1]x", "[:]", "[\"\\",
        ] {
            assert_eq!(pieces(text), None, "{text}");
        }
    }

    #[test]
    fn finds_keys_in_any_escaped_spelling() {
        let object = Object::parse(r#" { "a" : 1, "r\u006fle": "us\u0065r", "a": [2] } "#).unwrap();
        assert_eq!(object.get("a"), Some("[2]"));
        assert_eq!(object.string("role").as_deref(), Some("user"));
        assert_eq!(object.string("a"), None);
        assert_eq!(object.get("b"), None);
        assert!(object.has_only(&["role", "a"]) && !object.has_only(&["a"]));
    }

    #[test]
    fn splits_the_arrays_of_an_object() {
        let text = r#" { "a" : [ 1, {"b":[2]} , "]" ], "c": [], "d": [3 4], "e": 5 }"#;
        let object = Object::parse(text).unwrap();
        let pieces = |key: &str| object.pieces(key).map(Iterator::collect::<Vec<_>>);
        assert_eq!(pieces("a"), Some(vec!["1", r#"{"b":[2]}"#, r#""]""#]));
        assert_eq!(pieces("c"), Some(vec![]));
        // Not a list, but still a value.
        assert_eq!(pieces("d"), None);
        assert_eq!(object.get("d"), Some("[3 4]"));
        assert_eq!((pieces("e"), pieces("f")), (None, None));
        for key in ["a", "c", "d", "e"] {
            let spans = elements(object.get(key).unwrap()).map(|spans| spans.len());
            assert_eq!(object.elements(key).map(<[_]>::len), spans, "{key}");
        }
    }

    #[test]
    fn a_string_ends_at_the_first_unescaped_quote() {
        for (text, end) in [
            (r#""""#, Some(2)),
            (r#""a\\" "#, Some(5)),
            (r#""a\\\" " "#, Some(8)),
            (r#""\"\"\\\"" "#, Some(10)),
            (r#""\n\n"x"#, Some(6)),
            (r#"""#, None),
            (r#""a\""#, None),
            (r#"\""#, None),
            ("", None),
        ] {
            assert_eq!(string_end(text.as_bytes(), 0), end, "{text}");
        }
    }

    #[test]
    fn rejects_text_that_is_not_an_object() {
        for text in [
            "",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "[]",
            "{}}",
        ] {
            assert!(Object::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn nesting_uses_no_stack() {
        let deep = format!("[{}{}]", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(pieces(&deep).map(|pieces| pieces.len()), Some(1));
    }

    #[test]
    fn splits_like_serde_json() {
        let text = r#"[{"a":[1,2,{"b":"},{"}]},[],"x",-1.5e10,true,{"":"\\"}]"#;
        let read: Vec<Value> = serde_json::from_str(text).unwrap();
        let split = pieces(text).unwrap();
        let split: Vec<Value> = split
            .into_iter()
            .map(|p| serde_json::from_str(p).unwrap())
            .collect();
        assert_eq!(split, read);
    }
}
