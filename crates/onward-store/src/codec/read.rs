//! Decodes details, key by key. An error names the path and what was expected.
//!
//! An error contains the value found only if a name, an id or a time was expected, and then
//! truncated: details contain claim tokens and whole reports, and errors are logged. The
//! counterpart is `write.rs`.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::id::{
    ArtifactId, BranchId, ClaimToken, PlanId, ReviewId, SessionId, SkillExecutionId, StepId,
};
use serde_json::{Map, Value};

use super::Undecodable;

/// Maximum number of characters of an invalid text in an error.
const SHOWN: usize = 60;

/// A list of all values of an enum, and a match that fails to compile if one is missing.
macro_rules! every {
    ($name:ident: $of:ident = $($variant:ident),+ $(,)?) => {
        const $name: &[$of] = &[$($of::$variant),+];
        const _: fn($of) = |value| match value {
            $($of::$variant)|+ => (),
        };
    };
}
pub(super) use every;

/// A type that can be decoded from one JSON value.
pub(super) trait Readable<'v>: Sized {
    /// The expected type, with its article.
    const EXPECTED: &'static str;

    fn read(value: &'v Value) -> Option<Self>;
}

/// The fields of an object, and its path.
pub(super) struct Fields<'v> {
    map: &'v Map<String, Value>,
    path: String,
}

impl<'v> Fields<'v> {
    /// The outermost object.
    pub(super) fn of_whole(name: &str, value: &'v Value) -> Result<Self, Undecodable> {
        let map = value.as_object().ok_or_else(|| Undecodable {
            path: String::new(),
            why: format!("{name} must be an object, not {}", kind(value)),
        })?;
        let path = String::new();
        Ok(Self { map, path })
    }

    fn inside(value: &'v Value, path: String) -> Result<Self, Undecodable> {
        match value.as_object() {
            Some(map) => Ok(Self { map, path }),
            None => Err(unfit(path, value, "an object")),
        }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn present(&self, key: &str) -> Result<&'v Value, Undecodable> {
        self.map.get(key).ok_or_else(|| {
            let path = self.path_of(key);
            let why = format!("`{path}` is missing");
            Undecodable { path, why }
        })
    }

    /// A required field.
    pub(super) fn get<T: Readable<'v>>(&self, key: &str) -> Result<T, Undecodable> {
        let value = self.present(key)?;
        T::read(value).ok_or_else(|| unfit(self.path_of(key), value, T::EXPECTED))
    }

    /// An optional field. Null is not absent: the encoder never writes it.
    pub(super) fn get_some<T: Readable<'v>>(&self, key: &str) -> Result<Option<T>, Undecodable> {
        match self.map.get(key) {
            Some(_) => self.get(key).map(Some),
            None => Ok(None),
        }
    }

    /// Whether a field is present.
    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// A required list, possibly empty.
    pub(super) fn list<T: Readable<'v>, L: FromIterator<T>>(
        &self,
        key: &str,
    ) -> Result<L, Undecodable> {
        self.items(key)?
            .iter()
            .enumerate()
            .map(|(index, item)| {
                T::read(item).ok_or_else(|| unfit(self.path_in(key, index), item, T::EXPECTED))
            })
            .collect()
    }

    /// A required list of objects, possibly empty.
    pub(super) fn objects<T, L: FromIterator<T>>(
        &self,
        key: &str,
        one: fn(&Fields<'_>) -> Result<T, Undecodable>,
    ) -> Result<L, Undecodable> {
        self.items(key)?
            .iter()
            .enumerate()
            .map(|(index, item)| one(&Fields::inside(item, self.path_in(key, index))?))
            .collect()
    }

    /// A required object.
    pub(super) fn object(&self, key: &str) -> Result<Fields<'v>, Undecodable> {
        Fields::inside(self.present(key)?, self.path_of(key))
    }

    /// A required field with one of these names.
    pub(super) fn word<T: Copy>(
        &self,
        key: &str,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Result<T, Undecodable> {
        let word = self.get::<&str>(key)?;
        let named = all.iter().copied().find(|value| name(*value) == word);
        named.ok_or_else(|| {
            let words: Vec<&str> = all.iter().copied().map(name).collect();
            self.none_of(key, word, &words)
        })
    }

    /// Error for a text that is none of the expected names.
    pub(super) fn none_of(&self, key: &str, word: &str, expected: &[&str]) -> Undecodable {
        let path = self.path_of(key);
        let why = none_of(&format!("`{path}`"), word, expected);
        Undecodable { path, why }
    }

    /// Error for a text that its own parser rejected.
    pub(super) fn refused(&self, key: &str, why: impl std::fmt::Display) -> Undecodable {
        let path = self.path_of(key);
        let why = format!("`{path}` is invalid: {why}");
        Undecodable { path, why }
    }

    fn items(&self, key: &str) -> Result<&'v Vec<Value>, Undecodable> {
        let value = self.present(key)?;
        value
            .as_array()
            .ok_or_else(|| unfit(self.path_of(key), value, "a list"))
    }

    fn path_in(&self, key: &str, index: usize) -> String {
        format!("{}[{index}]", self.path_of(key))
    }
}

/// Message for a text that is none of the expected names.
pub(super) fn none_of(place: &str, word: &str, expected: &[&str]) -> String {
    let expected = expected.join("`, `");
    format!("{place} is `{}`, expected one of `{expected}`", cut(word))
}

fn unfit(path: String, value: &Value, expected: &'static str) -> Undecodable {
    let found = match value.as_str() {
        Some(text) if expected != TEXT => format!("`{}`", cut(text)),
        Some(_) | None => kind(value).to_owned(),
    };
    let why = format!("`{path}` is {found}, expected {expected}");
    Undecodable { path, why }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => TEXT,
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

const TEXT: &str = "text";

/// `$value` is the JSON value in `$read`, which returns an option.
macro_rules! readable {
    ($($of:ty: $expected:expr, |$value:ident| $read:expr;)+) => {$(
        impl<'v> Readable<'v> for $of {
            const EXPECTED: &'static str = $expected;

            fn read($value: &'v Value) -> Option<Self> {
                $read
            }
        }
    )+};
}

readable! {
    &'v str: TEXT, |value| value.as_str();
    String: TEXT, |value| value.as_str().map(str::to_owned);
    SessionId: TEXT, |value| value.as_str().map(SessionId::new);
    ClaimToken: TEXT, |value| value.as_str().map(ClaimToken::new);
    PlanId: "an id", |value| value.as_str()?.parse().ok();
    StepId: "an id", |value| value.as_str()?.parse().ok();
    BranchId: "an id", |value| value.as_str()?.parse().ok();
    ReviewId: "an id", |value| value.as_str()?.parse().ok();
    ArtifactId: "an id", |value| value.as_str()?.parse().ok();
    SkillExecutionId: "an id", |value| value.as_str()?.parse().ok();
    Timestamp: "an RFC 3339 time", |value| value.as_str()?.parse().ok();
    Duration: "whole milliseconds", |value| value.as_u64().map(Duration::from_millis);
    u32: "a whole number up to 4294967295", |value| value.as_u64()?.try_into().ok();
    f64: "a number", |value| value.as_f64();
    bool: "a boolean", |value| value.as_bool();
    Value: "a value", |value| Some(value.clone());
}
