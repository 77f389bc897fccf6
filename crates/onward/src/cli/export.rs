//! `onward export`: a plan as one document, for another Onward or for people.

use std::path::PathBuf;

use clap::Args;

use super::Context;
use super::database::{Database, must_exist};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::markdown;
use crate::output::words;

/// Write a plan as one JSON document, which `onward import` takes in
#[derive(Args)]
pub(crate) struct Export {
    /// The plan: its id, or the beginning of it
    #[arg(value_name = "PLAN")]
    id: String,
    /// A document for people instead, in Markdown
    #[arg(long)]
    markdown: bool,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn run(args: &Export, cx: &Context) -> Result {
    if args.markdown && cx.output.json {
        return Err(Failure::usage(
            "`--markdown` and `--json` exclude each other",
            "leave one of them out",
        ));
    }
    must_exist(cx)?;
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let plan = engine.find_plan(&caller, &args.id).await?;
    let text = if args.markdown {
        markdown::plan(&engine.whole_plan(&caller, plan).await?)
    } else {
        format!(
            "{}\n",
            words::pretty_json(&engine.export(&caller, plan).await?)
        )
    };
    let Some(path) = &args.output else {
        cx.output.print(&text)?;
        return Ok(Exit::Done);
    };
    std::fs::write(path, text).map_err(|why| {
        Failure::failed(
            format!("`{}` cannot be written: {why}", path.display()),
            "check that its directory is there and may be written to",
        )
    })?;
    cx.output.say(&format!("written to {}", path.display()));
    Ok(Exit::Done)
}
