//! A refusal or a failure: `{"error": {code, message, hint, details?}}`, the same on every surface.

use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;

#[derive(Serialize)]
pub(crate) struct Answer<'a> {
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'static str,
    message: &'a str,
    hint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
}

impl<'a> Answer<'a> {
    pub(crate) fn of(failure: &'a Failure) -> Self {
        Self {
            error: Error {
                code: failure.code.as_str(),
                message: &failure.message,
                hint: &failure.hint,
                details: failure.details.as_ref(),
            },
        }
    }
}
