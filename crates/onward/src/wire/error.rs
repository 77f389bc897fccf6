//! The error object `{"error": {code, message, hint, details?, requestId?}}` of MCP, HTTP and the command line.

use onward_core::Code;
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::request_id::RequestId;

#[derive(Serialize)]
pub(crate) struct ErrorBody<'a> {
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'static str,
    message: &'a str,
    hint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
    /// The id of the HTTP request, as in the server log.
    #[serde(rename = "requestId", skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

impl<'a> ErrorBody<'a> {
    pub(crate) fn new(
        code: Code,
        message: &'a str,
        hint: &'a str,
        details: Option<&'a Value>,
    ) -> Self {
        Self {
            error: Error {
                code: code.as_str(),
                message,
                hint,
                details,
                request_id: RequestId::current().map(|id| id.to_string()),
            },
        }
    }

    pub(crate) fn from_failure(failure: &'a Failure) -> Self {
        let Failure {
            code,
            message,
            hint,
            details,
            exit: _,
        } = failure;
        Self::new(*code, message, hint, details.as_ref())
    }
}
