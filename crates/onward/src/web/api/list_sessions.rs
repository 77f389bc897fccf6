//! `list_sessions`: agent sessions, most recent activity first.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError};
use crate::wire::session::Sessions;

const DEFAULT_LIMIT: u32 = 20;

pub(super) struct ListSessions;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Default: 20
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

impl Spec for ListSessions {
    type Input = Input;
    type Output = Sessions;

    const NAME: &'static str = "list_sessions";
    const TITLE: &'static str = "List sessions";
    const DESCRIPTION: &'static str = "Agent sessions, most recent activity first.";
    const HINTS: Hints = Hints::READ_ONLY;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<Sessions, ToolError> {
        let limit = input.limit.unwrap_or(DEFAULT_LIMIT);
        let sessions = context.engine.list_sessions(caller, limit).await?;
        Ok(Sessions::new(&sessions, context.engine.now()))
    }
}
