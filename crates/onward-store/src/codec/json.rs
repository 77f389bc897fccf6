//! Reads and writes mirrors as JSON text. An error names the path of the invalid value.

use onward_core::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Undecodable;

/// Reads any JSON.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Undecodable> {
    serde_json::from_str(text).map_err(|error| locate::<T>(text, &error))
}

/// Reads an object. A mirror struct would accept a list of its values, too.
pub(crate) fn read_object<T: DeserializeOwned>(text: &str) -> Result<T, Undecodable> {
    if text.trim_ascii_start().starts_with('[') {
        return Err(Undecodable::new("", "expected an object, found a list"));
    }
    read(text)
}

/// Finds the path in a second pass, because tracking it would slow down every read.
fn locate<T: DeserializeOwned>(text: &str, error: &serde_json::Error) -> Undecodable {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Undecodable::new("", format!("invalid JSON: {error}")),
    };
    match serde_path_to_error::deserialize::<_, T>(&value) {
        Err(located) => match located.path().to_string().as_str() {
            "." => Undecodable::new("", located.inner()),
            path => Undecodable::new(path, located.inner()),
        },
        // The text repeats a key, and its last value is valid.
        Ok(_) => Undecodable::new("", error),
    }
}

/// A mirror as JSON.
pub(crate) fn text(mirror: &impl Serialize) -> Json {
    // Fails only for keys that are not text.
    serde_json::value::to_raw_value(mirror).map_or_else(|_| Value::Null.into(), Json::from)
}

/// Writes a mirror.
pub(crate) fn write(mirror: &impl Serialize) -> String {
    // Fails only for keys that are not text. The decoder rejects an empty text.
    serde_json::to_string(mirror).unwrap_or_default()
}
