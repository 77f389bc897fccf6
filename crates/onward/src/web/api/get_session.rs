//! `get_session`: a session with its turns, model responses and tool calls.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError};
use crate::wire::session::Session;

const DEFAULT_TURNS: u32 = 20;
const STEPS_PER_TURN: u32 = 100;

pub(super) struct GetSession;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Session id or unique prefix
    session_id: String,
    /// Number of most recent turns; default: 20
    #[schemars(range(min = 1, max = 1000))]
    turns: Option<u32>,
}

impl Spec for GetSession {
    type Input = Input;
    type Output = Session;

    const NAME: &'static str = "get_session";
    const TITLE: &'static str = "Get a session";
    const DESCRIPTION: &'static str = "A session with its turns, model responses and tool calls.";
    const HINTS: Hints = Hints::READ_ONLY;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<Session, ToolError> {
        let turns = input.turns.unwrap_or(DEFAULT_TURNS);
        let view = context
            .engine
            .show_session(caller, &input.session_id, turns, STEPS_PER_TURN)
            .await?;
        Ok(Session::new(&view, context.engine.now()))
    }
}
