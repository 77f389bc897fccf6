//! `get_next_step`: claims the next step of a plan, or reports why no step is available.

use onward_core::PlanId;
use onward_core::policy::MAX_SESSION_ID;
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::next::NextStep;

pub(crate) const NAME: &str = "get_next_step";

/// The longest wait in milliseconds.
const MAX_WAIT_MS: u32 = 60_000;

pub(super) struct GetNextStep;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Plan id
    plan_id: String,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
    /// First resume a stalled step of another session
    include_stalled: Option<bool>,
    /// Wait for a step or a review decision
    #[schemars(range(max = MAX_WAIT_MS))]
    #[expect(dead_code, reason = "`tools::wait` reads it")]
    wait_ms: Option<u32>,
}

impl Spec for GetNextStep {
    type Input = Input;
    type Output = NextStep;

    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Get the next step (task, todo) of a plan";
    const DESCRIPTION: &'static str = "Claim the next step (task, todo) of a plan. Follow its \
        `instructions`, then call `submit_step_result` with its `claimToken`. If no step is \
        available, `status` is the reason.";
    const HINTS: Hints = Hints::ADDITIVE;
    const IN_CORE: bool = true;
    // The hint of a response without a step names it.
    const UNLISTED_IN_CORE: &'static [&'static str] = &["/properties/waitMs"];

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<NextStep, ToolError> {
        let plan = params::plan_id(&input.plan_id)?;
        let session = params::session_id(input.session_id);
        let stalled = input.include_stalled.unwrap_or(false);
        let next = context.engine.next_step(caller, plan, session, stalled);
        Ok(response(context, plan, &next.await?))
    }
}

/// The response in the terms of the caller's interface.
pub(super) fn response(
    context: &ToolContext,
    plan: PlanId,
    next: &onward_engine::next_step::NextStep,
) -> NextStep {
    let next = NextStep::new(plan, next);
    next.for_caller(context.interface, context.base_url.as_deref())
}
