//! `get_plan_audit`: what happened to a plan, oldest first, a page at a time.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Desk, Hints, Refused, Spec, given};
use crate::wire::event::Audit;

/// How much is shown where nobody says how much.
const PAGE: u32 = 1_000;

pub(super) struct GetPlanAudit;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
    /// Only what came after this `seq`
    #[schemars(range(min = 0))]
    after: Option<u64>,
    /// 1000 without it
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

impl Spec for GetPlanAudit {
    type Input = Input;
    type Output = Audit;

    const NAME: &'static str = "get_plan_audit";
    const TITLE: &'static str = "Get a plan's audit trail";
    const DESCRIPTION: &'static str = "Everything that happened to a plan, oldest first. Ask again \
        with `after` as the last `seq`, until there is nothing more.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Audit, Refused> {
        let plan = given::plan(&input.plan_id)?;
        let (after, limit) = (input.after.unwrap_or(0), input.limit.unwrap_or(PAGE));
        let trail = desk.engine.trail(caller, plan, after, limit).await?;
        Ok(Audit::of(plan, trail))
    }
}
