//! `close_call`: marks a tool call as interrupted on behalf of a user.

use onward_engine::{CallKey, Caller};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError};
use crate::wire::call::Call;

pub(super) struct CloseCall;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    session_id: String,
    #[schemars(range(min = 1))]
    turn: u32,
    #[schemars(range(min = 1))]
    position: u32,
    /// Subagent; omit for the main agent
    subagent: Option<String>,
}

impl Spec for CloseCall {
    type Input = Input;
    type Output = Call;

    const NAME: &'static str = "close_call";
    const TITLE: &'static str = "Interrupt a tool call";
    const DESCRIPTION: &'static str = "Mark a tool call that will not return as interrupted. A late \
        result is still stored.";
    const HINTS: Hints = Hints::ADDITIVE;

    async fn run(context: &ToolContext, caller: &Caller, input: Input) -> Result<Call, ToolError> {
        let key = CallKey {
            session: input.session_id,
            agent: input.subagent.unwrap_or_default(),
            turn: input.turn,
            position: input.position,
        };
        let record = context.engine.interrupt_call(caller, key).await?;
        Ok(Call::new(&record, context.engine.now()))
    }
}
