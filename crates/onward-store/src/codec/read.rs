//! Takes details apart, key by key, and says of each that does not fit where it stands and what was
//! expected there.
//!
//! What was found is named in the answer only where a word, an id or an instant was expected, and
//! then not all of it: details hold claim tokens and whole reports, and an error ends up in a log.
//! Its other half, which puts details together, is `write.rs`.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::id::{
    ArtifactId, BranchId, ClaimToken, PlanId, ReviewId, SessionId, SkillExecutionId, StepId,
};
use serde_json::{Map, Value};

use super::Undecodable;

/// How many characters of a text that does not fit are shown.
const SHOWN: usize = 60;

/// A list of all the values of an enum, and a match that breaks the build when it lacks one.
macro_rules! every {
    ($name:ident: $of:ident = $($variant:ident),+ $(,)?) => {
        const $name: &[$of] = &[$($of::$variant),+];
        const _: fn($of) = |value| match value {
            $($of::$variant)|+ => (),
        };
    };
}
pub(super) use every;

/// What can be read from one JSON value.
pub(super) trait Readable<'v>: Sized {
    /// What has to stand there, with its article.
    const EXPECTED: &'static str;

    fn read(value: &'v Value) -> Option<Self>;
}

/// The fields of one object, and where it stands.
pub(super) struct Fields<'v> {
    map: &'v Map<String, Value>,
    path: String,
}

impl<'v> Fields<'v> {
    /// The outermost object.
    pub(super) fn of_whole(name: &str, value: &'v Value) -> Result<Self, Undecodable> {
        let map = value.as_object().ok_or_else(|| Undecodable {
            path: String::new(),
            why: format!("{name} are {}, expected an object", kind(value)),
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

    /// A field that must be there.
    pub(super) fn get<T: Readable<'v>>(&self, key: &str) -> Result<T, Undecodable> {
        let value = self.present(key)?;
        T::read(value).ok_or_else(|| unfit(self.path_of(key), value, T::EXPECTED))
    }

    /// A field that may be absent. Null is not absent: nothing here writes it.
    pub(super) fn get_some<T: Readable<'v>>(&self, key: &str) -> Result<Option<T>, Undecodable> {
        match self.map.get(key) {
            Some(_) => self.get(key).map(Some),
            None => Ok(None),
        }
    }

    /// Whether a field is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// A list that must be there, possibly empty.
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

    /// A list of objects that must be there, possibly empty.
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

    /// An object that must be there.
    pub(super) fn object(&self, key: &str) -> Result<Fields<'v>, Undecodable> {
        Fields::inside(self.present(key)?, self.path_of(key))
    }

    /// A field that must be there and hold one of these words.
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

    /// A text that is none of the words that fit.
    pub(super) fn none_of(&self, key: &str, word: &str, expected: &[&str]) -> Undecodable {
        let path = self.path_of(key);
        let why = none_of(&format!("`{path}`"), word, expected);
        Undecodable { path, why }
    }

    /// A text that does not fit, for a reason that only its own parser knows.
    pub(super) fn refused(&self, key: &str, why: impl std::fmt::Display) -> Undecodable {
        let path = self.path_of(key);
        let why = format!("`{path}` does not fit: {why}");
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

/// The sentence about a word that is none of those that fit.
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
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => TEXT,
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

const TEXT: &str = "a text";

/// `$value` is the JSON value in `$read`, which answers with an option.
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
    bool: "true or false", |value| value.as_bool();
    Value: "a value", |value| Some(value.clone());
}
