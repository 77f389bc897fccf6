//! The response of `create_research_plan`.

use onward_core::PlanStatus;
use onward_core::step::NewStep;
use onward_engine::create::NewPlan;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreatedPlan {
    plan_id: String,
    name: String,
    research_question: String,
    status: &'static str,
    step_count: usize,
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_step: Option<FirstStep>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skill_execution_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Step {
    step_id: String,
    step_order: u32,
    step_type: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FirstStep {
    #[serde(flatten)]
    step: Step,
    instructions: String,
}

impl CreatedPlan {
    pub(crate) fn new(plan: &NewPlan) -> Self {
        let created = &plan.created;
        let step = |(order, step): (u32, &NewStep)| Step {
            step_id: step.id.to_string(),
            step_order: order,
            step_type: step.step_type.as_str(),
        };
        Self {
            plan_id: created.plan.to_string(),
            name: created.brief.name.clone(),
            research_question: created.brief.research_question.clone(),
            status: PlanStatus::Planning.as_str(),
            step_count: created.steps.len(),
            steps: (1..).zip(&created.steps).map(step).collect(),
            first_step: created.steps.first().map(|first| FirstStep {
                step: step((1, first)),
                instructions: first.instructions.clone(),
            }),
            skill_execution_id: plan.skill.map(|skill| skill.to_string()),
        }
    }
}
