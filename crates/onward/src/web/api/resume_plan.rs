//! `resume_plan`: a person goes on with a stalled plan.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Desk, Hints, Refused, Spec, given};
use crate::wire::plan::Changed;

pub(super) struct ResumePlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
}

impl Spec for ResumePlan {
    type Input = Input;
    type Output = Changed;

    const NAME: &'static str = "resume_plan";
    const TITLE: &'static str = "Resume a plan";
    const DESCRIPTION: &'static str = "Go on with a plan that is marked stalled.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Changed, Refused> {
        let plan = given::plan(&input.plan_id)?;
        let status = desk.engine.resume_plan(caller, plan).await?;
        let sheet = desk.engine.sheet(caller, plan).await?;
        Ok(Changed {
            plan_id: plan.to_string(),
            name: sheet.brief.name,
            status: status.as_str(),
        })
    }
}
