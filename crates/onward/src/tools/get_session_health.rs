//! `get_session_health`: returns the current turn, tool calls and plans of an agent session.

use onward_core::policy::MAX_SESSION_ID;
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError};
use crate::wire::call::SessionHealth;

pub(super) struct GetSessionHealth;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: String,
}

impl Spec for GetSessionHealth {
    type Input = Input;
    type Output = SessionHealth;

    const NAME: &'static str = "get_session_health";
    const TITLE: &'static str = "Get session health";
    const DESCRIPTION: &'static str = "Check whether an agent session is making progress: idle steps, \
        tool calls without a result, and its plans.";
    const HINTS: Hints = Hints::READ_ONLY;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<SessionHealth, ToolError> {
        let health = context
            .engine
            .session_health(caller, &input.session_id)
            .await?;
        Ok(SessionHealth::new(&health))
    }
}
