//! `delete_plan`: deletes a plan with its audit trail. Its artifacts are kept, and the tenant's
//! audit log records the deletion.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::plan::ChangedPlan;

pub(super) struct DeletePlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
}

impl Spec for DeletePlan {
    type Input = Input;
    type Output = ChangedPlan;

    const NAME: &'static str = "delete_plan";
    const TITLE: &'static str = "Delete a plan";
    const DESCRIPTION: &'static str = "Permanently delete a plan with its steps and its audit trail. \
        Returns its last status.";
    const HINTS: Hints = Hints::DESTRUCTIVE;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<ChangedPlan, ToolError> {
        let plan = params::plan_id(&input.plan_id)?;
        let sheet = context.engine.delete_plan(caller, plan).await?;
        let status = sheet.head.status();
        Ok(ChangedPlan::new(plan, sheet.brief.name, status))
    }
}
