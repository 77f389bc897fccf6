//! `list_tokens`: the tenant's tokens, each with its prefix, without secrets.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::{Hints, Spec, ToolContext, ToolError};
use crate::wire::token::Token;

pub(super) struct ListTokens;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Tokens {
    tokens: Vec<Token>,
}

impl Spec for ListTokens {
    type Input = Input;
    type Output = Tokens;

    const NAME: &'static str = "list_tokens";
    const TITLE: &'static str = "List tokens";
    const DESCRIPTION: &'static str = "The tokens of the tenant, oldest first.";
    const HINTS: Hints = Hints::READ_ONLY;

    async fn run(context: &ToolContext, caller: &Caller, _: Input) -> Result<Tokens, ToolError> {
        let tokens = context.engine.tokens(caller).await?;
        let tokens = tokens.iter().map(|token| Token::new(token, None)).collect();
        Ok(Tokens { tokens })
    }
}
