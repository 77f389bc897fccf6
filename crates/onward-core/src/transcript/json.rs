//! JSON as spans of text: where the elements of an array and the members of an object stand.
//!
//! What is not repaired must come out byte for byte, with the order of its keys, its blanks and its way
//! to write numbers; a parsed value has lost all that. So nothing is parsed here beyond the brackets: a
//! list or an object is cut into pieces of its text, and what is inside a piece is looked at only by
//! whoever needs it. Text whose brackets, quotes and commas do not fit is no list and no object.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;
use serde_json::Value;

#[cfg(test)]
thread_local! {
    /// How many bytes were cut into pieces on this thread, for whoever counts the work.
    pub(super) static CUT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The spans of the elements of an array, in the text that it is.
pub fn elements(text: &str) -> Option<Vec<Range<usize>>> {
    let mut spans = Vec::new();
    each(text, b'[', b']', |at| {
        let end = value_end(text.as_bytes(), at)?;
        spans.push(at..end);
        Some(end)
    })?;
    Some(spans)
}

/// An object, cut into members.
#[derive(Debug, Clone)]
pub struct Object<'a> {
    text: &'a str,
    members: Vec<(Cow<'a, str>, Range<usize>)>,
}

impl<'a> Object<'a> {
    /// The object that a piece of text is.
    pub fn of(text: &'a str) -> Option<Self> {
        let mut members = Vec::new();
        each(text, b'{', b'}', |at| {
            let bytes = text.as_bytes();
            let end = string_end(bytes, at)?;
            let key = string(text.get(at..end)?)?;
            let colon = blanks_end(bytes, end);
            let value = blanks_end(bytes, colon + 1);
            if bytes.get(colon) != Some(&b':') {
                return None;
            }
            let end = value_end(bytes, value)?;
            members.push((key, value..end));
            Some(end)
        })?;
        Some(Self { text, members })
    }

    /// The span of a member's value. Of two with one name the last counts, as for most readers.
    pub fn span(&self, key: &str) -> Option<Range<usize>> {
        let found = self.members.iter().rev().find(|(name, _)| name == key);
        found.map(|(_, span)| span.clone())
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
            .all(|(name, _)| keys.contains(&name.as_ref()))
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

/// Goes through what stands between two brackets, separated by commas; `take` is told where something
/// begins and says where it ends. Nothing but blanks may stand around it.
fn each(
    text: &str,
    opening: u8,
    closing: u8,
    mut take: impl FnMut(usize) -> Option<usize>,
) -> Option<()> {
    let bytes = text.as_bytes();
    let start = blanks_end(bytes, 0);
    if bytes.get(start) != Some(&opening) {
        return None;
    }
    #[cfg(test)]
    CUT.with(|cut| cut.set(cut.get() + bytes.len()));
    let mut at = blanks_end(bytes, start + 1);
    let mut end = if bytes.get(at) == Some(&closing) {
        at
    } else {
        loop {
            at = blanks_end(bytes, take(at)?);
            match bytes.get(at) {
                Some(b',') => at = blanks_end(bytes, at + 1),
                Some(byte) if *byte == closing => break at,
                Some(_) | None => return None,
            }
        }
    };
    end = blanks_end(bytes, end + 1);
    (end == bytes.len()).then_some(())
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
    let mut at = at + 1;
    // Nearly all of a conversation is inside of strings, and it is gone through several times.
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
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
