//! `get_plan_status`: where a plan stands. It reads, and never changes a status.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::plan::Standing;

pub(super) struct GetPlanStatus;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
    /// Judge stalls by this instead
    #[schemars(range(min = 1, max = 31_536_000_000_u64))]
    threshold_ms: Option<u64>,
}

impl Spec for GetPlanStatus {
    type Input = Input;
    type Output = Standing;

    const NAME: &'static str = "get_plan_status";
    const TITLE: &'static str = "Get a plan's status";
    const DESCRIPTION: &'static str =
        "See where a plan stands: progress, steps by status, which stalled. Changes nothing.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = true;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Standing, Refused> {
        let plan = given::plan(&input.plan_id)?;
        let threshold = given::span(input.threshold_ms);
        let status = desk.engine.status(caller, plan, threshold).await?;
        Ok(Standing::of(&status))
    }
}
