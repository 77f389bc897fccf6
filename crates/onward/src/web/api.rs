//! `/api/v1`: the HTTP API. The table in `api/routes.rs` maps methods and paths to tools; the router
//! and the OpenAPI document (`api/openapi.rs`) are generated from it.
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
mod get_next_project_step;
mod get_output;
mod get_plan_audit;
mod get_session;
mod list_events;
mod list_reviews;
mod list_sessions;
mod list_tokens;
mod openapi;
mod record_call;
mod recover_session;
mod resume_plan;
mod revoke_token;
pub(super) mod routes;

use std::sync::Arc;

use axum::extract::{Query, RawPathParams, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, on};
use axum::{Json, Router};
use onward_core::Code;
use onward_core::refusal::Issue;
use onward_engine::Error;
use serde_json::{Map, Value};

use super::auth::Principal;
use super::auth_error::TOKEN_REQUIRED;
use super::problem::Problem;
use super::waiting::Lease;
use super::{Site, events};
use crate::tools::raw::{self, Arguments};
use crate::tools::{self, Tool, ToolError, WaitPermit};
use routes::{BASE, EXPORT, ROUTES, Route};

/// All API routes.
pub(super) fn router() -> Router<Arc<Site>> {
    let mut router = Router::new()
        .route(&format!("{BASE}/events"), get(events::show))
        .route(&format!("{BASE}/openapi.json"), get(openapi::show))
        .route(&format!("{BASE}{EXPORT}"), get(export_plan::show));
    for route in &ROUTES {
        let Some(tool) = route.tool() else { continue };
        let handler =
            move |State(site): State<Arc<Site>>, path: RawPathParams, request: Request| {
                handle(site, route, tool, path, request)
            };
        let path = format!("{BASE}{}", route.path);
        router = router.route(&path, on(route.method.filter(), handler));
    }
    router
}

async fn handle(
    site: Arc<Site>,
    route: &'static Route,
    tool: &'static Tool,
    path: RawPathParams,
    request: Request,
) -> Response {
    let Some(principal) = request.extensions().get::<Principal>().cloned() else {
        // Unreachable: the middleware rejects requests without a caller.
        return Problem::from(Error::Unauthorized(TOKEN_REQUIRED)).into_response();
    };
    let caller = &principal.caller;
    // Before the body is read.
    if let Err(forbidden) = caller.allow(route.permission) {
        return Problem::from(Error::from(forbidden)).into_response();
    }
    let (parts, body) = request.into_parts();
    let verb = route.method;
    let arguments = if verb.has_body() {
        let bodies = &site.limits.bodies;
        match Box::pin(bodies.read_json(&principal, &parts.headers, body, route.body)).await {
            Ok(body) => {
                // The arguments keep their share of the memory until the call is complete or waits.
                if let (Some(lease), Some(value)) = (parts.extensions.get::<Lease>(), body.value) {
                    lease.start_work(value);
                }
                parse(&parts.headers, &body.bytes)
            }
            Err(problem) => Err(problem),
        }
    } else {
        query(&parts.uri, tool.input_schema())
    };
    let arguments = arguments.and_then(|mut arguments| {
        for (name, value) in path.iter() {
            let value = coerce(tool.input_schema(), name, value.to_owned());
            if arguments.values.insert(name.to_owned(), value).is_some() {
                return Err(issue(name, "is already set in the path"));
            }
        }
        Ok(arguments)
    });
    let Arguments { values, issues } = match arguments {
        Ok(arguments) => arguments,
        Err(problem) => return problem.into_response(),
    };
    let permit: Option<WaitPermit> = parts.extensions.get().cloned();
    // Not needed while the call waits.
    drop((parts, path));
    let (context, values) = (&site.tool_context, Value::Object(values));
    let outcome = if issues.is_empty() {
        tools::call_within(context, caller, tool, values, permit.as_ref()).await
    } else {
        let call = tools::call_with_invalid_fields(context, caller, tool, values, issues);
        Box::pin(call).await
    };
    match outcome {
        Ok(output) => (verb.status(), Json(output)).into_response(),
        Err(error) => Problem::from(error).into_response(),
    }
}

impl From<ToolError> for Problem {
    fn from(error: ToolError) -> Self {
        let not_found = error.not_found;
        let problem = Problem::new(error.code, error.message, error.hint);
        let problem = problem
            .needs_operator(error.needs_operator)
            .details(error.details);
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

/// The JSON object in the body, or an empty object for an empty body. If it cannot be parsed, the
/// call is rejected after the text is kept.
fn parse(headers: &HeaderMap, bytes: &[u8]) -> Result<Arguments, Problem> {
    if bytes.is_empty() {
        return Ok(Arguments::default());
    }
    if !is_json(headers) {
        return Err(Problem::new(
            Code::InvalidInput,
            "the body is not declared as JSON",
            "send `Content-Type: application/json`",
        )
        .status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(values)) => Ok(Arguments {
            values,
            ..Arguments::default()
        }),
        Ok(_) => Err(issue("body", "must be a JSON object")),
        Err(error) => {
            let text = String::from_utf8_lossy(bytes);
            Ok(raw::read_object(&text).unwrap_or_else(|| Arguments {
                values: Map::from_iter([("body".to_owned(), text.into())]),
                issues: vec![Issue {
                    path: "body".to_owned(),
                    message: format!("invalid JSON: {error}"),
                }],
            }))
        }
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
fn query(uri: &Uri, schema: &Map<String, Value>) -> Result<Arguments, Problem> {
    let mut arguments = Map::new();
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let pairs = pairs.map_err(|_| issue("query", "invalid query string"))?;
    for (name, value) in pairs.0 {
        let value = coerce(schema, &name, value);
        if arguments.insert(name.clone(), value).is_some() {
            return Err(issue(&name, "is set twice"));
        }
    }
    Ok(Arguments {
        values: arguments,
        ..Arguments::default()
    })
}
