//! A plan that was modified: the answer of `modify_plan`.

use onward_engine::StepLine;
use onward_engine::modify::Modified as Done;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Modified {
    plan_id: String,
    action: &'static str,
    status: &'static str,
    step_count: u32,
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "is_none")]
    steps_omitted: u32,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Step {
    step_id: String,
    step_order: u32,
    step_type: &'static str,
    status: &'static str,
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

impl Modified {
    pub(crate) fn of(action: &'static str, done: &Done) -> Self {
        let step = |line: &StepLine| Step {
            step_id: line.id.to_string(),
            step_order: line.order,
            step_type: line.step_type.as_str(),
            status: line.status.as_str(),
        };
        Self {
            plan_id: done.head.id.to_string(),
            action,
            status: done.head.status().as_str(),
            step_count: done.head.counts.total(),
            steps: done.steps.iter().map(step).collect(),
            steps_omitted: done.omitted,
        }
    }
}
