//! `get_plan_status`: returns a plan's status, progress and stalled steps. Never changes a status.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::params::{self, MAX_THRESHOLD_MS, MIN_THRESHOLD_MS};
use super::{Hints, Spec, ToolContext, ToolError};
use crate::hint::Interface;
use crate::wire::plan::PlanStatusView;

pub(super) struct GetPlanStatus;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Plan id
    plan_id: String,
    /// Overrides the stall threshold
    #[schemars(range(min = MIN_THRESHOLD_MS, max = MAX_THRESHOLD_MS))]
    threshold_ms: Option<u64>,
}

impl Spec for GetPlanStatus {
    type Input = Input;
    type Output = PlanStatusView;

    const NAME: &'static str = "get_plan_status";
    const TITLE: &'static str = "Get plan status and progress";
    const DESCRIPTION: &'static str =
        "Read a plan's progress, step counts, current step and stalled steps.";
    const HINTS: Hints = Hints::READ_ONLY;
    const IN_CORE: bool = true;
    const UNLISTED_IN_CORE: &'static [&'static str] = &["/properties/thresholdMs"];

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<PlanStatusView, ToolError> {
        let plan = params::plan_id(&input.plan_id)?;
        let threshold = params::duration(input.threshold_ms);
        let status = context.engine.status(caller, plan, threshold).await?;
        let view = PlanStatusView::new(&status);
        Ok(match context.interface {
            Interface::Mcp(_) => view.for_agents(),
            Interface::Api | Interface::CommandLine | Interface::Page => view,
        })
    }
}
