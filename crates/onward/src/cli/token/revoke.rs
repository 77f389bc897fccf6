//! `onward token revoke`: takes a token back. It stays in the list.

use clap::Args;
use onward_engine::Error;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::words;
use crate::wire::token::Token;

/// How much of a token is stored, and so can be looked for.
const STORED: usize = 12;

/// Take a token back: from now on it opens nothing
#[derive(Args)]
pub(crate) struct Revoke {
    /// The token: its name, how it begins, or its id
    #[arg(value_name = "TOKEN")]
    token: String,
}

pub(super) async fn run(args: &Revoke, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    // Of a whole token, only the beginning was ever stored.
    let named = match args.token.starts_with("onw_") {
        true => args.token.chars().take(STORED).collect(),
        false => args.token.clone(),
    };
    let revoked = engine.revoke_token(&caller, &named).await;
    let token = revoked.map_err(|why| {
        if let Error::Ambiguous(_) = why {
            let hint = "name it by how it begins, as `onward token list` shows it";
            Failure::usage(format!("`{named}` names more than one token"), hint)
        } else {
            Failure::from(why)
        }
    })?;
    let name = words::line(&token.name);
    cx.output
        .say(&format!("`{name}` ({}) is revoked", token.prefix));
    if cx.output.json {
        cx.output.print_json(&Token::of(&token, None))?;
    }
    Ok(Exit::Done)
}
