//! Results of the suite's tools, prompts and resources, as SDK types.

use rmcp::model::{CallToolResponse, ErrorData};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Converts JSON from the suite's documentation to an SDK type.
pub(crate) fn convert<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(|why| ErrorData::internal_error(why.to_string(), None))
}

/// Adds the result type of 2026-07-28. The SDK removes it for older versions.
pub(crate) fn complete_result<T: DeserializeOwned>(mut result: Value) -> Result<T, ErrorData> {
    if let Value::Object(result) = &mut result {
        result.insert("resultType".to_owned(), "complete".into());
    }
    convert(result)
}

pub(crate) fn complete(result: Value) -> Result<CallToolResponse, ErrorData> {
    complete_result(result).map(CallToolResponse::Complete)
}

pub(crate) fn text_result(text: &str) -> Result<CallToolResponse, ErrorData> {
    complete(json!({ "content": [{ "type": "text", "text": text }] }))
}
