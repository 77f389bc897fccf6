//! MCP Apps (`io.modelcontextprotocol/ui`, 2026-01-26): a plan and its review inside the chat.
//!
//! One HTML document, the resource [`URI`], displays the results of two tools. Its script
//! (`assets/app.js`) gets the plan as HTML from the tool `render_plan`, which only apps may call, and
//! decides reviews with `submit_user_decision`. A client that does not declare the extension gets
//! none of this.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use onward_core::PlanId;
use onward_engine::{Caller, Error};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ContentBlock, ExtensionCapabilities, JsonObject, MetaObject,
    ReadResourceResult, ResourceContents, ServerCapabilities, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Setup, icon};
use crate::tools::{ToolContext, ToolError, params};

/// The document.
pub(super) const URI: &str = "ui://onward/plan";
/// The tool of the document's script.
pub(super) const TOOL: &str = "render_plan";

const EXTENSION: &str = "io.modelcontextprotocol/ui";
const MIME_TYPE: &str = "text/html;profile=mcp-app";
/// The tools whose results the document displays.
const DISPLAYED: [&str; 2] = ["get_plan_status", "request_user_review"];

/// Renders the app. The dashboard provides it, with its templates; this module does not depend on it.
#[derive(Clone, Copy)]
pub(crate) struct App {
    /// The document, without data.
    pub(crate) document: fn() -> &'static str,
    pub(crate) render: RenderPlan,
}

/// Renders a plan. The last argument is the decision that the user has just made in the app.
pub(crate) type RenderPlan = for<'a> fn(
    &'a ToolContext,
    &'a Caller,
    PlanId,
    Option<&'a str>,
) -> BoxFuture<'a, Result<Option<RenderedPlan>, Error>>;

/// The content of the document.
pub(crate) struct RenderedPlan {
    pub(crate) html: String,
    /// "2 done, 1 working".
    pub(crate) tally: String,
    /// Whether the plan has ended: it does not change any more.
    pub(crate) has_ended: bool,
}

/// Whether the client displays HTML documents of servers.
pub(super) fn is_supported(context: &RequestContext<RoleServer>) -> bool {
    let client = context.client_capabilities();
    let extensions = client.and_then(|client| client.extensions);
    extensions.as_ref().is_some_and(is_declared)
}

/// Whether the extensions of a client contain this one.
pub(super) fn is_declared(extensions: &ExtensionCapabilities) -> bool {
    let settings = extensions.get(EXTENSION);
    let types = settings.and_then(|settings| settings.get("mimeTypes")?.as_array());
    types.is_some_and(|types| types.iter().any(|name| name == MIME_TYPE))
}

/// Adds the extension to the capabilities of the server.
pub(super) fn declare(capabilities: &mut ServerCapabilities) {
    let extensions = capabilities.extensions.get_or_insert_default();
    extensions.insert(EXTENSION.to_owned(), JsonObject::new());
}

/// Adds the document to the tools whose results it displays, and the tool of its script.
pub(super) fn extend(tools: &mut Vec<Tool>) {
    for tool in tools.iter_mut() {
        if DISPLAYED.contains(&tool.name.as_ref()) {
            tool.meta = Some(ui(json!({ "resourceUri": URI })));
        }
    }
    let schema = json!({
        "type": "object",
        "properties": {
            "planId": { "type": "string" },
            "stepId": { "type": "string", "description": "Selects the plan of this step" },
            "version": { "type": "string", "description": "The displayed version" },
            "decision": { "type": "string", "description": "The decision made in the app" },
        },
        "additionalProperties": false,
    });
    let schema = schema.as_object().cloned().unwrap_or_default();
    let title = "Render a plan";
    let annotations = ToolAnnotations::with_title(title)
        .read_only(true)
        .destructive(false)
        .idempotent(true)
        .open_world(false);
    tools.push(
        Tool::new(TOOL, "Render a plan as HTML for the app.", Arc::new(schema))
            .with_title(title)
            .with_icons(icon::icons())
            .with_annotations(annotations)
            .with_meta(ui(json!({ "resourceUri": URI, "visibility": ["app"] }))),
    );
}

fn ui(value: Value) -> MetaObject {
    MetaObject(JsonObject::from_iter([("ui".to_owned(), value)]))
}

/// The document. It needs no network: no domain is allowed.
pub(super) fn read(app: App) -> ReadResourceResult {
    let csp = json!({ "connectDomains": [], "resourceDomains": [] });
    let contents = ResourceContents::text((app.document)(), URI)
        .with_mime_type(MIME_TYPE)
        .with_meta(ui(json!({ "csp": csp, "prefersBorder": true })));
    ReadResourceResult::new(vec![contents])
}

/// The arguments of [`TOOL`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    plan_id: Option<String>,
    step_id: Option<String>,
    version: Option<String>,
    decision: Option<String>,
}

/// Renders a plan. The response has no HTML if the app displays this version.
///
/// These calls are not written to the request log: an open app repeats them every few seconds.
pub(super) async fn call(
    setup: &Setup,
    caller: &Caller,
    arguments: JsonObject,
) -> Result<CallToolResult, ToolError> {
    let input: Input = serde_json::from_value(Value::Object(arguments))
        .map_err(|why| ToolError::invalid("arguments", why.to_string()))?;
    let context = &setup.tool_context;
    let plan = plan(context, caller, &input).await?;
    let rendered = (setup.app.render)(context, caller, plan, input.decision.as_deref());
    let rendered = rendered.await?.ok_or_else(|| ToolError::internal(TOOL))?;
    let version = version(&rendered.html);
    let mut content = json!({ "version": version, "hasEnded": rendered.has_ended });
    if input.version.as_deref() != Some(&version) {
        content["html"] = rendered.html.into();
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(rendered.tally)]);
    result.structured_content = Some(content);
    Ok(result)
}

async fn plan(context: &ToolContext, caller: &Caller, input: &Input) -> Result<PlanId, ToolError> {
    match (&input.plan_id, &input.step_id) {
        (Some(plan), _) => params::plan_id(plan),
        (None, Some(step)) => {
            let (sheet, _) = context.engine.step(caller, params::step_id(step)?).await?;
            Ok(sheet.head.id)
        }
        (None, None) => Err(ToolError::invalid("planId", "is required".to_owned())),
    }
}

fn version(html: &str) -> String {
    let digest = Sha256::digest(html);
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
