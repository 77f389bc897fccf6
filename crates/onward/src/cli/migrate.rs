//! `onward migrate`: migrates the schema, or reports the pending migration; with `--distribute`, also
//! distributes the tables over the nodes of a Citus cluster.
//!
//! Every other command that opens the database migrates it, too; this one lets the operator check
//! first or choose the time. It also checkpoints the log; hooks start it for that.

use clap::Args;
use onward_engine::{Error, distribute, schema, store};
use serde::Serialize;

use super::Context;
use super::database::open;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::format;

/// Migrate the database to the current schema version
#[derive(Args)]
pub(crate) struct Migrate {
    /// Only print the pending migration; exit with 10 if there is one
    #[arg(long)]
    check: bool,
    /// Then distribute the tables by tenant over the nodes of a Citus cluster; stop all servers first
    #[arg(long, conflicts_with = "check")]
    distribute: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Schema {
    database: String,
    found: i64,
    known: i64,
    up_to_date: bool,
    /// Number of tables that were distributed, with `--distribute`.
    #[serde(skip_serializing_if = "Option::is_none")]
    distributed: Option<u64>,
}

pub(super) async fn run(args: &Migrate, cx: &Context) -> Result {
    let address = &cx.config.database;
    let (before, known) = schema(address).await.map_err(Error::Store)?;
    if before > known {
        let found = before;
        return Err(Error::Store(store::Error::Newer { found, known }).into());
    }
    let mut found = before;
    if !args.check {
        if let Err(error) = open(cx).await?.checkpoint() {
            cx.output
                .warn(&format!("the log was not checkpointed: {error}"));
        }
        found = schema(address).await.map_err(Error::Store)?.0;
    }
    let distributed = if args.distribute {
        Some(distribute(address).await.map_err(Error::Store)?)
    } else {
        None
    };
    let text = match (args.check, before == known) {
        (_, true) => format!("up to date: schema version {known}"),
        (true, false) if before == 0 => format!("would create the schema, version {known}"),
        (true, false) => format!("would migrate from schema version {before} to {known}"),
        (false, false) if before == 0 => format!("schema created, version {known}"),
        (false, false) => format!("migrated from schema version {before} to {known}"),
    };
    if cx.output.json {
        cx.output.print_json(&Schema {
            database: address.to_string(),
            found,
            known,
            up_to_date: found == known,
            distributed,
        })?;
    } else if args.check {
        cx.output.print(&format!("{text}\n"))?;
    } else {
        cx.output.note(&text);
        match distributed {
            Some(0) => cx.output.note("all tables are already distributed"),
            Some(tables) => {
                let tables = format::count(tables, "table", "tables");
                cx.output.note(&format!("distributed {tables} by tenant"));
            }
            None => {}
        }
    }
    Ok(if found == known {
        Exit::Done
    } else {
        Exit::ProblemsFound
    })
}
