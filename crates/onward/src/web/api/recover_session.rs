//! `recover_session`: gives up what will not answer any more, when a harness starts again.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Desk, Hints, Refused, Spec};
use crate::wire::call::GivenUp;

pub(super) struct RecoverSession;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    session_id: String,
}

impl Spec for RecoverSession {
    type Input = Input;
    type Output = GivenUp;

    const NAME: &'static str = "recover_session";
    const TITLE: &'static str = "Recover a session";
    const DESCRIPTION: &'static str =
        "Give up the calls whose owner is dead or that are past their time; each gets one result.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<GivenUp, Refused> {
        let given_up = desk
            .engine
            .recover_session(caller, &input.session_id)
            .await?;
        Ok(GivenUp::of(&given_up, desk.engine.now()))
    }
}
