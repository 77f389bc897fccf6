//! `onward token list`: the tokens, the oldest first, each by how it begins.

use clap::Args;
use onward_core::Timestamp;
use onward_engine::Token as Stored;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::{Cell, Table};
use crate::output::{Tone, words};
use crate::wire::token::Token;

/// Show the tokens, the oldest first, each by how it begins
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
        let tokens = tokens.iter().map(|token| Token::of(token, None)).collect();
        cx.output.print_json(&Tokens { tokens })?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["TOKEN", "ROLE", "VALID", "LAST USED", "CREATED", "NAME"]);
    for token in &tokens {
        let used = token
            .last_used_at
            .map_or("never".to_owned(), |at| words::ago(now, at));
        table.row([
            (&token.prefix).into(),
            token.role.as_str().into(),
            valid(token, now),
            used.into(),
            words::ago(now, token.created_at).into(),
            (&token.name).into(),
        ]);
    }
    if table.is_empty() {
        cx.output
            .say("no tokens yet; `onward token create` makes one");
    } else {
        cx.output.print(&table.render(cx.output, ""))?;
    }
    Ok(Exit::Done)
}

fn valid(token: &Stored, now: Timestamp) -> Cell {
    match (token.revoked_at, token.expires_at) {
        (Some(_), _) => Cell::toned("revoked", Some(Tone::Bad)),
        (None, Some(at)) if at <= now => Cell::toned("expired", Some(Tone::Bad)),
        (None, Some(at)) => format!("until {}", words::day(at)).into(),
        (None, None) => "for ever".into(),
    }
}
