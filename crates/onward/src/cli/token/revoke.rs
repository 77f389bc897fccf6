//! `onward token revoke`: revokes a token. It stays in the list.

use clap::Args;
use onward_engine::Error;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::format;
use crate::wire::token::Token;

/// The length of the prefix that is stored of a token.
const PREFIX_LENGTH: usize = 12;

/// Revoke a token, effective immediately
#[derive(Args)]
pub(crate) struct Revoke {
    /// Name, prefix or id of the token
    #[arg(value_name = "TOKEN")]
    token: String,
}

pub(super) async fn run(args: &Revoke, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    // Only the prefix of a token is stored.
    let identifier = if args.token.starts_with("onw_") {
        args.token.chars().take(PREFIX_LENGTH).collect()
    } else {
        args.token.clone()
    };
    let revoked = engine.revoke_token(&caller, &identifier).await;
    let token = revoked.map_err(|error| {
        if let Error::Ambiguous { .. } = error {
            let hint = "use the prefix of the token from `onward token list`";
            Failure::usage(format!("`{identifier}` matches several tokens"), hint)
        } else {
            Failure::from(error)
        }
    })?;
    let name = format::sanitize_line(&token.name);
    cx.output
        .note(&format!("token `{name}` ({}) revoked", token.prefix));
    if cx.output.json {
        cx.output.print_json(&Token::new(&token, None))?;
    }
    Ok(Exit::Done)
}
