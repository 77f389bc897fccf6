//! `onward migrate`: brings the schema up to date, or says what that would be.
//!
//! Every other command that opens the database does the same at its start; this one is for whoever
//! wants to know, or to do it at a time of their choice.

use clap::Args;
use onward_engine::{Error, schema, store};
use serde::Serialize;

use super::Context;
use super::database::open;
use crate::config::shown;
use crate::exit::Exit;
use crate::failure::Result;

/// Bring the database's schema up to date
#[derive(Args)]
pub(crate) struct Migrate {
    /// Only say what would be done; exit code 10 where there is something
    #[arg(long)]
    check: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Schema {
    database: String,
    found: i64,
    known: i64,
    up_to_date: bool,
}

pub(super) async fn run(args: &Migrate, cx: &Context) -> Result {
    let address = &cx.config.database.value;
    let (before, known) = schema(address).await.map_err(Error::Store)?;
    if before > known {
        let found = before;
        return Err(Error::Store(store::Error::Newer { found, known }).into());
    }
    let mut found = before;
    if !args.check {
        open(cx).await?;
        found = schema(address).await.map_err(Error::Store)?.0;
    }
    let text = match (args.check, before == known) {
        (_, true) => format!("up to date: schema version {known}"),
        (true, false) if before == 0 => format!("the schema would be made, version {known}"),
        (true, false) => format!("would go from schema version {before} to {known}"),
        (false, false) if before == 0 => format!("the schema is made, version {known}"),
        (false, false) => format!("went from schema version {before} to {known}"),
    };
    if cx.output.json {
        cx.output.print_json(&Schema {
            database: shown(address),
            found,
            known,
            up_to_date: found == known,
        })?;
    } else if args.check {
        cx.output.print(&format!("{text}\n"))?;
    } else {
        cx.output.say(&text);
    }
    Ok(if found == known {
        Exit::Done
    } else {
        Exit::Found
    })
}
