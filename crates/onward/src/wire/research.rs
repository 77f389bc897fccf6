//! What was stored: the answers of `store_research` and `store_research_output`.

use onward_engine::research::{Delivered, Stored};
use schemars::JsonSchema;
use serde::Serialize;

/// An artifact.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Artifact {
    artifact_id: String,
    title: String,
    chunks: usize,
    /// Whether its words are in the index; they are written with it.
    indexed: bool,
}

impl Artifact {
    pub(crate) fn of(stored: Stored) -> Self {
        Self {
            artifact_id: stored.id.to_string(),
            title: stored.title,
            chunks: stored.chunks,
            indexed: true,
        }
    }
}

/// An output.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    output_id: String,
    plan_id: String,
    version: u32,
}

impl Output {
    pub(crate) fn of(delivered: &Delivered) -> Self {
        Self {
            output_id: delivered.id.to_string(),
            plan_id: delivered.plan.to_string(),
            version: delivered.version,
        }
    }
}
