//! Discovery before a connection: the MCP server card (SEP-2127), and the AI catalog at the
//! well-known location that refers to it. Both describe the endpoint, not its tools.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Uri;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use super::Site;
use crate::mcp;

/// The location that the extension reserves for the card of `/mcp`.
pub(super) const CARD_PATH: &str = "/mcp/server-card";
/// The catalog of this server.
pub(super) const CATALOG_PATH: &str = "/.well-known/ai-catalog.json";

const CARD_TYPE: &str = "application/mcp-server-card+json";
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
/// The card allows 100 characters.
const DESCRIPTION: &str =
    "Durable plans for AI agents, with detection and recovery of stalled steps";

pub(super) async fn card(State(site): State<Arc<Site>>, request: Request) -> Response {
    let base = site.auth.origin_policy.base(&request);
    let versions = ProtocolVersion::KNOWN_VERSIONS.iter();
    let versions: Vec<&str> = versions.map(ProtocolVersion::as_str).collect();
    let repository = env!("CARGO_PKG_REPOSITORY");
    let mut remote = json!({
        "type": "streamable-http",
        "url": format!("{base}/mcp"),
        "supportedProtocolVersions": versions,
    });
    if site.auth.local_user.is_none() {
        let header = json!({ "name": "Authorization", "isRequired": true, "isSecret": true });
        remote["headers"] = json!([header]);
    }
    let card = json!({
        "$schema": SCHEMA,
        "name": "io.github.onward-dev/onward",
        "version": env!("CARGO_PKG_VERSION"),
        "title": mcp::TITLE,
        "description": DESCRIPTION,
        "websiteUrl": repository,
        "repository": { "url": repository, "source": "github" },
        "icons": mcp::icons(),
        "remotes": [remote],
    });
    document(CARD_TYPE, card)
}

pub(super) async fn catalog(State(site): State<Arc<Site>>, request: Request) -> Response {
    let base = site.auth.origin_policy.base(&request);
    let publisher = base.parse::<Uri>().ok();
    let publisher = publisher.as_ref().and_then(Uri::host);
    let publisher = publisher.unwrap_or("localhost");
    let entry = json!({
        "identifier": format!("urn:air:{publisher}:mcp:onward"),
        "type": CARD_TYPE,
        "url": format!("{base}{CARD_PATH}"),
    });
    let catalog = json!({ "specVersion": "1.0", "entries": [entry] });
    document("application/ai-catalog+json", catalog)
}

fn document(media_type: &'static str, document: Value) -> Response {
    let headers = [
        (CONTENT_TYPE, media_type),
        (CACHE_CONTROL, "public, max-age=3600"),
    ];
    (headers, Json(document).into_response().into_body()).into_response()
}
