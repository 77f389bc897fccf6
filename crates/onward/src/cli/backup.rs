//! `onward backup`: a copy of the SQLite file, as of one moment, while others go on writing.

use std::path::PathBuf;

use clap::Args;
use onward_core::Code;
use onward_engine::{Address, Error};
use serde::Serialize;

use super::Context;
use super::database::{must_exist, open};
use crate::config::shown;
use crate::exit::Exit;
use crate::failure::{Failure, Result};

/// Copy the SQLite database to a file that does not exist yet, while it is in use
#[derive(Args)]
pub(crate) struct Backup {
    /// Where to
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Serialize)]
struct BackedUp {
    file: String,
    bytes: u64,
}

pub(super) async fn run(args: &Backup, cx: &Context) -> Result {
    let address = &cx.config.database.value;
    match address {
        Address::Server(_) => {
            return Err(refused(
                format!(
                    "`{}` is a PostgreSQL server, which has its own tools",
                    shown(address)
                ),
                "`pg_dump --format=custom --file=FILE URL` writes a backup, `pg_restore` reads it",
            ));
        }
        // A link that leads nowhere counts: the copy would appear somewhere else.
        Address::File(_) if args.file.symlink_metadata().is_ok() => {
            return Err(refused(
                format!("there is a file `{}` already", args.file.display()),
                "choose another name; a backup overwrites nothing",
            ));
        }
        Address::File(_) => must_exist(cx)?,
    }
    let engine = open(cx).await?;
    engine
        .back_up(args.file.clone())
        .await
        .map_err(not_copied)?;
    let bytes = std::fs::metadata(&args.file).map_or(0, |file| file.len());
    cx.output.say(&format!(
        "{} is copied to {} ({} KiB)",
        shown(address),
        args.file.display(),
        bytes.div_ceil(1024)
    ));
    if cx.output.json {
        cx.output.print_json(&BackedUp {
            file: args.file.display().to_string(),
            bytes,
        })?;
    }
    Ok(Exit::Done)
}

fn refused(message: String, hint: &str) -> Failure {
    Failure::new(Exit::Refused, Code::Conflict, message, hint)
}

/// What stands in the way is the place of the copy, not the database.
fn not_copied(why: Error) -> Failure {
    let failure = Failure::from(why);
    let what = failure
        .message
        .trim_start_matches("the database is unavailable: ");
    Failure {
        exit: Exit::Failed,
        message: format!("no copy was made: {what}"),
        hint: "check that its directory is there and may be written to".to_owned(),
        ..failure
    }
}
