//! Every route with something that fits it, so that what is refused is refused for one reason alone.

use reqwest::Method;
use serde_json::{Value, json};

use crate::house::{Answer, Server, send};

/// A request that would be done, by whoever may.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// What it is, as the API's description calls it.
    pub(crate) operation: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
    /// The weakest role that may do it in a tenant whose agents decide nothing.
    pub(crate) least: &'static str,
}

impl Sample {
    pub(crate) async fn send(&self, server: &Server, token: Option<&str>) -> Answer {
        let mut request = server.ask(self.method.clone(), &self.path);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = &self.body {
            request = request.json(body);
        }
        send(request).await
    }
}

/// From the strongest to the weakest. What a member may and an agent may not stands between them.
pub(crate) const ROLES: [&str; 5] = ["owner", "admin", "member", "agent", "viewer"];

/// Whether a role is strong enough.
pub(crate) fn may(role: &str, least: &str) -> bool {
    let rank = |role: &str| ROLES.iter().position(|known| *known == role).unwrap();
    rank(role) <= rank(least)
}

/// What fits an operation beside its path, and who may do it.
fn fitting(operation: &str) -> (Option<Value>, &'static str) {
    match operation {
        "ping" | "list_active_plans" | "get_plan_status" | "list_plan_steps" => (None, "viewer"),
        "get_plan_audit" | "export_plan" | "list_reviews" | "describe" => (None, "viewer"),
        "get_step_context" | "search_sources" => (None, "viewer"),
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
        "get_next_step" => (Some(json!({})), "agent"),
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
        "create_token" => (Some(json!({ "name": "made", "role": "viewer" })), "admin"),
        other => panic!("`{other}` has no sample: add one"),
    }
}

/// One request for every route that the API describes, about this plan, step and token; and what
/// stands beside the API. Streams are tried elsewhere.
pub(crate) async fn samples(
    server: &Server,
    token: Option<&str>,
    (plan, step, of): (&str, &str, &str),
) -> Vec<Sample> {
    let mut asked = server.ask(Method::GET, "/api/v1/openapi.json");
    if let Some(token) = token {
        asked = asked.bearer_auth(token);
    }
    let described = send(asked).await.done();
    let mut samples = Vec::new();
    for (path, methods) in described["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let operation = operation["operationId"].as_str().expect("a name");
            if operation == "listen" {
                continue;
            }
            let (body, least) = fitting(operation);
            let path = path.replace("{planId}", plan).replace("{stepId}", step);
            // Whoever tells of a session makes it, so nobody's is the same for all.
            let path = path
                .replace("{sessionId}", "a-session")
                .replace("{turn}", "1")
                .replace("{position}", "1");
            let path = match operation {
                "search_sources" => format!("{path}?query=words"),
                _ => path,
            };
            samples.push(Sample {
                operation: operation.to_owned(),
                method: method.to_uppercase().parse().expect("a method"),
                path: format!("/api/v1{}", path.replace("{tokenId}", of)),
                body,
                least,
            });
        }
    }
    // What makes a session comes first, and what ends a plan or a token last, so that it is there for
    // the others.
    let ends = |sample: &Sample| {
        if sample.operation == "record_call" {
            return 0;
        }
        let last = [
            "close_call",
            "submit_user_decision",
            "abandon_plan",
            "revoke_token",
            "delete_plan",
        ];
        last.iter()
            .position(|last| *last == sample.operation)
            .map_or(1, |place| place + 2)
    };
    samples.sort_by_key(ends);
    samples
}
