//! `get_session`: a session with its turns, their steps, and its calls.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Desk, Hints, Refused, Spec};
use crate::wire::session::Session;

/// How many turns, where nobody says otherwise.
const TURNS: u32 = 20;
/// How many steps of each.
const STEPS: u32 = 100;

pub(super) struct GetSession;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The id, or the beginning of it
    session_id: String,
    /// How many turns, from the last one back; default 20
    #[schemars(range(min = 1, max = 1000))]
    turns: Option<u32>,
}

impl Spec for GetSession {
    type Input = Input;
    type Output = Session;

    const NAME: &'static str = "get_session";
    const TITLE: &'static str = "Get a session";
    const DESCRIPTION: &'static str = "A session with its turns, their steps, and its calls.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Session, Refused> {
        let turns = input.turns.unwrap_or(TURNS);
        let view = desk
            .engine
            .show_session(caller, &input.session_id, turns, STEPS)
            .await?;
        Ok(Session::of(&view, desk.engine.now()))
    }
}
