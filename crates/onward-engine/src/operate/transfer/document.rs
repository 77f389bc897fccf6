//! Reads fields of an exported document, with errors that name the path.

use serde_json::Value;

use crate::error::Error;

/// Reads a field of an object.
pub(super) fn field<'v, T>(
    object: &'v Value,
    path: &str,
    key: &str,
    read: impl FnOnce(&'v Value) -> Option<T>,
) -> Result<T, Error> {
    let value = object.get(key).and_then(read);
    value.ok_or_else(|| Error::invalid(&format!("{path}.{key}"), "is missing or invalid"))
}

pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

pub(super) fn parsed<T: std::str::FromStr>(value: &Value) -> Option<T> {
    value.as_str()?.parse().ok()
}

/// Reads a nullable value.
pub(super) fn nullable<T>(
    read: impl FnOnce(&Value) -> Option<T>,
) -> impl FnOnce(&Value) -> Option<Option<T>> {
    |value| {
        if value.is_null() {
            Some(None)
        } else {
            read(value).map(Some)
        }
    }
}

pub(super) fn already_exists(message: String) -> Error {
    Error::Conflict {
        message,
        hint: "import it into another database or tenant".into(),
    }
}
