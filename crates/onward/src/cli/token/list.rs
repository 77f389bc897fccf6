//! `onward token list`: tokens, oldest first, identified by their prefix.

use clap::Args;
use onward_core::Timestamp;
use onward_engine::Token as Stored;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::{Cell, Table};
use crate::output::{Tone, format};
use crate::wire::token::Token;

/// List tokens, oldest first
#[derive(Args)]
pub(crate) struct List {}

#[derive(Serialize)]
struct Tokens {
    tokens: Vec<Token>,
}

pub(super) async fn run(cx: &Context) -> Result {
    let Database {
        engine,
        caller,
        now,
    } = Database::open(cx).await?;
    let tokens = engine.tokens(&caller).await?;
    if cx.output.json {
        let tokens = tokens.iter().map(|token| Token::new(token, None)).collect();
        cx.output.print_json(&Tokens { tokens })?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["TOKEN", "ROLE", "VALID", "LAST USED", "CREATED", "NAME"]);
    for token in &tokens {
        let used = token
            .last_used_at
            .map_or("never".to_owned(), |at| format::ago(now, at));
        table.row([
            (&token.prefix).into(),
            token.role.as_str().into(),
            valid(token, cx, now),
            used.into(),
            format::ago(now, token.created_at).into(),
            (&token.name).into(),
        ]);
    }
    if table.is_empty() {
        cx.output
            .note("no tokens yet; create one with `onward token create`");
    } else {
        cx.output.print(&table.render(cx.output, ""))?;
    }
    Ok(Exit::Done)
}

fn valid(token: &Stored, cx: &Context, now: Timestamp) -> Cell {
    match (token.revoked_at, token.expires_at) {
        (Some(_), _) => Cell::toned("revoked", Some(Tone::Faint)),
        (None, Some(at)) if at <= now => Cell::toned("expired", Some(Tone::Attention)),
        (None, Some(at)) => format!("until {}", cx.output.zone().date(at)).into(),
        (None, None) => "no expiry".into(),
    }
}
