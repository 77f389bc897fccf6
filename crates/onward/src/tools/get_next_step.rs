//! `get_next_step`: claims the next step of a plan, or reports why no step is available.

use onward_core::policy::MAX_SESSION_ID;
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::next::NextStep;

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
}

impl Spec for GetNextStep {
    type Input = Input;
    type Output = NextStep;

    const NAME: &'static str = "get_next_step";
    const TITLE: &'static str = "Get the next step";
    const DESCRIPTION: &'static str = "Claim the next step (task, todo) of a plan. Follow its \
        `instructions`, then call `submit_step_result` with its `claimToken`. If no step is \
        available, `status` is the reason.";
    const HINTS: Hints = Hints::ADDITIVE;
    const IN_CORE: bool = true;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<NextStep, ToolError> {
        let plan = params::plan_id(&input.plan_id)?;
        let session = params::session_id(input.session_id);
        let stalled = input.include_stalled.unwrap_or(false);
        let next = context.engine.next_step(caller, plan, session, stalled);
        Ok(NextStep::new(&next.await?).with_review_url(context.base_url.as_deref()))
    }
}
