//! `onward restore`: replaces the SQLite database with a backup.

use std::path::PathBuf;

use clap::Args;
use onward_core::Code;
use onward_engine::environment::Environment as _;
use onward_engine::machine::SystemEnvironment;
use onward_engine::{Address, Error, restore, store};
use serde::Serialize;

use super::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::confirm;

/// Replace the SQLite database with a backup, and keep the previous database
///
/// The backup is checked first. The previous database is kept next to the restored one as
/// `NAME.before-restore-TIME`. Running processes of Onward continue with the restored database.
#[derive(Args)]
pub(crate) struct Restore {
    /// Path of the backup, made with `onward backup`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Restore without confirmation
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Restored {
    file: String,
    /// The previous database.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
}

pub(super) async fn run(args: &Restore, cx: &Context) -> Result {
    let address = &cx.config.database;
    let backup = args.file.display();
    let Address::File(database) = address else {
        return Err(rejected(
            format!("`{address}` is a PostgreSQL database; `onward restore` replaces SQLite only"),
            "restore it with `pg_restore --clean --if-exists --dbname=URL FILE`",
        ));
    };
    if !args.file.is_file() {
        return Err(Failure::new(
            Exit::NotFound,
            Code::InvalidInput,
            format!("no backup at `{backup}`"),
            "make a backup with `onward backup FILE`",
        ));
    }
    if !args.yes && database.exists() {
        match confirm(&format!("replace `{address}` with `{backup}`?")) {
            Some(true) => {}
            Some(false) => {
                cx.output.note("nothing restored");
                return Ok(Exit::Failed);
            }
            None => {
                return Err(Failure::usage(
                    format!("cannot ask for confirmation to replace `{address}`: not a terminal"),
                    "confirm with `--yes`; the previous database is kept",
                ));
            }
        }
    }
    let restored = restore(address, args.file.clone(), stamp());
    let previous = restored
        .await
        .map_err(|error| restore_failure(Error::Store(error)))?;
    let previous = previous.map(|path| path.display().to_string());
    cx.output.note(&format!("restored {address} from {backup}"));
    if let Some(previous) = &previous {
        cx.output
            .note(&format!("the previous database is {previous}"));
    }
    if cx.output.json {
        cx.output.print_json(&Restored {
            file: address.to_string(),
            previous,
        })?;
    }
    Ok(Exit::Done)
}

/// The current time in UTC, for a file name.
fn stamp() -> String {
    let now = SystemEnvironment.now().to_string();
    now.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn rejected(message: String, hint: &str) -> Failure {
    Failure::new(Exit::Rejected, Code::Conflict, message, hint)
}

fn restore_failure(error: Error) -> Failure {
    if let Error::Store(store::Error::Address { address, why, .. }) = &error {
        return rejected(
            format!("cannot restore `{address}`: {why}"),
            "choose another backup; the database was not changed",
        );
    }
    Failure::from(error)
}
