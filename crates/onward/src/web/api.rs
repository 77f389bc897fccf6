//! `/api/v1`: the HTTP API. One table maps methods and paths to tools; the router and the OpenAPI
//! document (`openapi.rs`) are generated from it.
//!
//! Arguments come from the path, and from the query (reads) or the JSON body (writes). Fields and
//! validation are the same as over MCP. Operations that agents must not see (`api/*.rs`) are
//! written as tools, too, but are not listed over MCP.

mod abandon_plan;
mod change_call;
mod close_call;
mod create_token;
mod delete_plan;
mod export_plan;
mod get_plan_audit;
mod get_session;
mod list_reviews;
mod list_sessions;
mod list_tokens;
mod record_call;
mod recover_session;
mod resume_plan;
mod revoke_token;

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Query, RawPathParams, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use axum::{Json, Router};
use onward_core::Code;
use onward_core::refusal::Issue;
use onward_engine::{Caller, Error};
use serde_json::{Map, Value};

use super::auth::TOKEN_REQUIRED;
use super::problem::Problem;
use super::{Site, events, openapi};
use crate::tools::{self, Tool, ToolError};

/// Path prefix of the API.
pub(super) const BASE: &str = "/api/v1";

/// An API route and its tool.
pub(super) struct Route {
    pub(super) method: Verb,
    /// The path after `/api/v1`; names in braces are arguments.
    pub(super) path: &'static str,
    /// Name of the tool.
    pub(super) tool: &'static str,
}

/// The effect of a route, which determines its HTTP method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    /// Reads; arguments in the query.
    Get,
    /// Changes something; arguments in the body.
    Post,
    /// `POST` that creates something: 201.
    Create,
    /// Deletes something; arguments in the query.
    Delete,
}

const fn route(method: Verb, path: &'static str, tool: &'static str) -> Route {
    Route { method, path, tool }
}

/// All routes that map to tools.
pub(super) static ROUTES: [Route; 35] = [
    route(Verb::Get, "/ping", "ping"),
    route(Verb::Get, "/plans", "list_active_plans"),
    route(Verb::Create, "/plans", "create_research_plan"),
    route(Verb::Get, "/plans/{planId}", "get_plan_status"),
    route(Verb::Delete, "/plans/{planId}", "delete_plan"),
    route(Verb::Get, "/plans/{planId}/steps", "list_plan_steps"),
    route(Verb::Get, "/plans/{planId}/audit", "get_plan_audit"),
    route(Verb::Get, "/plans/{planId}/export", "export_plan"),
    route(
        Verb::Post,
        "/plans/{planId}/context",
        "get_research_context",
    ),
    route(Verb::Post, "/plans/{planId}/next", "get_next_step"),
    route(Verb::Post, "/plans/{planId}/modify", "modify_plan"),
    route(Verb::Post, "/plans/{planId}/resume", "resume_plan"),
    route(Verb::Post, "/plans/{planId}/abandon", "abandon_plan"),
    route(Verb::Create, "/plans/{planId}/feedback", "submit_feedback"),
    route(
        Verb::Create,
        "/plans/{planId}/outputs",
        "store_research_output",
    ),
    route(Verb::Create, "/artifacts", "store_research"),
    route(Verb::Get, "/search", "search_sources"),
    route(Verb::Create, "/extractions", "extract_data"),
    route(Verb::Get, "/steps/{stepId}/context", "get_step_context"),
    route(Verb::Post, "/steps/{stepId}/result", "submit_step_result"),
    route(
        Verb::Post,
        "/steps/{stepId}/progress",
        "report_step_progress",
    ),
    route(Verb::Post, "/steps/{stepId}/review", "request_user_review"),
    route(
        Verb::Post,
        "/steps/{stepId}/decision",
        "submit_user_decision",
    ),
    route(Verb::Get, "/reviews", "list_reviews"),
    route(Verb::Create, "/skills", "log_skill_execution"),
    route(Verb::Get, "/sessions", "list_sessions"),
    route(Verb::Get, "/sessions/{sessionId}", "get_session"),
    route(
        Verb::Get,
        "/sessions/{sessionId}/health",
        "get_session_health",
    ),
    route(
        Verb::Post,
        "/sessions/{sessionId}/recover",
        "recover_session",
    ),
    route(Verb::Create, "/sessions/{sessionId}/calls", "record_call"),
    route(
        Verb::Post,
        "/sessions/{sessionId}/calls/{turn}/{position}",
        "change_call",
    ),
    route(
        Verb::Post,
        "/sessions/{sessionId}/calls/{turn}/{position}/close",
        "close_call",
    ),
    route(Verb::Get, "/tokens", "list_tokens"),
    route(Verb::Create, "/tokens", "create_token"),
    route(Verb::Delete, "/tokens/{tokenId}", "revoke_token"),
];

/// Tools of the HTTP API that are not offered to agents.
static HTTP_ONLY: [Tool; 15] = [
    Tool::from_spec::<abandon_plan::AbandonPlan>(),
    Tool::from_spec::<change_call::ChangeCall>(),
    Tool::from_spec::<close_call::CloseCall>(),
    Tool::from_spec::<create_token::CreateToken>(),
    Tool::from_spec::<delete_plan::DeletePlan>(),
    Tool::from_spec::<export_plan::ExportPlan>(),
    Tool::from_spec::<get_plan_audit::GetPlanAudit>(),
    Tool::from_spec::<get_session::GetSession>(),
    Tool::from_spec::<list_reviews::ListReviews>(),
    Tool::from_spec::<list_sessions::ListSessions>(),
    Tool::from_spec::<list_tokens::ListTokens>(),
    Tool::from_spec::<record_call::RecordCall>(),
    Tool::from_spec::<recover_session::RecoverSession>(),
    Tool::from_spec::<resume_plan::ResumePlan>(),
    Tool::from_spec::<revoke_token::RevokeToken>(),
];

impl Verb {
    fn filter(self) -> MethodFilter {
        match self {
            Verb::Get => MethodFilter::GET,
            Verb::Post | Verb::Create => MethodFilter::POST,
            Verb::Delete => MethodFilter::DELETE,
        }
    }

    /// Whether arguments come from the body instead of the query.
    pub(super) fn has_body(self) -> bool {
        match self {
            Verb::Post | Verb::Create => true,
            Verb::Get | Verb::Delete => false,
        }
    }

    /// The status of a successful response.
    pub(super) fn status(self) -> StatusCode {
        match self {
            Verb::Create => StatusCode::CREATED,
            Verb::Get | Verb::Post | Verb::Delete => StatusCode::OK,
        }
    }
}

impl Route {
    /// The tool of this route.
    pub(super) fn tool(&self) -> Option<&'static Tool> {
        let http_only = HTTP_ONLY.iter().find(|tool| tool.name == self.tool);
        http_only.or_else(|| tools::find(self.tool))
    }
}

/// All API routes.
pub(super) fn router() -> Router<Arc<Site>> {
    let mut router = Router::new()
        .route(&format!("{BASE}/events"), get(events::show))
        .route(&format!("{BASE}/openapi.json"), get(openapi::show));
    for route in &ROUTES {
        let Some(tool) = route.tool() else { continue };
        let handler =
            move |State(site): State<Arc<Site>>, path: RawPathParams, request: Request| {
                handle(site, route.method, tool, path, request)
            };
        let path = format!("{BASE}{}", route.path);
        router = router.route(&path, on(route.method.filter(), handler));
    }
    router
}

async fn handle(
    site: Arc<Site>,
    verb: Verb,
    tool: &'static Tool,
    path: RawPathParams,
    request: Request,
) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        // Unreachable: the middleware rejects requests without a caller.
        return Problem::from(Error::Unauthorized(TOKEN_REQUIRED)).into_response();
    };
    let arguments = if verb.has_body() {
        body(&site, request).await
    } else {
        query(request.uri(), tool.input_schema())
    };
    let arguments = arguments.and_then(|mut arguments| {
        for (name, value) in path.iter() {
            let value = coerce(tool.input_schema(), name, value.to_owned());
            if arguments.insert(name.to_owned(), value).is_some() {
                return Err(issue(name, "is already set in the path"));
            }
        }
        Ok(arguments)
    });
    let arguments = match arguments {
        Ok(arguments) => Value::Object(arguments),
        Err(problem) => return problem.into_response(),
    };
    match tools::call(&site.tool_context, &caller, tool, arguments).await {
        Ok(output) => (verb.status(), Json(output)).into_response(),
        Err(error) => Problem::from(error).into_response(),
    }
}

impl From<ToolError> for Problem {
    fn from(error: ToolError) -> Self {
        let not_found = error.not_found;
        let problem = Problem::new(error.code, error.message, error.hint);
        let problem = problem.details(error.details);
        if not_found {
            problem.status(StatusCode::NOT_FOUND)
        } else {
            problem
        }
    }
}

fn issue(path: &str, message: &str) -> Problem {
    Problem::issues(vec![Issue {
        path: path.to_owned(),
        message: message.to_owned(),
    }])
}

/// The JSON object in the body, or an empty object for an empty body.
async fn body(site: &Site, request: Request) -> Result<Map<String, Value>, Problem> {
    let is_json = is_json(request.headers());
    let bytes = to_bytes(request.into_body(), site.limits.body).await;
    // Other errors close the connection, so this is the size limit.
    let bytes = bytes.map_err(|_| site.limits.too_large())?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    if !is_json {
        return Err(Problem::new(
            Code::InvalidInput,
            "the body is not declared as JSON",
            "send `Content-Type: application/json`",
        )
        .status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(issue("body", "must be a JSON object")),
        Err(error) => Err(issue("body", &format!("invalid JSON: {error}"))),
    }
}

/// Whether the body is declared as JSON. Pages cannot send this cross-origin without a preflight.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// Converts a path or query value to the type in the schema. A value that cannot be converted stays
/// a string, and validation rejects it.
fn coerce(schema: &Map<String, Value>, name: &str, value: String) -> Value {
    let kind = schema.get("properties").and_then(|fields| fields.get(name));
    let kind = kind
        .and_then(|field| field.get("type"))
        .and_then(Value::as_str);
    match kind {
        Some("integer") => value.parse::<i64>().map_or(Value::from(value), Value::from),
        Some("number") => value.parse::<f64>().map_or(Value::from(value), Value::from),
        Some("boolean") => value
            .parse::<bool>()
            .map_or(Value::from(value), Value::from),
        Some(_) | None => Value::from(value),
    }
}

/// The arguments in the query string.
fn query(uri: &Uri, schema: &Map<String, Value>) -> Result<Map<String, Value>, Problem> {
    let mut arguments = Map::new();
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let pairs = pairs.map_err(|_| issue("query", "invalid query string"))?;
    for (name, value) in pairs.0 {
        let value = coerce(schema, &name, value);
        if arguments.insert(name.clone(), value).is_some() {
            return Err(issue(&name, "is set twice"));
        }
    }
    Ok(arguments)
}
