//! A valid request for every route, so that a rejection has a single cause: the token, role or
//! tenant.

use onward_testbed::{Response, Server, send};
use reqwest::Method;
use serde_json::{Value, json};

use crate::world::Ids;

/// A request that succeeds with sufficient permissions.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The operation id of the OpenAPI document.
    pub(crate) operation: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
    /// The same request as arguments of the tool with the operation's name.
    pub(crate) arguments: Value,
    /// The lowest role that is allowed, if agents cannot decide reviews.
    pub(crate) min_role: &'static str,
}

impl Sample {
    pub(crate) async fn send(&self, server: &Server, token: Option<&str>) -> Response {
        let mut request = server.request(self.method.clone(), &self.path);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = &self.body {
            request = request.json(body);
        }
        send(request).await
    }
}

/// The body, with the ids in the path.
pub(crate) fn arguments(path: &str, body: Option<&Value>, ids: &Ids) -> Value {
    let mut arguments = body.cloned().unwrap_or_else(|| json!({}));
    for name in crate::page_routes::parameters(path) {
        arguments[name] = ids.argument(name).unwrap_or(json!(1));
    }
    arguments
}

/// The path with these ids instead of the names in braces.
pub(crate) fn fill(path: &str, ids: &Ids) -> String {
    let mut filled = path.to_owned();
    for name in crate::page_routes::parameters(path) {
        let value = match ids.argument(name) {
            Some(Value::String(id)) => id,
            // The first turn and the first call of a session.
            Some(_) | None => "1".to_owned(),
        };
        filled = filled.replace(&format!("{{{name}}}"), &value);
    }
    filled
}

/// From the highest to the lowest.
pub(crate) const ROLES: [&str; 5] = ["owner", "admin", "member", "agent", "viewer"];

pub(crate) fn is_allowed(role: &str, min_role: &str) -> bool {
    let rank = |role: &str| ROLES.iter().position(|other| *other == role).unwrap();
    rank(role) <= rank(min_role)
}

/// The request body and the lowest allowed role of an operation.
pub(crate) fn body_and_role(operation: &str) -> (Option<Value>, &'static str) {
    match operation {
        "ping" | "list_active_plans" | "get_plan_status" | "list_plan_steps" => (None, "viewer"),
        "get_plan_audit" | "list_events" | "export_plan" | "list_reviews" | "describe" => {
            (None, "viewer")
        }
        "get_step_context" | "search_sources" | "get_artifact" | "get_output" => (None, "viewer"),
        "store_research" | "store_research_output" => {
            (Some(json!({ "title": "t", "content": "words" })), "agent")
        }
        "extract_data" => (
            Some(json!({ "schema": {}, "sourceText": "words" })),
            "agent",
        ),
        "create_research_plan" => (
            Some(json!({
                "name": "n",
                "researchQuestion": "q",
                "steps": [{ "stepType": "search", "instructions": "i" }],
            })),
            "agent",
        ),
        "get_next_step" | "get_next_project_step" => (Some(json!({})), "agent"),
        "get_research_context" => (Some(json!({ "sessionId": "s" })), "viewer"),
        "modify_plan" => {
            let steps = json!([{ "stepType": "search", "instructions": "more" }]);
            (
                Some(json!({ "action": "add_steps", "steps": steps })),
                "agent",
            )
        }
        "submit_step_result" => (Some(json!({ "resultSummary": "done" })), "agent"),
        "report_step_progress" => (Some(json!({ "note": "half" })), "agent"),
        "request_user_review" => (Some(json!({ "summary": "is it right?" })), "agent"),
        "log_skill_execution" => (
            Some(json!({ "skillName": "s", "status": "started" })),
            "agent",
        ),
        "submit_feedback" => (Some(json!({ "rating": 5 })), "agent"),
        "submit_user_decision" => (Some(json!({ "decision": "approve" })), "member"),
        "resume_plan" => (Some(json!({})), "member"),
        "abandon_plan" => (Some(json!({ "reason": "over" })), "member"),
        "list_sessions" | "get_session" | "get_session_health" => (None, "viewer"),
        "recover_session" => (Some(json!({})), "agent"),
        "record_call" => {
            let call = json!({ "tool": "Bash", "turn": 1, "status": "running" });
            (Some(call), "agent")
        }
        "change_call" => (Some(json!({ "change": "progress" })), "agent"),
        "close_call" => (Some(json!({})), "member"),
        "delete_plan" => (None, "owner"),
        "list_tokens" | "revoke_token" => (None, "admin"),
        "create_token" => (
            Some(json!({ "name": "created", "role": "viewer" })),
            "admin",
        ),
        other => panic!("`{other}` has no sample: add one"),
    }
}

/// One request per documented route except the event stream, with these ids.
pub(crate) async fn samples(server: &Server, token: Option<&str>, ids: &Ids) -> Vec<Sample> {
    let mut request = server.request(Method::GET, "/api/v1/openapi.json");
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let document = send(request).await.expect_success();
    let mut samples = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("document has paths") {
        for (method, operation) in methods.as_object().expect("path has methods") {
            let operation = operation["operationId"]
                .as_str()
                .expect("operation has an id");
            if operation == "listen" {
                continue;
            }
            let (body, min_role) = body_and_role(operation);
            let mut arguments = arguments(path, body.as_ref(), ids);
            let mut path = fill(path, ids);
            if operation == "search_sources" {
                path.push_str("?query=words");
                arguments["query"] = json!("words");
            }
            if operation == "list_events" {
                path.push_str("?since=2026-01-01T00:00:00Z");
                arguments["since"] = json!("2026-01-01T00:00:00Z");
            }
            samples.push(Sample {
                operation: operation.to_owned(),
                method: method.to_uppercase().parse().expect("valid method"),
                path: format!("/api/v1{path}"),
                body,
                arguments,
                min_role,
            });
        }
    }
    // The requests that end a plan or revoke a token are last.
    let order = |sample: &Sample| {
        let last = [
            "close_call",
            "submit_user_decision",
            "abandon_plan",
            "revoke_token",
            "delete_plan",
        ];
        last.iter()
            .position(|last| *last == sample.operation)
            .map_or(0, |index| index + 1)
    };
    samples.sort_by_key(order);
    samples
}
