//! What an OAuth client needs to know before it can sign in (RFC 9728): which resource this is, and
//! who issues tokens for it. We issue none for OAuth ourselves.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::Site;

/// About the server as a whole.
pub(super) const OF_SERVER: &str = "/.well-known/oauth-protected-resource";
/// About MCP.
pub(super) const OF_MCP: &str = "/.well-known/oauth-protected-resource/mcp";

/// Where it is described what stands at a path.
pub(super) fn path_for(path: &str) -> &'static str {
    match path {
        "/mcp" => OF_MCP,
        _ => OF_SERVER,
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
    let base = site.gate.place.base(&request);
    let resource = match request.uri().path() {
        OF_MCP => format!("{base}/mcp"),
        _ => base,
    };
    let issuer = site.gate.issuer.as_ref();
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
