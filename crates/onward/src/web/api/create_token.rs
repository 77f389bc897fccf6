//! `create_token`: a token for a program. It is in this one answer and nowhere else, so the call is not
//! in the log of calls; the tenant's own log says who made it.

use std::time::Duration;

use onward_core::Role;
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Desk, Hints, Refused, Spec};
use crate::wire::token::Token;

pub(super) struct CreateToken;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    #[schemars(length(min = 1, max = 100))]
    name: String,
    role: Word,
    /// For ever without it
    #[schemars(range(min = 1, max = 315_360_000))]
    expires_in_seconds: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Word {
    Owner,
    Admin,
    Member,
    Agent,
    Viewer,
}

impl Spec for CreateToken {
    type Input = Input;
    type Output = Token;

    const NAME: &'static str = "create_token";
    const TITLE: &'static str = "Create a token";
    const DESCRIPTION: &'static str = "Make a token for a program. It is shown this once.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = false;
    const LOGGED: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Token, Refused> {
        let role = match input.role {
            Word::Owner => Role::Owner,
            Word::Admin => Role::Admin,
            Word::Member => Role::Member,
            Word::Agent => Role::Agent,
            Word::Viewer => Role::Viewer,
        };
        let now = desk.engine.now();
        let expires_at = match input.expires_in_seconds.map(Duration::from_secs) {
            Some(span) => Some(now.checked_add(span).ok_or_else(|| {
                Refused::invalid("expiresInSeconds", "is longer than there is time")
            })?),
            None => None,
        };
        let made = desk
            .engine
            .create_token(caller, &input.name, role, expires_at);
        let (secret, token) = made.await?;
        Ok(Token::of(&token, Some(secret)))
    }
}
