//! `delete_plan`: an owner deletes a plan with its trail. Its artifacts stay, and the tenant's log says
//! that it was there.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Desk, Hints, Refused, Spec, given};
use crate::wire::plan::Changed;

pub(super) struct DeletePlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
}

impl Spec for DeletePlan {
    type Input = Input;
    type Output = Changed;

    const NAME: &'static str = "delete_plan";
    const TITLE: &'static str = "Delete a plan";
    const DESCRIPTION: &'static str = "Delete a plan with its steps and its audit trail, for ever. \
        Answers with how it stood.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: false,
        destructive: true,
    };
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Changed, Refused> {
        let plan = given::plan(&input.plan_id)?;
        let sheet = desk.engine.delete_plan(caller, plan).await?;
        Ok(Changed {
            plan_id: plan.to_string(),
            status: sheet.head.status().as_str(),
            name: sheet.brief.name,
        })
    }
}
