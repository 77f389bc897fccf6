//! The table of API routes: method, path, tool, permission and size of the body. The router and the
//! OpenAPI document are generated from it.

use axum::http::StatusCode;
use axum::routing::MethodFilter;
use onward_core::role::Permission;

use super::{
    abandon_plan, change_call, close_call, create_token, delete_plan, get_next_project_step,
    get_output, get_plan_audit, get_session, list_events, list_reviews, list_sessions, list_tokens,
    record_call, recover_session, resume_plan, revoke_token,
};
use crate::tools::{self, Tool};
use crate::web::body::{DOCUMENT, SMALL};
use Permission::{
    AbandonPlan, CreatePlan, DeletePlan, Intervene, ManageTokens, Read, Record, Work,
};
use Verb::{Create, Delete, Get, Post};

/// Path prefix of the API.
pub(in crate::web) const BASE: &str = "/api/v1";

/// Path of the export, which is not a tool.
pub(in crate::web) const EXPORT: &str = "/plans/{planId}/export";

/// An API route and its tool.
pub(in crate::web) struct Route {
    pub(in crate::web) method: Verb,
    /// The path after `/api/v1`; names in braces are arguments.
    pub(in crate::web) path: &'static str,
    /// Name of the tool.
    pub(in crate::web) tool: &'static str,
    /// The permission that every call needs, checked before the body is read. The engine checks
    /// permissions that depend on the arguments.
    pub(in crate::web) permission: Permission,
    /// Maximum bytes of the body. `limits.body_bytes` applies as well.
    pub(in crate::web) body: usize,
}

/// The effect of a route, which determines its HTTP method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::web) enum Verb {
    /// Reads; arguments in the query.
    Get,
    /// Changes something; arguments in the body.
    Post,
    /// `POST` that creates something: 201.
    Create,
    /// Deletes something; arguments in the query.
    Delete,
}

/// A route that reads.
const fn read(path: &'static str, tool: &'static str) -> Route {
    route(Verb::Get, path, tool, Permission::Read)
}

const fn route(
    method: Verb,
    path: &'static str,
    tool: &'static str,
    permission: Permission,
) -> Route {
    Route {
        method,
        path,
        tool,
        permission,
        body: SMALL,
    }
}

impl Route {
    /// With another size limit of the body.
    const fn body(self, body: usize) -> Self {
        Self { body, ..self }
    }
}

/// The size limit of routes with a list of steps: `limits.body_bytes`.
const STEPS: usize = usize::MAX;

/// All routes that map to tools.
pub(in crate::web) static ROUTES: [Route; 38] = [
    read("/ping", "ping"),
    read("/plans", "list_active_plans"),
    route(Create, "/plans", "create_research_plan", CreatePlan).body(STEPS),
    read("/plans/{planId}", "get_plan_status"),
    route(Delete, "/plans/{planId}", "delete_plan", DeletePlan),
    read("/plans/{planId}/steps", "list_plan_steps"),
    read("/plans/{planId}/audit", "get_plan_audit"),
    read("/audit", "list_events"),
    route(
        Post,
        "/plans/{planId}/context",
        "get_research_context",
        Read,
    ),
    route(Post, "/plans/{planId}/next", "get_next_step", Work),
    route(
        Post,
        "/projects/{projectKey}/next",
        "get_next_project_step",
        Work,
    ),
    route(Post, "/plans/{planId}/modify", "modify_plan", Work).body(STEPS),
    route(Post, "/plans/{planId}/resume", "resume_plan", Intervene),
    route(Post, "/plans/{planId}/abandon", "abandon_plan", AbandonPlan),
    route(Create, "/plans/{planId}/feedback", "submit_feedback", Work),
    route(
        Create,
        "/plans/{planId}/outputs",
        "store_research_output",
        Work,
    )
    .body(DOCUMENT),
    route(Create, "/artifacts", "store_research", Work).body(DOCUMENT),
    read("/artifacts/{artifactId}", "get_artifact"),
    read("/outputs/{outputId}", "get_output"),
    read("/search", "search_sources"),
    route(Create, "/extractions", "extract_data", Work).body(DOCUMENT),
    read("/steps/{stepId}/context", "get_step_context"),
    route(Post, "/steps/{stepId}/result", "submit_step_result", Work).body(DOCUMENT),
    route(
        Post,
        "/steps/{stepId}/progress",
        "report_step_progress",
        Work,
    ),
    route(Post, "/steps/{stepId}/review", "request_user_review", Work).body(DOCUMENT),
    route(
        Post,
        "/steps/{stepId}/decision",
        "submit_user_decision",
        // The engine checks `DecideReview`, unless another session may decide.
        Work,
    )
    .body(STEPS),
    read("/reviews", "list_reviews"),
    route(Create, "/skills", "log_skill_execution", Work).body(DOCUMENT),
    read("/sessions", "list_sessions"),
    read("/sessions/{sessionId}", "get_session"),
    read("/sessions/{sessionId}/health", "get_session_health"),
    route(
        Post,
        "/sessions/{sessionId}/recover",
        "recover_session",
        Record,
    ),
    route(Create, "/sessions/{sessionId}/calls", "record_call", Record).body(DOCUMENT),
    route(
        Post,
        "/sessions/{sessionId}/calls/{turn}/{position}",
        "change_call",
        Record,
    )
    .body(DOCUMENT),
    route(
        Post,
        "/sessions/{sessionId}/calls/{turn}/{position}/close",
        "close_call",
        Intervene,
    ),
    route(Get, "/tokens", "list_tokens", ManageTokens),
    route(Create, "/tokens", "create_token", ManageTokens),
    route(Delete, "/tokens/{tokenId}", "revoke_token", ManageTokens),
];

/// Tools of the HTTP API that are not offered to agents.
static HTTP_ONLY: [Tool; 17] = [
    Tool::from_spec::<abandon_plan::AbandonPlan>(),
    Tool::from_spec::<change_call::ChangeCall>(),
    Tool::from_spec::<close_call::CloseCall>(),
    Tool::from_spec::<create_token::CreateToken>(),
    Tool::from_spec::<delete_plan::DeletePlan>(),
    Tool::from_spec::<get_output::GetOutput>(),
    Tool::from_spec::<get_plan_audit::GetPlanAudit>(),
    Tool::from_spec::<list_events::ListEvents>(),
    Tool::from_spec::<get_session::GetSession>(),
    Tool::from_spec::<list_reviews::ListReviews>(),
    Tool::from_spec::<list_sessions::ListSessions>(),
    Tool::from_spec::<list_tokens::ListTokens>(),
    Tool::from_spec::<record_call::RecordCall>(),
    Tool::from_spec::<recover_session::RecoverSession>(),
    Tool::from_spec::<get_next_project_step::GetNextProjectStep>(),
    Tool::from_spec::<resume_plan::ResumePlan>(),
    Tool::from_spec::<revoke_token::RevokeToken>(),
];

impl Verb {
    pub(super) fn filter(self) -> MethodFilter {
        match self {
            Verb::Get => MethodFilter::GET,
            Verb::Post | Verb::Create => MethodFilter::POST,
            Verb::Delete => MethodFilter::DELETE,
        }
    }

    /// Whether arguments come from the body instead of the query.
    pub(in crate::web) fn has_body(self) -> bool {
        match self {
            Verb::Post | Verb::Create => true,
            Verb::Get | Verb::Delete => false,
        }
    }

    /// The status of a successful response.
    pub(in crate::web) fn status(self) -> StatusCode {
        match self {
            Verb::Create => StatusCode::CREATED,
            Verb::Get | Verb::Post | Verb::Delete => StatusCode::OK,
        }
    }
}

/// The tools of all routes.
#[cfg(test)]
pub(crate) fn route_tools() -> Vec<&'static Tool> {
    ROUTES.iter().filter_map(Route::tool).collect()
}

/// The method and the path of a tool.
#[cfg(test)]
pub(crate) fn route_of(tool: &str) -> Option<String> {
    let route = ROUTES.iter().find(|route| route.tool == tool)?;
    let method = match route.method {
        Verb::Get => "GET",
        Verb::Post | Verb::Create => "POST",
        Verb::Delete => "DELETE",
    };
    Some(format!("{method} {BASE}{}", route.path))
}

impl Route {
    /// The tool of this route.
    pub(in crate::web) fn tool(&self) -> Option<&'static Tool> {
        let http_only = HTTP_ONLY.iter().find(|tool| tool.name == self.tool);
        http_only.or_else(|| tools::find(self.tool))
    }
}
