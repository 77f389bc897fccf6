//! `get_step_context`: returns earlier results, artifacts and feedback for one step.

use onward_core::policy::{MAX_CLAIM_TOKEN, MAX_SESSION_ID};
use onward_engine::Caller;
use onward_engine::context::MAX_CHARS;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::context::StepContext;

pub(super) struct GetStepContext;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Step id
    step_id: String,
    /// Response size limit; default 7900
    #[schemars(range(min = 1, max = MAX_CHARS))]
    max_chars: Option<usize>,
    /// Session id, for the request log
    #[serde(rename = "sessionId")]
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    _session_id: Option<String>,
    /// Ignored
    #[serde(rename = "claimToken")]
    #[schemars(length(min = 1, max = MAX_CLAIM_TOKEN))]
    _claim_token: Option<String>,
}

impl Spec for GetStepContext {
    type Input = Input;
    type Output = StepContext;

    const NAME: &'static str = "get_step_context";
    const TITLE: &'static str = "Get the context of a step (task)";
    const DESCRIPTION: &'static str = "Read the context of a step: earlier results, stored \
        research, outputs and user feedback. Call it when the step's `instructions` build on \
        earlier steps.";
    const HINTS: Hints = Hints::READ_ONLY;
    const HAS_NOTICE: bool = true;
    const HAS_MAX_CHARS: bool = true;
    const UNLISTED: &'static [&'static str] = &["/properties/sessionId", "/properties/claimToken"];

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<StepContext, ToolError> {
        let step = params::step_id(&input.step_id)?;
        let loaded = context.engine.step_context(caller, step, input.max_chars);
        Ok(StepContext::new(loaded.await?))
    }
}
