//! The response of `modify_plan`.

use onward_engine::StepLine;
use onward_engine::modify::Modified;
use schemars::JsonSchema;
use serde::Serialize;

use super::excerpt::is_zero;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModifiedPlan {
    plan_id: String,
    action: &'static str,
    status: &'static str,
    step_count: u32,
    /// The changed steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "is_zero")]
    steps_omitted: usize,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Step {
    step_id: String,
    step_order: u32,
    step_type: &'static str,
    status: &'static str,
}

impl ModifiedPlan {
    pub(crate) fn new(action: &'static str, modified: &Modified) -> Self {
        let step = |line: &StepLine| Step {
            step_id: line.id.to_string(),
            step_order: line.order,
            step_type: line.step_type.as_str(),
            status: line.status.as_str(),
        };
        Self {
            plan_id: modified.head.id.to_string(),
            action,
            status: modified.head.status().as_str(),
            step_count: modified.head.counts.total(),
            steps: modified.steps.iter().map(step).collect(),
            steps_omitted: modified.omitted,
        }
    }
}
