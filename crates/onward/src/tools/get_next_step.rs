//! `get_next_step`: hands out the next step under a claim, or says why there is none.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::next::NextStep;

pub(super) struct GetNextStep;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
    session_id: Option<String>,
    /// Take over a step whose agent fell silent
    include_stalled: Option<bool>,
}

impl Spec for GetNextStep {
    type Input = Input;
    type Output = NextStep;

    const NAME: &'static str = "get_next_step";
    const TITLE: &'static str = "Get the next step";
    const DESCRIPTION: &'static str = "Claim the next step of a plan. Follow its `instructions`, \
        then call `submit_step_result` with its `claimToken`. \
        `status` says when the plan is complete, failed or waits for a person.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = true;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<NextStep, Refused> {
        let plan = given::plan(&input.plan_id)?;
        let session = given::session(input.session_id);
        let stalled = input.include_stalled.unwrap_or(false);
        let next = desk.engine.next_step(caller, plan, session, stalled);
        Ok(NextStep::of(plan, &next.await?).linked(desk.base_url.as_deref()))
    }
}
