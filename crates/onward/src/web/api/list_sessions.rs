//! `list_sessions`: agents' sessions, those that were heard of last first.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Desk, Hints, Refused, Spec};
use crate::wire::session::Sessions;

/// How many, where nobody says otherwise.
const PAGE: u32 = 20;

pub(super) struct ListSessions;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Default 20
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

impl Spec for ListSessions {
    type Input = Input;
    type Output = Sessions;

    const NAME: &'static str = "list_sessions";
    const TITLE: &'static str = "List sessions";
    const DESCRIPTION: &'static str = "Agents' sessions, those that were heard of last first.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Sessions, Refused> {
        let limit = input.limit.unwrap_or(PAGE);
        let sessions = desk.engine.list_sessions(caller, limit).await?;
        Ok(Sessions::of(&sessions))
    }
}
