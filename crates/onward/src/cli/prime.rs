//! `onward prime`: prints the summary of this directory's project that an agent receives at the
//! start of a session.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::{prime, project};

/// Print the state of this project for an agent: open plan, current step, pending reviews
///
/// The hooks send this summary to the agent at the start of a session and after compaction. It has
/// at most 150 words.
#[derive(Args)]
pub(crate) struct Prime {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PrimeJson {
    project: String,
    text: String,
    words: usize,
}

pub(super) async fn run(cx: &Context) -> Result {
    let directory = std::env::current_dir().map_err(|error| {
        Failure::failed(
            format!("cannot read the current directory: {error}"),
            "change to an existing directory",
        )
    })?;
    let project = project::key(&directory).display().to_string();
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let state = engine.project_state(&caller, &project).await?;
    let text = prime::text(&state, &[], true).unwrap_or_default();
    if cx.output.json {
        let words = prime::words(&text);
        cx.output.print_json(&PrimeJson {
            project,
            text,
            words,
        })?;
    } else {
        cx.output.print(&format!("{text}\n"))?;
    }
    Ok(Exit::Done)
}
