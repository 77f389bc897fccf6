//! `onward backup`: a consistent copy of the SQLite database while it is in use.

use std::path::PathBuf;

use clap::Args;
use onward_core::Code;
use onward_engine::{Address, Error, store};
use serde::Serialize;

use super::Context;
use super::database::{must_exist, open};
use crate::exit::Exit;
use crate::failure::{Failure, Result};

/// Copy the SQLite database to a new file; the database may be in use
#[derive(Args)]
pub(crate) struct Backup {
    /// Path of the copy, which must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Serialize)]
struct BackupJson {
    file: String,
    bytes: u64,
}

pub(super) async fn run(args: &Backup, cx: &Context) -> Result {
    let address = &cx.config.database;
    match address {
        Address::Server(_) => {
            return Err(rejected(
                format!(
                    "`{}` is a PostgreSQL database; `onward backup` copies SQLite only",
                    address
                ),
                "use `pg_dump --format=custom --file=FILE URL`, and `pg_restore` to restore",
            ));
        }
        // `symlink_metadata` also finds a dangling link, whose target the copy would create.
        Address::File(_) if args.file.symlink_metadata().is_ok() => {
            return Err(rejected(
                format!("`{}` already exists", args.file.display()),
                "choose another path; existing files are not overwritten",
            ));
        }
        Address::File(_) => must_exist(cx)?,
    }
    let engine = open(cx).await?;
    engine
        .back_up(args.file.clone())
        .await
        .map_err(copy_failure)?;
    let bytes = std::fs::metadata(&args.file).map_or(0, |file| file.len());
    cx.output.note(&format!(
        "copied {} to {} ({} KiB)",
        address,
        args.file.display(),
        bytes.div_ceil(1024)
    ));
    if cx.output.json {
        cx.output.print_json(&BackupJson {
            file: args.file.display().to_string(),
            bytes,
        })?;
    }
    Ok(Exit::Done)
}

fn rejected(message: String, hint: &str) -> Failure {
    Failure::new(Exit::Rejected, Code::Conflict, message, hint)
}

/// An error of the copy's path, not of the database.
fn copy_failure(error: Error) -> Failure {
    let reason = if let Error::Store(store::Error::Unavailable { why, .. }) = &error {
        why.to_string()
    } else {
        error.to_string()
    };
    Failure {
        exit: Exit::Failed,
        message: format!("cannot write the copy: {reason}"),
        hint: "check that its directory exists and is writable".to_owned(),
        ..Failure::from(error)
    }
}
