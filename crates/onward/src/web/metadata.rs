//! OAuth protected resource metadata (RFC 9728): the resource and its authorization servers. Onward
//! itself issues no OAuth tokens.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::Site;

/// Metadata of the whole server.
pub(super) const SERVER_PATH: &str = "/.well-known/oauth-protected-resource";
/// Metadata of the MCP endpoint.
pub(super) const MCP_PATH: &str = "/.well-known/oauth-protected-resource/mcp";

/// The metadata path of a resource.
pub(super) fn path_for(path: &str) -> &'static str {
    match path {
        "/mcp" => MCP_PATH,
        _ => SERVER_PATH,
    }
}

#[derive(Serialize)]
struct Metadata {
    resource: String,
    resource_name: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<String>,
}

pub(super) async fn show(State(site): State<Arc<Site>>, request: Request) -> Response {
    let base = site.auth.origin_policy.base(&request);
    let resource = match request.uri().path() {
        MCP_PATH => format!("{base}/mcp"),
        _ => base,
    };
    let issuer = site.auth.issuer.as_ref();
    Json(Metadata {
        resource,
        resource_name: "Onward",
        authorization_servers: issuer
            .map(|issuer| issuer.url.clone())
            .into_iter()
            .collect(),
        bearer_methods_supported: ["header"],
        scopes_supported: issuer
            .map(|issuer| issuer.scopes.clone())
            .unwrap_or_default(),
    })
    .into_response()
}
