//! `revoke_token`: revokes a token. It stays in the list.

use onward_engine::{Caller, Error, ObjectKind};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError};
use crate::wire::token::Token;

/// Length of a complete id. Prefixes are rejected, because they could match another token.
const ID_LENGTH: usize = 36;

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
    const DESCRIPTION: &'static str = "Revoke a token. It is rejected from now on.";
    const HINTS: Hints = Hints::DESTRUCTIVE;

    async fn run(context: &ToolContext, caller: &Caller, input: Input) -> Result<Token, ToolError> {
        if input.token_id.len() != ID_LENGTH {
            let name = input.token_id.chars().take(ID_LENGTH).collect();
            let kind = ObjectKind::Token;
            return Err(Error::NotFound { kind, name }.into());
        }
        let token = context.engine.revoke_token(caller, &input.token_id).await?;
        Ok(Token::new(&token, None))
    }
}
