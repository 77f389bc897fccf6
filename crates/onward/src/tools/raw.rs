//! Arguments with values that the JSON parser rejects: nesting over 128 levels, a lone surrogate
//! (`"\\ud800"`), a number out of range (`1e999`).
//!
//! The object is read field by field. A rejected value becomes a string with its source, so that the
//! call can be reported as invalid input and its work is kept as text.

use std::collections::BTreeMap;

use onward_core::refusal::Issue;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The arguments of a call, and the fields that could not be parsed.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) values: Map<String, Value>,
    pub(crate) issues: Vec<Issue>,
}

/// The issues of [`Arguments`], as an extension of the request.
#[derive(Clone)]
pub(crate) struct InvalidFields(pub(crate) Vec<Issue>);

/// Reads a JSON object. `None` if it is not one.
pub(crate) fn read_object(json: &str) -> Option<Arguments> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    let mut arguments = Arguments::default();
    for (name, raw) in fields {
        let value = serde_json::from_str(raw.get()).unwrap_or_else(|why| {
            arguments.issues.push(Issue {
                path: name.clone(),
                message: format!("is not valid JSON: {why}"),
            });
            Value::from(raw.get())
        });
        arguments.values.insert(name, value);
    }
    Some(arguments)
}

/// A JSON-RPC message whose parameters are not parsed.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: String,
    #[serde(borrow)]
    params: BTreeMap<String, &'a RawValue>,
}

/// Reads a tool call that the parser rejects because of its arguments: the message with readable
/// arguments, and the invalid fields.
pub(crate) fn read_tool_call(json: &[u8]) -> Option<(Value, InvalidFields)> {
    if serde_json::from_slice::<Value>(json).is_ok() {
        return None;
    }
    let message: Message<'_> = serde_json::from_slice(json).ok()?;
    if message.method != "tools/call" {
        return None;
    }
    let mut params = Map::new();
    let mut issues = Vec::new();
    for (name, raw) in message.params {
        let value = if name == "arguments" {
            let arguments = read_object(raw.get())?;
            issues = arguments.issues;
            Value::Object(arguments.values)
        } else {
            serde_json::from_str(raw.get()).ok()?
        };
        params.insert(name, value);
    }
    let id: Value = serde_json::from_str(message.id.get()).ok()?;
    let message = serde_json::json!({
        "jsonrpc": "2.0",
        "id": id,
        "method": message.method,
        "params": params,
    });
    Some((message, InvalidFields(issues)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{read_object, read_tool_call};

    #[test]
    fn keeps_rejected_values_as_text() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let json = format!(
            r#"{{"stepId": "a", "deep": {deep}, "lone": "x\ud800", "large": {{"n": 1e999}}}}"#
        );
        let arguments = read_object(&json).expect("an object");
        let values = &arguments.values;
        assert_eq!(values["stepId"], "a");
        assert_eq!(values["deep"], deep);
        assert_eq!(values["lone"], r#""x\ud800""#);
        assert_eq!(values["large"], r#"{"n": 1e999}"#);
        let paths: Vec<&str> = arguments.issues.iter().map(|i| i.path.as_str()).collect();
        assert_eq!(paths, ["deep", "large", "lone"]);
        assert!(read_object("[1]").is_none());
        assert!(read_object("{\"a\":").is_none());
    }

    #[test]
    fn reads_only_tool_calls_with_invalid_values() {
        let call = |arguments: &str| {
            let params = format!(r#"{{"name":"t","_meta":{{"k":1}},"arguments":{arguments}}}"#);
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#)
        };
        assert!(read_tool_call(call("{}").as_bytes()).is_none());
        assert!(read_tool_call(b"nonsense").is_none());
        let (message, invalid) = read_tool_call(call(r#"{"n":1e999}"#).as_bytes()).expect("call");
        assert_eq!(invalid.0.len(), 1);
        let arguments = json!({ "n": "1e999" });
        let params = json!({ "name": "t", "_meta": { "k": 1 }, "arguments": arguments });
        assert_eq!(
            message,
            json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })
        );
    }
}
