//! The table of API routes: method, path and tool. The router and the OpenAPI document are generated
//! from it.

use axum::http::StatusCode;
use axum::routing::MethodFilter;

use super::{
    abandon_plan, change_call, close_call, create_token, delete_plan, export_plan, get_output,
    get_plan_audit, get_session, list_reviews, list_sessions, list_tokens, record_call,
    recover_session, resume_plan, revoke_token,
};
use crate::tools::{self, Tool};

/// Path prefix of the API.
pub(in crate::web) const BASE: &str = "/api/v1";

/// An API route and its tool.
pub(in crate::web) struct Route {
    pub(in crate::web) method: Verb,
    /// The path after `/api/v1`; names in braces are arguments.
    pub(in crate::web) path: &'static str,
    /// Name of the tool.
    pub(in crate::web) tool: &'static str,
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

const fn route(method: Verb, path: &'static str, tool: &'static str) -> Route {
    Route { method, path, tool }
}

/// All routes that map to tools.
pub(in crate::web) static ROUTES: [Route; 37] = [
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
    route(Verb::Get, "/artifacts/{artifactId}", "get_artifact"),
    route(Verb::Get, "/outputs/{outputId}", "get_output"),
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
static HTTP_ONLY: [Tool; 16] = [
    Tool::from_spec::<abandon_plan::AbandonPlan>(),
    Tool::from_spec::<change_call::ChangeCall>(),
    Tool::from_spec::<close_call::CloseCall>(),
    Tool::from_spec::<create_token::CreateToken>(),
    Tool::from_spec::<delete_plan::DeletePlan>(),
    Tool::from_spec::<export_plan::ExportPlan>(),
    Tool::from_spec::<get_output::GetOutput>(),
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
