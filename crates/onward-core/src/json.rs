//! A JSON value as text, for data that is stored and returned, but rarely examined.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON value as its text. A tree of values needs many times the memory of the text, so it is
/// built only where the content is needed.
///
/// Two values are equal if their texts are.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

/// What limits apply to, found without building a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Levels of nested objects and lists.
    pub depth: usize,
    /// The number of values, including the value itself.
    pub values: usize,
}

impl Json {
    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// The tree of values. `None` if the text is nested more deeply than the parser allows: 128
    /// levels.
    pub fn parse(&self) -> Option<Value> {
        serde_json::from_str(self.as_str()).ok()
    }

    /// The shape of the value.
    pub fn shape(&self) -> Shape {
        let (mut level, mut depth, mut values) = (0_usize, 0, 1);
        let (mut in_string, mut is_escaped, mut is_first) = (false, false, false);
        for byte in self.as_str().bytes() {
            if in_string {
                in_string = is_escaped || byte != b'"';
                is_escaped = byte == b'\\' && !is_escaped;
                continue;
            }
            if byte.is_ascii_whitespace() {
                continue;
            }
            // A list has one value, plus one for each comma, unless it is empty.
            if is_first && !matches!(byte, b']' | b'}') {
                values += 1;
            }
            is_first = matches!(byte, b'[' | b'{');
            match byte {
                b'"' => in_string = true,
                b'[' | b'{' => {
                    level += 1;
                    depth = depth.max(level);
                }
                b']' | b'}' => level = level.saturating_sub(1),
                b',' => values += 1,
                _ => {}
            }
        }
        Shape { depth, values }
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::from(raw))
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        let raw = serde_json::value::to_raw_value(value);
        // Fails only for keys that are not text.
        Self(Arc::from(raw.unwrap_or_else(|_| RawValue::NULL.to_owned())))
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self(Arc::from(raw)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shape(value: Value) -> (usize, usize) {
        let Shape { depth, values } = Json::from(value).shape();
        (depth, values)
    }

    #[test]
    fn counts_levels_and_values() {
        assert_eq!(shape(json!(7)), (0, 1));
        assert_eq!(shape(json!("[{,")), (0, 1));
        assert_eq!(shape(json!([])), (1, 1));
        assert_eq!(shape(json!([[], {}])), (2, 3));
        assert_eq!(shape(json!({ "a": 1, "b\\\"[": ["x\\", "]\""] })), (2, 5));
    }

    #[test]
    fn ignores_whitespace_between_values() {
        let json: Json = serde_json::from_str(" { \"a\" : [ ] , \"b\" : [ 1 ] } ").unwrap();
        let (depth, values) = (2, 4);
        assert_eq!(json.shape(), Shape { depth, values });
        assert!(json.is_object());
    }

    #[test]
    fn keeps_a_text_that_is_too_deep_to_parse() {
        let text = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let json: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(json.as_str(), text);
        assert_eq!((json.parse(), json.shape().depth), (None, 200));
    }
}
