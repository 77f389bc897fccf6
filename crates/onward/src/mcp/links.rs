//! Links in tool results: the plan, the review page and stored texts, so that a client can show
//! them or read them again.
//!
//! Only for responses that create one of them or end the work: every link costs the model tokens.

use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ProtocolVersion, Resource};
use rmcp::service::RequestContext;
use serde_json::Value;

use super::resources;
use crate::tools::Tool;

/// The first version with resource links.
const SINCE: ProtocolVersion = ProtocolVersion::V_2025_06_18;

/// Adds the links of a result, if the client's version has them.
pub(super) fn add(
    tool: &Tool,
    context: &RequestContext<RoleServer>,
    mut response: CallToolResponse,
) -> CallToolResponse {
    let version = context.protocol_version();
    let supported = version.is_some_and(|version| version.as_str() >= SINCE.as_str());
    if let (true, CallToolResponse::Complete(result)) = (supported, &mut response) {
        extend(tool, result);
    }
    response
}

/// Adds the links of a result.
pub(super) fn extend(tool: &Tool, result: &mut CallToolResult) {
    if let Some(content) = &result.structured_content {
        let links = links(tool.name, content);
        let links = links.into_iter().map(ContentBlock::resource_link);
        result.content.extend(links);
    }
}

fn links(tool: &str, response: &Value) -> Vec<Resource> {
    let text = |pointer: &str| response.pointer(pointer).and_then(Value::as_str);
    let plan = || text("/planId").map(resources::plan);
    let links = match tool {
        "create_research_plan" => [plan(), None],
        "request_user_review" => [plan(), text("/url").map(resources::review_page)],
        "get_next_step" => match text("/status") {
            Some("awaiting_review") => [plan(), text("/review/url").map(resources::review_page)],
            Some("plan_complete" | "plan_failed") => [plan(), None],
            Some(_) | None => [None, None],
        },
        "store_research" => [text("/artifactId").map(resources::artifact), None],
        "store_research_output" => [text("/outputId").map(resources::output), plan()],
        _ => [None, None],
    };
    links.into_iter().flatten().collect()
}
