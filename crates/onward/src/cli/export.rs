//! `onward export`: a plan as a JSON document for `onward import`, or as Markdown.
//!
//! A plan can contain private texts, so only the user may read the file, and it never replaces the
//! target of a link.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use onward_core::Code;

use super::Context;
use super::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::markdown;
use crate::output::format;
use crate::private;

/// Export a plan as JSON for `onward import`, or as Markdown
#[derive(Args)]
pub(crate) struct Export {
    /// Plan id, or a unique prefix of it
    #[arg(value_name = "PLAN")]
    id: String,
    /// Write Markdown instead of JSON
    #[arg(long)]
    markdown: bool,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn run(args: &Export, cx: &Context) -> Result {
    if args.markdown && cx.output.json {
        return Err(Failure::usage(
            "`--markdown` and `--json` cannot be combined",
            "omit one of them",
        ));
    }
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let plan = database.find_plan(&args.id).await?;
    let text = if args.markdown {
        markdown::plan(&engine.full_plan(caller, plan).await?)
    } else {
        format!(
            "{}\n",
            format::pretty_json(&engine.export(caller, plan).await?)
        )
    };
    let Some(path) = &args.output else {
        cx.output.print(&text)?;
        return Ok(Exit::Done);
    };
    if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        return Err(Failure::new(
            Exit::Rejected,
            Code::Conflict,
            format!("`{}` is not a regular file", path.display()),
            "choose another path; links and devices are not overwritten",
        ));
    }
    write_private(path, &text).map_err(|error| {
        Failure::failed(
            format!("cannot write `{}`: {error}", path.display()),
            "check that its directory exists and is writable",
        )
    })?;
    cx.output.note(&format!("written to {}", path.display()));
    Ok(Exit::Done)
}

/// Writes a new file with mode 0600 and renames it, which replaces a file or link without opening
/// it.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.onward-{}", std::process::id()));
    let mut file = private::new_file().open(&temporary)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        fs::remove_file(&temporary).ok();
    }
    written
}
