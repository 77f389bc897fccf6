//! `abandon_plan`: a person gives a plan up. It stays where it is, failed, with the reason.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Desk, Hints, Refused, Spec, given};
use crate::wire::plan::Changed;

pub(super) struct AbandonPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
    #[schemars(length(max = 10_000))]
    reason: Option<String>,
}

impl Spec for AbandonPlan {
    type Input = Input;
    type Output = Changed;

    const NAME: &'static str = "abandon_plan";
    const TITLE: &'static str = "Abandon a plan";
    const DESCRIPTION: &'static str = "Give a plan up: it becomes failed, and stays readable.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: false,
        destructive: true,
    };
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Changed, Refused> {
        let plan = given::plan(&input.plan_id)?;
        let status = desk.engine.abandon_plan(caller, plan, input.reason).await?;
        let sheet = desk.engine.sheet(caller, plan).await?;
        Ok(Changed {
            plan_id: plan.to_string(),
            name: sheet.brief.name,
            status: status.as_str(),
        })
    }
}
