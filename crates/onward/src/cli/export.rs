//! `onward export`: a plan as a JSON document for `onward import`, or as Markdown.

use std::path::PathBuf;

use clap::Args;

use super::Context;
use super::database::{Database, must_exist};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::markdown;
use crate::output::format;

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
    must_exist(cx)?;
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let plan = engine.find_plan(&caller, &args.id).await?;
    let text = if args.markdown {
        markdown::plan(&engine.full_plan(&caller, plan).await?)
    } else {
        format!(
            "{}\n",
            format::pretty_json(&engine.export(&caller, plan).await?)
        )
    };
    let Some(path) = &args.output else {
        cx.output.print(&text)?;
        return Ok(Exit::Done);
    };
    std::fs::write(path, text).map_err(|error| {
        Failure::failed(
            format!("cannot write `{}`: {error}", path.display()),
            "check that its directory exists and is writable",
        )
    })?;
    cx.output.note(&format!("written to {}", path.display()));
    Ok(Exit::Done)
}
