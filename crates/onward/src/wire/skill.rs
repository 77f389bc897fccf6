//! The response of `log_skill_execution`.

use onward_engine::skill::SkillResponse;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SkillReceipt {
    execution_id: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

impl SkillReceipt {
    pub(crate) fn new(logged: &SkillResponse) -> Self {
        Self {
            execution_id: logged.execution.to_string(),
            status: logged.status.as_str(),
            plan_id: logged.plan.map(|plan| plan.to_string()),
            duration_ms: logged.duration.map(super::ms),
        }
    }
}
