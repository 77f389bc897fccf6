//! The outcome of a step that another one depends on.

use onward_engine::dependency::Dependency as EngineDependency;
use schemars::JsonSchema;
use serde::Serialize;

/// A step that this one depends on, by its order, with its result or the reason of its failure.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Dependency {
    step: u32,
    step_id: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Dependency {
    pub(super) fn list(dependencies: &[EngineDependency]) -> Vec<Self> {
        dependencies.iter().map(Self::new).collect()
    }

    fn new(dependency: &EngineDependency) -> Self {
        Self {
            step: dependency.order,
            step_id: dependency.step.to_string(),
            status: dependency.status.as_str(),
            result_summary: dependency.result_summary.clone(),
            reason: dependency.reason.clone(),
        }
    }
}
