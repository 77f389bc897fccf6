//! Skills over MCP: the extension `io.modelcontextprotocol/skills` (SEP-2640), with the one skill
//! that `onward install` also writes. Its file is a resource.

use std::fmt::Write as _;

use rmcp::model::{CacheScope, CustomRequest, ErrorData};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::CONSTANT_TTL_MS;
use crate::instructions::{self, SKILL_DESCRIPTION, SKILL_NAME, SKILL_URI};

pub(super) const EXTENSION_ID: &str = "io.modelcontextprotocol/skills";

/// The response to a request of the extension. `None` for other methods.
pub(super) fn respond(request: &CustomRequest) -> Option<Result<Value, ErrorData>> {
    match request.method.as_str() {
        "skills/list" => Some(Ok(cacheable("skills", json!([entry()])))),
        "skills/get" => Some(get(request.params.as_ref())),
        _ => None,
    }
}

fn get(params: Option<&Value>) -> Result<Value, ErrorData> {
    match params.and_then(|params| params.get("uri")?.as_str()) {
        Some(SKILL_URI) => Ok(cacheable("skill", entry())),
        Some(uri) => {
            let uri: String = uri.chars().take(200).collect();
            Err(ErrorData::invalid_params(
                format!("unknown skill `{uri}`"),
                None,
            ))
        }
        None => Err(ErrorData::invalid_params("`uri` is required", None)),
    }
}

/// The skill changes only with the version of the server.
fn cacheable(name: &str, value: Value) -> Value {
    json!({
        "resultType": "complete",
        name: value,
        "ttlMs": CONSTANT_TTL_MS,
        "cacheScope": CacheScope::Public,
    })
}

fn entry() -> Value {
    let text = instructions::skill();
    let mut digest = "sha256:".to_owned();
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a string does not fail.
        let _ = write!(digest, "{byte:02x}");
    }
    json!({
        "uri": SKILL_URI,
        "frontmatter": { "name": SKILL_NAME, "description": SKILL_DESCRIPTION },
        "resources": [{ "uri": SKILL_URI, "digest": digest, "size": text.len() }],
    })
}
