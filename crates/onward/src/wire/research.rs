//! The responses of `store_research`, `store_research_output` and `extract_data`.

use onward_engine::research::{StoredArtifact, StoredOutput};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A stored artifact.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Artifact {
    artifact_id: String,
    title: String,
    chunks: usize,
    /// Whether it is in the full-text index; always true
    indexed: bool,
}

impl Artifact {
    pub(crate) fn new(stored: StoredArtifact) -> Self {
        Self {
            artifact_id: stored.id.to_string(),
            title: stored.title,
            chunks: stored.chunks,
            indexed: true,
        }
    }
}

/// A stored output version.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    output_id: String,
    plan_id: String,
    version: u32,
}

impl Output {
    pub(crate) fn new(delivered: &StoredOutput) -> Self {
        Self {
            output_id: delivered.id.to_string(),
            plan_id: delivered.plan.to_string(),
            version: delivered.version,
        }
    }
}

/// Data that a model extracted.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Extraction {
    extraction_id: String,
    data: Value,
    valid: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    issues: Vec<Issue>,
    model: String,
}

/// A position at which the data does not match its schema.
#[derive(Serialize, JsonSchema)]
struct Issue {
    path: String,
    message: String,
}

impl Extraction {
    pub(crate) fn new(stored: onward_engine::Extraction) -> Self {
        let valid = stored.is_valid();
        let issues = stored.issues.into_iter().map(|issue| Issue {
            path: issue.path,
            message: issue.message,
        });
        Self {
            extraction_id: stored.id.to_string(),
            data: stored.data,
            valid,
            issues: issues.collect(),
            model: stored.model,
        }
    }
}
