//! `close_call`: a person gives up a call that will not answer.

use onward_engine::{CallKey, Caller};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Desk, Hints, Refused, Spec};
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
    /// Which subagent; left out for the agent itself
    subagent: Option<String>,
}

impl Spec for CloseCall {
    type Input = Input;
    type Output = Call;

    const NAME: &'static str = "close_call";
    const TITLE: &'static str = "Close a call";
    const DESCRIPTION: &'static str =
        "Give up a call that will not answer. Its own result is still kept where it comes.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Call, Refused> {
        let key = CallKey {
            session: input.session_id,
            agent: input.subagent.unwrap_or_default(),
            turn: input.turn,
            position: input.position,
        };
        let record = desk.engine.close_call(caller, key).await?;
        Ok(Call::of(&record, desk.engine.now()))
    }
}
