//! `get_step_context`: what an agent needs to know to work on a step.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::context::StepContext;

pub(super) struct GetStepContext;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    step_id: String,
    /// Default 20,000
    #[schemars(range(min = 1, max = 1_000_000))]
    max_chars: Option<usize>,
    #[serde(rename = "sessionId")]
    _session_id: Option<String>,
    #[serde(rename = "claimToken")]
    _claim_token: Option<String>,
}

impl Spec for GetStepContext {
    type Input = Input;
    type Output = StepContext;

    const NAME: &'static str = "get_step_context";
    const TITLE: &'static str = "Get a step's context";
    const DESCRIPTION: &'static str = "Read what is known for a step: results before it, \
        artifacts, feedback. Call it when `instructions` build on earlier steps.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<StepContext, Refused> {
        let step = given::step(&input.step_id)?;
        let context = desk.engine.step_context(caller, step, input.max_chars);
        Ok(StepContext::of(context.await?))
    }
}
