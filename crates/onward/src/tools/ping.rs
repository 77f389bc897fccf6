//! `ping`: checks the connection and returns the caller's identity. The only tool that is not
//! logged.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError};
use crate::wire::ping::PingResponse;

pub(super) struct Ping;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {}

impl Spec for Ping {
    type Input = Input;
    type Output = PingResponse;

    const NAME: &'static str = "ping";
    const TITLE: &'static str = "Ping the server";
    const DESCRIPTION: &'static str = "Check that Onward is reachable. Returns the server version \
        and the tenant and user of this connection.";
    const HINTS: Hints = Hints::READ_ONLY;
    const LOGGED: bool = false;

    async fn run(_: &ToolContext, caller: &Caller, _: Input) -> Result<PingResponse, ToolError> {
        Ok(PingResponse::new(caller))
    }
}
