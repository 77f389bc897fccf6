//! `get_session_health`: how an agent's session is: its turn, its calls, its plans. It reads.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Desk, Hints, Refused, Spec};
use crate::wire::call::Health;

pub(super) struct GetSessionHealth;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    session_id: String,
}

impl Spec for GetSessionHealth {
    type Input = Input;
    type Output = Health;

    const NAME: &'static str = "get_session_health";
    const TITLE: &'static str = "Get a session's health";
    const DESCRIPTION: &'static str =
        "See whether an agent's session gets anywhere: idle steps, calls without an answer, plans.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Health, Refused> {
        let seen = desk
            .engine
            .session_health(caller, &input.session_id)
            .await?;
        Ok(Health::of(&seen))
    }
}
