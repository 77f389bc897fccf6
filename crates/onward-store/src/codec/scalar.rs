//! Mirrors of single values: ids, times and names as text, durations in milliseconds.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use onward_core::routing::{DEFAULT_PRIORITY, MAX_PRIORITY};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

/// A value with a text form: written with `Display`, read with `FromStr`.
#[derive(Clone, Copy)]
pub(crate) struct Text<T>(pub(crate) T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Parse(PhantomData))
    }
}

struct Parse<T>(PhantomData<T>);

impl<T: FromStr<Err: Display>> Visitor<'_> for Parse<T> {
    type Value = Text<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<T>, E> {
        text.parse().map(Text).map_err(E::custom)
    }
}

/// The mirrors of a list.
pub(crate) fn texts<T: Copy>(values: &[T]) -> Vec<Text<T>> {
    values.iter().copied().map(Text).collect()
}

/// The list of these mirrors.
pub(crate) fn values<T, L: FromIterator<T>>(texts: Vec<Text<T>>) -> L {
    texts.into_iter().map(|text| text.0).collect()
}

/// A duration in whole milliseconds; its key ends in `Ms`.
#[derive(Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(super) struct Millis(u64);

impl From<Duration> for Millis {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }
}

impl From<Millis> for Duration {
    fn from(millis: Millis) -> Self {
        Self::from_millis(millis.0)
    }
}

/// A priority, unless it is the default.
#[derive(Clone, Copy, Serialize, serde::Deserialize)]
#[serde(try_from = "u8")]
pub(super) struct Priority(u8);

impl Priority {
    pub(super) fn unless_default(priority: u8) -> Option<Self> {
        (priority != DEFAULT_PRIORITY).then_some(Self(priority))
    }

    pub(super) fn or_default(priority: Option<Self>) -> u8 {
        priority.map_or(DEFAULT_PRIORITY, |priority| priority.0)
    }
}

impl TryFrom<u8> for Priority {
    type Error = String;

    fn try_from(priority: u8) -> Result<Self, String> {
        if priority > MAX_PRIORITY {
            return Err(format!("is {priority}, at most {MAX_PRIORITY} is allowed"));
        }
        Ok(Self(priority))
    }
}

/// Mirror of an optional key. Null is not absent: the encoder never writes it.
pub(crate) mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde passes the field by reference")]
    pub(crate) fn serialize<S: Serializer, T: Serialize>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        T::deserialize(deserializer).map(Some)
    }
}
