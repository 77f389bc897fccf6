//! Why a request was not answered as asked: problem details (RFC 9457), with the code, the hint and
//! the details that every surface shares.
//!
//! Which code is which status stands here and nowhere else. `/mcp` answers with these only where a
//! request does not reach the protocol; what a tool refuses is a result there.

use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use onward_core::Code;
use onward_core::Refusal;
use onward_core::refusal::Issue;
use onward_engine::Error;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What such an answer says it is.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Why not.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: Code,
    detail: String,
    hint: String,
    details: Option<Value>,
    headers: Vec<(HeaderName, String)>,
}

/// The same on the wire.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct Wire {
    /// The kind of problem, as a name
    r#type: String,
    /// The kind of problem, in words
    title: String,
    /// The HTTP status
    status: u16,
    /// What is wrong
    detail: String,
    /// The stable name of the kind
    code: String,
    /// What to do next
    hint: String,
    /// What a program may want to know beyond that
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    details: Option<Value>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            status: status(code),
            code,
            detail: detail.into(),
            hint: hint.into(),
            details: None,
            headers: Vec::new(),
        }
    }

    /// With another status than the code's own.
    pub(crate) fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
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

    /// The kind of problem.
    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// The same for people: the status, the kind in words, what is wrong, what to do next.
    pub(crate) fn told(&self) -> (StatusCode, &'static str, &str, &str) {
        // What is not there is just that to people, whichever code programs are given.
        let title = match (self.status, self.code) {
            (StatusCode::NOT_FOUND, Code::InvalidInput) => "There is nothing here",
            (_, code) => title(code),
        };
        (self.status, title, &self.detail, &self.hint)
    }

    /// The input does not fit, at these places.
    pub(crate) fn issues(issues: Vec<Issue>) -> Self {
        Self::from(Error::from(Refusal::InvalidInput(issues)))
    }

    /// Nothing is there.
    pub(crate) fn nowhere(path: &str) -> Self {
        Self::new(
            Code::InvalidInput,
            format!("there is nothing at `{path}`"),
            "agents speak MCP at `/mcp`; programs find the API at `/api/v1`, described in \
             `/api/v1/openapi.json`",
        )
        .status(StatusCode::NOT_FOUND)
    }

    /// The same for people.
    pub(crate) fn no_page(path: &str) -> Self {
        Self::new(
            Code::InvalidInput,
            format!("there is no page at `{path}`"),
            "the address may be mistyped, or what it led to is gone",
        )
        .status(StatusCode::NOT_FOUND)
    }

    /// Something is there, and cannot be asked this way.
    pub(crate) fn wrong_method(method: &str, path: &str) -> Self {
        Self::new(
            Code::InvalidInput,
            format!("`{path}` does not answer to `{method}`"),
            "`/api/v1/openapi.json` says which methods there are",
        )
        .status(StatusCode::METHOD_NOT_ALLOWED)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let mut details = Map::new();
        if let Error::Refused {
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
        let problem = Self::new(error.code(), error.to_string(), error.hint());
        let problem = problem.details((!details.is_empty()).then_some(Value::Object(details)));
        match error {
            Error::NotFound { .. } => problem.status(StatusCode::NOT_FOUND),
            Error::Refused { .. }
            | Error::PlanNotFound(_)
            | Error::StepNotFound { .. }
            | Error::Ambiguous(_)
            | Error::Conflict { .. }
            | Error::Unauthorized(_)
            | Error::Store(_)
            | _ => problem,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let wire = Wire {
            r#type: format!("urn:onward:problem:{}", self.code),
            title: title(self.code).to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            code: self.code.to_string(),
            hint: self.hint,
            details: self.details,
        };
        let body = serde_json::to_vec(&wire).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
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
        Code::InvalidInput => "The request does not fit",
        Code::InvalidCondition => "The condition cannot be used",
        Code::InvalidDependency => "The dependency cannot be",
        Code::InvalidStepReference => "There is no such step to refer to",
        Code::PlanNotFound => "There is no such plan",
        Code::StepNotFound => "There is no such step",
        Code::IllegalTransition => "Not in this state",
        Code::PlanNotModifiable => "The plan cannot be modified",
        Code::PlanIsTerminal => "The plan is over",
        Code::StepNotRemovable => "The step cannot be removed",
        Code::IncompleteStepList => "The list of steps is not complete",
        Code::ClaimSuperseded => "Somebody else has the step",
        Code::FeedbackRequired => "Feedback is needed",
        Code::LimitExceeded => "Too large",
        Code::Unauthorized => "Who is it?",
        Code::Forbidden => "Not allowed",
        Code::RateLimited => "Too many calls",
        Code::Conflict => "Something is in the way",
        Code::Unavailable => "Not available at the moment",
        Code::NotConfigured => "Not configured",
    }
}
