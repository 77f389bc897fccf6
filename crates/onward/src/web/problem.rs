//! HTTP error responses: problem details (RFC 9457) with Onward's error code, hint and details.
//!
//! The only mapping from error codes to statuses and titles. `/mcp` uses these responses only for
//! requests that fail before the protocol handler; tool errors are MCP results.

use axum::http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use onward_core::Code;
use onward_core::Refusal;
use onward_core::refusal::Issue;
use onward_engine::Error;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::hint::{self, Interface};
use crate::request_id::RequestId;
use crate::tools::error::public_message;

/// Content type of problem details.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// An error response.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: Code,
    detail: String,
    /// With the names of use cases in braces (`hint.rs`).
    hint: String,
    /// Whether only an operator can follow the hint.
    needs_operator: bool,
    details: Option<Value>,
    headers: Vec<(HeaderName, String)>,
}

/// The response body.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemBody {
    /// URI of the problem type
    r#type: String,
    /// Short summary of the problem type
    title: String,
    /// HTTP status
    status: u16,
    /// What failed in this request
    detail: String,
    /// Stable error code
    code: String,
    /// Next action
    hint: String,
    /// Machine-readable details
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    details: Option<Value>,
    /// Id of the request, as in the header `x-request-id` and in the server log
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            status: status(code),
            code,
            detail: detail.into(),
            hint: hint.into(),
            needs_operator: false,
            details: None,
            headers: Vec::new(),
        }
    }

    /// Overrides the status of the code.
    pub(crate) fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Sets whether only an operator can follow the hint.
    pub(crate) fn needs_operator(mut self, needs_operator: bool) -> Self {
        self.needs_operator = needs_operator;
        self
    }

    pub(crate) fn details(mut self, details: Option<Value>) -> Self {
        self.details = details;
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The error code.
    pub(crate) fn code(&self) -> Code {
        self.code
    }

    fn render_hint(&self, interface: Interface) -> String {
        hint::render_error(&self.hint, self.needs_operator, interface, None)
    }

    /// Status, title, detail and hint for an HTML page.
    pub(crate) fn page_text(&self) -> (StatusCode, &'static str, &str, String) {
        let hint = || self.render_hint(Interface::Page);
        let (title, hint) = match (self.status, self.code) {
            // The API has no code for other missing items.
            (StatusCode::NOT_FOUND, Code::InvalidInput) => ("Not found", hint()),
            (_, code @ (Code::PlanNotFound | Code::StepNotFound)) => (
                title(code),
                "it may have been deleted, or it belongs to another tenant".to_owned(),
            ),
            (_, code) => (title(code), hint()),
        };
        (self.status, title, &self.detail, hint)
    }

    /// The paths and messages of invalid input.
    pub(crate) fn invalid_input(&self) -> Vec<(String, String)> {
        let issues = self
            .details
            .as_ref()
            .and_then(|details| details.get("issues"));
        let issues = issues.and_then(Value::as_array).into_iter().flatten();
        let text = |issue: &Value, name: &str| Some(issue.get(name)?.as_str()?.to_owned());
        issues
            .filter_map(|issue| Some((text(issue, "path")?, text(issue, "message")?)))
            .collect()
    }

    /// Invalid input, with one message per field.
    pub(crate) fn issues(issues: Vec<Issue>) -> Self {
        Self::from(Error::from(Refusal::InvalidInput(issues)))
    }

    /// Unknown path outside of the dashboard.
    pub(crate) fn route_not_found(path: &str) -> Self {
        Self::new(
            Code::InvalidInput,
            format!("no route for `{path}`"),
            "use MCP at `/mcp` or the API at `/api/v1`, described in `/api/v1/openapi.json`",
        )
        .status(StatusCode::NOT_FOUND)
    }

    /// Unknown path, for browsers.
    pub(crate) fn page_not_found(path: &str) -> Self {
        Self::new(
            Code::InvalidInput,
            format!("no page at `{path}`"),
            "check the address; the item may have been deleted",
        )
        .status(StatusCode::NOT_FOUND)
    }

    /// Known path, unsupported method.
    pub(crate) fn method_not_allowed(method: &str, path: &str) -> Self {
        Self::new(
            Code::InvalidInput,
            format!("`{path}` does not support `{method}`"),
            "see `/api/v1/openapi.json` for the supported methods",
        )
        .status(StatusCode::METHOD_NOT_ALLOWED)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let mut details = Map::new();
        if let Error::Rejected {
            refusal: Refusal::InvalidInput(issues),
            ..
        } = &error
        {
            let issue = |issue: &Issue| json!({ "path": issue.path, "message": issue.message });
            let issues: Vec<Value> = issues.iter().map(issue).collect();
            details.insert("issues".to_owned(), issues.into());
        }
        if let Some(kept) = error.kept() {
            details.insert("keptArtifactId".to_owned(), kept.to_string().into());
        }
        let problem = Self::new(error.code(), public_message(&error), error.hint());
        let problem = problem.needs_operator(error.needs_operator());
        let problem = problem.details((!details.is_empty()).then_some(Value::Object(details)));
        match error {
            Error::NotFound { .. } => problem.status(StatusCode::NOT_FOUND),
            Error::Rejected { .. }
            | Error::PlanNotFound(_)
            | Error::StepNotFound { .. }
            | Error::Ambiguous { .. }
            | Error::Conflict { .. }
            | Error::Unauthorized(_)
            | Error::Store(_)
            | _ => problem,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let hint = self.render_hint(Interface::Api);
        let wire = ProblemBody {
            r#type: format!("urn:onward:problem:{}", self.code),
            title: title(self.code).to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            code: self.code.to_string(),
            hint,
            details: self.details,
            request_id: RequestId::current().map(|id| id.to_string()),
        };
        let body = serde_json::to_vec(&wire).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        // For the log line of the request.
        response.extensions_mut().insert(self.code);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        // Both end without an action of the client.
        if matches!(
            self.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
        response
    }
}

fn status(code: Code) -> StatusCode {
    match code {
        Code::InvalidInput
        | Code::InvalidCondition
        | Code::InvalidDependency
        | Code::InvalidStepReference
        | Code::IncompleteStepList
        | Code::FeedbackRequired => StatusCode::BAD_REQUEST,
        Code::PlanNotFound | Code::StepNotFound => StatusCode::NOT_FOUND,
        Code::IllegalTransition
        | Code::PlanNotModifiable
        | Code::PlanIsTerminal
        | Code::StepNotRemovable
        | Code::ClaimSuperseded
        | Code::DependenciesOpen
        | Code::BudgetExhausted
        | Code::Conflict => StatusCode::CONFLICT,
        Code::LimitExceeded => StatusCode::UNPROCESSABLE_ENTITY,
        Code::Unauthorized => StatusCode::UNAUTHORIZED,
        Code::Forbidden => StatusCode::FORBIDDEN,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::NotConfigured => StatusCode::NOT_IMPLEMENTED,
    }
}

fn title(code: Code) -> &'static str {
    match code {
        Code::InvalidInput => "Invalid request",
        Code::InvalidCondition => "Invalid condition",
        Code::InvalidDependency => "Invalid dependency",
        Code::InvalidStepReference => "Invalid step reference",
        Code::PlanNotFound => "Plan not found",
        Code::StepNotFound => "Step not found",
        Code::IllegalTransition => "Invalid state transition",
        Code::PlanNotModifiable => "Plan not modifiable",
        Code::PlanIsTerminal => "Plan already finished",
        Code::StepNotRemovable => "Step not removable",
        Code::IncompleteStepList => "Incomplete step list",
        Code::ClaimSuperseded => "Claim superseded",
        Code::DependenciesOpen => "Dependencies not finished",
        Code::FeedbackRequired => "Feedback required",
        Code::LimitExceeded => "Limit exceeded",
        Code::BudgetExhausted => "Budget exhausted",
        Code::Unauthorized => "Authentication required",
        Code::Forbidden => "Permission denied",
        Code::RateLimited => "Too many requests",
        Code::Conflict => "Conflict",
        Code::Unavailable => "Service unavailable",
        Code::NotConfigured => "Not configured",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_has_the_status_409() {
        for code in Code::ALL {
            let is_409 = status(code) == StatusCode::CONFLICT;
            assert_eq!(is_409, code.is_conflict(), "{code}");
        }
    }
}
