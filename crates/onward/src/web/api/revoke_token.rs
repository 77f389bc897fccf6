//! `revoke_token`: takes a token back. It stays in the list.

use onward_engine::{Caller, Error};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Desk, Hints, Refused, Spec};
use crate::wire::token::Token;

/// The characters of a whole id: a shorter one could name a token that nobody meant.
const WHOLE: usize = 36;

pub(super) struct RevokeToken;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    token_id: String,
}

impl Spec for RevokeToken {
    type Input = Input;
    type Output = Token;

    const NAME: &'static str = "revoke_token";
    const TITLE: &'static str = "Revoke a token";
    const DESCRIPTION: &'static str = "Take a token back: from now on it opens nothing.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: false,
        destructive: true,
    };
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Token, Refused> {
        if input.token_id.len() != WHOLE {
            let name = input.token_id.chars().take(WHOLE).collect();
            let what = "token";
            return Err(Error::NotFound { what, name }.into());
        }
        let token = desk.engine.revoke_token(caller, &input.token_id).await?;
        Ok(Token::of(&token, None))
    }
}
