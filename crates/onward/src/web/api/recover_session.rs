//! `recover_session`: interrupts dead tool calls of a session, for a harness that restarts.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError};
use crate::wire::call::InterruptedCalls;

pub(super) struct RecoverSession;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    session_id: String,
}

impl Spec for RecoverSession {
    type Input = Input;
    type Output = InterruptedCalls;

    const NAME: &'static str = "recover_session";
    const TITLE: &'static str = "Recover a session";
    const DESCRIPTION: &'static str =
        "Interrupt the tool calls whose owner process has exited or that exceeded their timeout.";
    const HINTS: Hints = Hints::ADDITIVE;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<InterruptedCalls, ToolError> {
        let given_up = context
            .engine
            .recover_session(caller, &input.session_id)
            .await?;
        Ok(InterruptedCalls::new(&given_up, context.engine.now()))
    }
}
