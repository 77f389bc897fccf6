//! `create_token`: creates an access token. The secret is in this response only, so the call is not
//! in the request log; the tenant's audit log records who created it.

use std::time::Duration;

use onward_core::Role;
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError};
use crate::wire::token::Token;

pub(super) struct CreateToken;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    #[schemars(length(min = 1, max = 100))]
    name: String,
    role: RoleName,
    /// Default: no expiry
    #[schemars(range(min = 1, max = 315_360_000))]
    expires_in_seconds: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RoleName {
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
    const DESCRIPTION: &'static str = "Create an access token. The secret is returned only once.";
    const HINTS: Hints = Hints::ADDITIVE;
    const LOGGED: bool = false;

    async fn run(context: &ToolContext, caller: &Caller, input: Input) -> Result<Token, ToolError> {
        let role = match input.role {
            RoleName::Owner => Role::Owner,
            RoleName::Admin => Role::Admin,
            RoleName::Member => Role::Member,
            RoleName::Agent => Role::Agent,
            RoleName::Viewer => Role::Viewer,
        };
        let now = context.engine.now();
        let expires_at = match input.expires_in_seconds.map(Duration::from_secs) {
            Some(span) => Some(
                now.checked_add(span)
                    .ok_or_else(|| ToolError::invalid("expiresInSeconds", "is too large"))?,
            ),
            None => None,
        };
        let created = context
            .engine
            .create_token(caller, &input.name, role, expires_at);
        let (secret, token) = created.await?;
        Ok(Token::new(&token, Some(secret)))
    }
}
