//! The response of `modify_plan`.

use onward_engine::StepLine;
use onward_engine::modify::Modified;
use schemars::JsonSchema;
use serde::Serialize;

use super::budget::BudgetView;
use super::excerpt::is_zero;
use super::plan::RoutingView;
use super::step::dependencies;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModifiedPlan {
    plan_id: String,
    action: &'static str,
    status: &'static str,
    #[serde(flatten)]
    routing: RoutingView,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetView>,
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
    /// Orders of the steps it depends on, after the change
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<u32>,
    #[serde(skip_serializing_if = "is_zero")]
    depends_on_omitted: usize,
}

impl ModifiedPlan {
    pub(crate) fn new(action: &'static str, modified: &Modified) -> Self {
        let step = |line: &StepLine| {
            let (depends_on, depends_on_omitted) = dependencies(&modified.depends_on, line.id);
            Step {
                step_id: line.id.to_string(),
                step_order: line.order,
                step_type: line.step_type.as_str(),
                status: line.status.as_str(),
                supersedes: line.supersedes.map(|step| step.to_string()),
                depends_on,
                depends_on_omitted,
            }
        };
        Self {
            plan_id: modified.head.id.to_string(),
            action,
            status: modified.head.status().as_str(),
            routing: RoutingView::new(&modified.head.routing),
            budget: (modified.head.budget.as_ref()).map(|budget| {
                BudgetView::new(budget, budget.exhausted.as_ref(), budget.used.tokens)
            }),
            step_count: modified.head.counts.total(),
            steps: modified.steps.iter().map(step).collect(),
            steps_omitted: modified.omitted,
        }
    }
}
