//! `/api/v1`: the use cases for programs. One table says which method of which path is which tool, and
//! the routes as well as their description (`openapi.rs`) are made from it.
//!
//! A tool's arguments come from the path, and from the query where the tool only looks, else from the
//! body: a JSON object. So a field means the same here as over MCP, and whatever is wrong with it is
//! said in the same words. What only people and their programs do (`api/*.rs`) is written as tools,
//! too, and is not among those that agents see.

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
use onward_engine::Caller;
use serde_json::{Map, Value};

use super::problem::Problem;
use super::{Site, events, openapi};
use crate::tools::{self, Refused, Tool};

/// Where all of it stands.
pub(super) const BASE: &str = "/api/v1";

/// Where a tool stands.
pub(super) struct Route {
    /// How it is asked.
    pub(super) method: Verb,
    /// Where, behind `/api/v1`; what stands in braces is an argument.
    pub(super) path: &'static str,
    /// Which tool.
    pub(super) tool: &'static str,
}

/// How a route is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    /// It looks; asked with a query.
    Get,
    /// It changes something; asked with a body.
    Post,
    /// It makes something.
    Make,
    /// It takes something away.
    Delete,
}

const fn route(method: Verb, path: &'static str, tool: &'static str) -> Route {
    Route { method, path, tool }
}

/// Every route that is a tool.
pub(super) static ROUTES: [Route; 35] = [
    route(Verb::Get, "/ping", "ping"),
    route(Verb::Get, "/plans", "list_active_plans"),
    route(Verb::Make, "/plans", "create_research_plan"),
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
    route(Verb::Make, "/plans/{planId}/feedback", "submit_feedback"),
    route(
        Verb::Make,
        "/plans/{planId}/outputs",
        "store_research_output",
    ),
    route(Verb::Make, "/artifacts", "store_research"),
    route(Verb::Get, "/search", "search_sources"),
    route(Verb::Make, "/extractions", "extract_data"),
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
    route(Verb::Make, "/skills", "log_skill_execution"),
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
    route(Verb::Make, "/sessions/{sessionId}/calls", "record_call"),
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
    route(Verb::Make, "/tokens", "create_token"),
    route(Verb::Delete, "/tokens/{tokenId}", "revoke_token"),
];

/// What is here and not among the tools of agents.
static OWN: [Tool; 15] = [
    Tool::of::<abandon_plan::AbandonPlan>(),
    Tool::of::<change_call::ChangeCall>(),
    Tool::of::<close_call::CloseCall>(),
    Tool::of::<create_token::CreateToken>(),
    Tool::of::<delete_plan::DeletePlan>(),
    Tool::of::<export_plan::ExportPlan>(),
    Tool::of::<get_plan_audit::GetPlanAudit>(),
    Tool::of::<get_session::GetSession>(),
    Tool::of::<list_reviews::ListReviews>(),
    Tool::of::<list_sessions::ListSessions>(),
    Tool::of::<list_tokens::ListTokens>(),
    Tool::of::<record_call::RecordCall>(),
    Tool::of::<recover_session::RecoverSession>(),
    Tool::of::<resume_plan::ResumePlan>(),
    Tool::of::<revoke_token::RevokeToken>(),
];

impl Verb {
    fn filter(self) -> MethodFilter {
        match self {
            Verb::Get => MethodFilter::GET,
            Verb::Post | Verb::Make => MethodFilter::POST,
            Verb::Delete => MethodFilter::DELETE,
        }
    }

    /// Where the arguments come from that are not in the path.
    pub(super) fn has_body(self) -> bool {
        match self {
            Verb::Post | Verb::Make => true,
            Verb::Get | Verb::Delete => false,
        }
    }

    /// How it is answered where it was done.
    pub(super) fn status(self) -> StatusCode {
        match self {
            Verb::Make => StatusCode::CREATED,
            Verb::Get | Verb::Post | Verb::Delete => StatusCode::OK,
        }
    }
}

impl Route {
    /// The tool that it is.
    pub(super) fn tool(&self) -> Option<&'static Tool> {
        let own = OWN.iter().find(|tool| tool.name == self.tool);
        own.or_else(|| tools::find(self.tool))
    }
}

/// The routes, from [`BASE`] on.
pub(super) fn router() -> Router<Arc<Site>> {
    let mut router = Router::new()
        .route(&format!("{BASE}/events"), get(events::listen))
        .route(&format!("{BASE}/openapi.json"), get(openapi::show));
    for route in &ROUTES {
        let Some(tool) = route.tool() else { continue };
        let asked = move |State(site): State<Arc<Site>>, path: RawPathParams, request: Request| {
            answer(site, route.method, tool, path, request)
        };
        let path = format!("{BASE}{}", route.path);
        router = router.route(&path, on(route.method.filter(), asked));
    }
    router
}

async fn answer(
    site: Arc<Site>,
    verb: Verb,
    tool: &'static Tool,
    path: RawPathParams,
    request: Request,
) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        // No route stands before the gate; one that did would be closed.
        return Problem::new(Code::Unauthorized, "a token is needed", "send one").into_response();
    };
    let read = match verb.has_body() {
        true => body(&site, request).await,
        false => query(request.uri(), tool.input_schema()),
    };
    let arguments = read.and_then(|mut arguments| {
        let named = path.iter().map(|(name, value)| {
            let value = fitting(tool.input_schema(), name, value.to_owned());
            (name, value)
        });
        for (name, value) in named {
            if arguments.insert(name.to_owned(), value).is_some() {
                return Err(issue(name, "stands in the path already"));
            }
        }
        Ok(arguments)
    });
    let arguments = match arguments {
        Ok(arguments) => Value::Object(arguments),
        Err(problem) => return problem.into_response(),
    };
    match tools::call(&site.desk, &caller, tool, arguments).await {
        Ok(answer) => (verb.status(), Json(answer)).into_response(),
        Err(refused) => Problem::from(refused).into_response(),
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let missing = refused.missing;
        let problem = Problem::new(refused.code, refused.message, refused.hint);
        let problem = problem.details(refused.details);
        match missing {
            true => problem.status(StatusCode::NOT_FOUND),
            false => problem,
        }
    }
}

fn issue(path: &str, message: &str) -> Problem {
    Problem::issues(vec![Issue {
        path: path.to_owned(),
        message: message.to_owned(),
    }])
}

/// The JSON object that a request carries; none at all is an empty one.
async fn body(site: &Site, request: Request) -> Result<Map<String, Value>, Problem> {
    let is_json = is_json(request.headers());
    let bytes = to_bytes(request.into_body(), site.limits.body).await;
    // Hyper's own errors end the connection; what is left is the length.
    let bytes = bytes.map_err(|_| site.limits.too_large())?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    if !is_json {
        return Err(Problem::new(
            Code::InvalidInput,
            "the body is not announced as JSON",
            "send `Content-Type: application/json`",
        )
        .status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(issue("body", "must be a JSON object")),
        Err(why) => Err(issue(
            "body",
            &format!("is no JSON that can be read: {why}"),
        )),
    }
}

/// Whether the body says that it is JSON. A page cannot send that elsewhere without being asked.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// A text of an address in the kind that the schema names. What cannot be brought into it stays a
/// text, and is refused as one.
fn fitting(schema: &Map<String, Value>, name: &str, value: String) -> Value {
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

/// The arguments of a query, each in the kind that the schema names.
fn query(uri: &Uri, schema: &Map<String, Value>) -> Result<Map<String, Value>, Problem> {
    let mut arguments = Map::new();
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let pairs = pairs.map_err(|_| issue("query", "cannot be read"))?;
    for (name, value) in pairs.0 {
        let value = fitting(schema, &name, value);
        if arguments.insert(name.clone(), value).is_some() {
            return Err(issue(&name, "is given twice"));
        }
    }
    Ok(arguments)
}
