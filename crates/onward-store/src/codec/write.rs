//! Builds details, key by key. `None` adds no key. The counterpart is `read.rs`.

use std::fmt::Display;
use std::time::Duration;

use onward_core::id::SessionId;
use serde_json::{Map, Value};

/// An object under construction.
#[derive(Default)]
pub(super) struct Details(Map<String, Value>);

impl Details {
    /// A value. A number that is not finite becomes null and cannot be decoded; the rules reject
    /// such numbers.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    pub(super) fn with_some(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// An id, a time or a name, as text.
    pub(super) fn with_text(self, key: &str, text: impl Display) -> Self {
        self.with(key, text.to_string())
    }

    /// Previous and new status.
    pub(super) fn moved(self, from: impl Display, to: impl Display) -> Self {
        self.with_text("from", from).with_text("to", to)
    }

    pub(super) fn with_session(self, session: Option<&SessionId>) -> Self {
        self.with_some("sessionId", session.map(SessionId::as_str))
    }

    /// A duration in whole milliseconds; the key ends in `Ms`.
    pub(super) fn with_span(self, key: &str, span: Option<Duration>) -> Self {
        let millis = span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
        self.with_some(key, millis)
    }

    pub(super) fn with_texts(self, key: &str, texts: &[impl Display]) -> Self {
        self.with(
            key,
            texts.iter().map(ToString::to_string).collect::<Value>(),
        )
    }

    pub(super) fn with_objects<T>(self, key: &str, items: &[T], one: fn(&T) -> Details) -> Self {
        let objects = items.iter().map(|item| Value::from(one(item)));
        self.with(key, objects.collect::<Value>())
    }
}

impl From<Details> for Value {
    fn from(details: Details) -> Value {
        Value::Object(details.0)
    }
}
