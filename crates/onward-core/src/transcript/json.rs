//! JSON as spans of text: where the elements of an array and the members of an object stand.
//!
//! What is not repaired must come out byte for byte, with the order of its keys, its blanks and its way
//! to write numbers; a parsed value has lost all that. So nothing is parsed here beyond the brackets: a
//! list or an object is cut into pieces of its text, and what is inside a piece is looked at only by
//! whoever needs it. Text whose brackets, quotes and commas do not fit is no list and no object.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;
use serde_json::Value;

#[cfg(test)]
thread_local! {
    /// How many bytes were cut into pieces on this thread, for whoever counts the work.
    pub(super) static CUT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The spans of the elements of an array, in the text that it is.
pub fn elements(text: &str) -> Option<Vec<Range<usize>>> {
    let mut spans = Vec::new();
    whole(text, |bytes, start| {
        let end;
        (spans, end) = array(bytes, start)?;
        Some(end)
    })?;
    Some(spans)
}

/// An object, cut into members, and those that are arrays into their elements on the way.
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
    /// The object that a piece of text is.
    pub fn of(text: &'a str) -> Option<Self> {
        let mut members = Vec::new();
        whole(text, |bytes, start| {
            each(bytes, start, *b"{}", |at| {
                let end = string_end(bytes, at)?;
                let name = string(text.get(at..end)?)?;
                let colon = blanks_end(bytes, end);
                if bytes.get(colon) != Some(&b':') {
                    return None;
                }
                let start = blanks_end(bytes, colon + 1);
                // An array that does not fit is still a value.
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

    /// Of two with one name the last counts, as for most readers.
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

    /// Whether there is no other member than these.
    pub fn has_only(&self, keys: &[&str]) -> bool {
        self.members
            .iter()
            .all(|member| keys.contains(&member.name.as_ref()))
    }
}

/// The string that a piece of text is.
pub fn string(text: &str) -> Option<Cow<'_, str>> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    if !inside.contains('\\') {
        return Some(Cow::Borrowed(inside));
    }
    serde_json::from_str(text).ok().map(Cow::Owned)
}

/// A string as JSON.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// All of a text, of which `take` is told where something begins and says where it ends: nothing but
/// blanks may stand around it.
fn whole(text: &str, take: impl FnOnce(&[u8], usize) -> Option<usize>) -> Option<()> {
    let bytes = text.as_bytes();
    #[cfg(test)]
    CUT.with(|cut| cut.set(cut.get() + bytes.len()));
    let end = take(bytes, blanks_end(bytes, 0))?;
    (blanks_end(bytes, end) == bytes.len()).then_some(())
}

/// The elements of the array that begins here, and where it ends.
fn array(bytes: &[u8], start: usize) -> Option<(Vec<Range<usize>>, usize)> {
    let mut spans = Vec::new();
    let end = each(bytes, start, *b"[]", |at| {
        let end = value_end(bytes, at)?;
        spans.push(at..end);
        Some(end)
    })?;
    Some((spans, end))
}

/// Goes through what stands between two brackets, separated by commas; `take` is told where something
/// begins and says where it ends. The answer is where all of it ends.
fn each(
    bytes: &[u8],
    start: usize,
    [opening, closing]: [u8; 2],
    mut take: impl FnMut(usize) -> Option<usize>,
) -> Option<usize> {
    if bytes.get(start) != Some(&opening) {
        return None;
    }
    let mut at = blanks_end(bytes, start + 1);
    if bytes.get(at) == Some(&closing) {
        return Some(at + 1);
    }
    loop {
        at = blanks_end(bytes, take(at)?);
        match bytes.get(at) {
            Some(b',') => at = blanks_end(bytes, at + 1),
            Some(byte) if *byte == closing => return Some(at + 1),
            Some(_) | None => return None,
        }
    }
}

fn blanks_end(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Where the string ends that begins here.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let start = at + 1;
    let mut at = start;
    // Nearly all of a conversation is inside of strings, and it is gone through several times. Texts are
    // full of `\n`, so only quotes are looked for, and what stands before each says whether it counts.
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

/// Where the value ends that begins here. Depth costs no stack.
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
    fn a_list_falls_into_the_texts_of_its_elements() {
        assert_eq!(pieces("[]"), Some(vec![]));
        assert_eq!(
            pieces(" [ 1.50 ,\t{\"a\" : [\"]\"] }, \"\\\"]\",null ]\n"),
            Some(vec!["1.50", "{\"a\" : [\"]\"] }", "\"\\\"]\"", "null"])
        );
    }

    #[test]
    fn what_is_no_list_is_none() {
        for text in [
            "", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1]]", "{}", "[\"a]", "[[1]",
            "[1]x", "[:]", "[\"\\",
        ] {
            assert_eq!(pieces(text), None, "{text}");
        }
    }

    #[test]
    fn an_object_is_read_by_its_keys_in_any_spelling() {
        let object = Object::of(r#" { "a" : 1, "r\u006fle": "us\u0065r", "a": [2] } "#).unwrap();
        assert_eq!(object.get("a"), Some("[2]"));
        assert_eq!(object.string("role").as_deref(), Some("user"));
        assert_eq!(object.string("a"), None);
        assert_eq!(object.get("b"), None);
        assert!(object.has_only(&["role", "a"]) && !object.has_only(&["a"]));
    }

    #[test]
    fn the_arrays_of_an_object_are_cut_on_the_way() {
        let text = r#" { "a" : [ 1, {"b":[2]} , "]" ], "c": [], "d": [3 4], "e": 5 }"#;
        let object = Object::of(text).unwrap();
        let pieces = |key: &str| object.pieces(key).map(Iterator::collect::<Vec<_>>);
        assert_eq!(pieces("a"), Some(vec!["1", r#"{"b":[2]}"#, r#""]""#]));
        assert_eq!(pieces("c"), Some(vec![]));
        // No list of anything, and still a value.
        assert_eq!(pieces("d"), None);
        assert_eq!(object.get("d"), Some("[3 4]"));
        assert_eq!((pieces("e"), pieces("f")), (None, None));
        for key in ["a", "c", "d", "e"] {
            let spans = elements(object.get(key).unwrap()).map(|spans| spans.len());
            assert_eq!(object.elements(key).map(<[_]>::len), spans, "{key}");
        }
    }

    #[test]
    fn a_string_ends_at_the_first_quote_that_nothing_escapes() {
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
    fn what_is_no_object_is_none() {
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
            assert!(Object::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("[{}{}]", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(pieces(&deep).map(|pieces| pieces.len()), Some(1));
    }

    #[test]
    fn what_a_real_reader_takes_is_cut_where_it_cuts() {
        let text = r#"[{"a":[1,2,{"b":"},{"}]},[],"x",-1.5e10,true,{"":"\\"}]"#;
        let read: Vec<Value> = serde_json::from_str(text).unwrap();
        let cut = pieces(text).unwrap();
        let cut: Vec<Value> = cut
            .into_iter()
            .map(|p| serde_json::from_str(p).unwrap())
            .collect();
        assert_eq!(cut, read);
    }
}
