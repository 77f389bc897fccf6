//! `ping`: is it there, and as whom does it know the caller? The only tool that is not logged.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Desk, Hints, Refused, Spec};
use crate::wire::pong::Pong;

pub(super) struct Ping;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {}

impl Spec for Ping {
    type Input = Input;
    type Output = Pong;

    const NAME: &'static str = "ping";
    const TITLE: &'static str = "Ping";
    const DESCRIPTION: &'static str = "Check that Onward answers, and as whom it knows you.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = false;
    const LOGGED: bool = false;

    async fn run(_: &Desk, caller: &Caller, _: Input) -> Result<Pong, Refused> {
        Ok(Pong::to(caller))
    }
}
