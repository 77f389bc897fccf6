//! `onward reindex`: rebuilds the search index, including embeddings if a model is configured. For
//! a damaged index, or a model that changed under the same name.

use clap::Args;
use onward_engine::embed::EmbedError;
use serde::Serialize;

use super::Context;
use super::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::format;

/// Rebuild the search index, full-text and semantic
///
/// Stored texts do not change. If `[embeddings]` is configured, the model computes all embeddings
/// again, which can take a long time. You can interrupt the command: a running server, or the next run,
/// continues.
#[derive(Args)]
pub(super) struct Reindex {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    sources: u64,
    chunks: u64,
    embedded: u64,
    refused: u64,
}

pub(super) async fn run(cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let cut = engine.reindex(&caller).await?;
    let has_model = engine.search_health(&caller).await?.model.is_some();
    if has_model {
        let waiting = format::count(cut.chunks, "chunk", "chunks");
        cx.output
            .note(&format!("computing embeddings for {waiting}"));
    }
    let round = engine.embed_pending().await.map_err(|error| match error {
        EmbedError::Engine(error) => Failure::from(error),
        EmbedError::Model(_) => Failure::failed(
            format!("the full-text index is rebuilt, the embeddings are incomplete: {error}"),
            "check `[embeddings]` with `onward config`; `onward serve`, `onward mcp` or the next run \
             of this command computes the rest",
        ),
    })?;
    if cx.output.json {
        cx.output.print_json(&Report {
            sources: cut.sources,
            chunks: cut.chunks,
            embedded: round.embedded,
            refused: round.rejected,
        })?;
        return Ok(Exit::Done);
    }
    let chunks = format::count(cut.chunks, "chunk", "chunks");
    let sources = format::count(cut.sources, "text", "texts");
    let mut text = format!("{sources} indexed in {chunks}");
    if has_model {
        text.push_str(&format!("; {} embedded", round.embedded));
    }
    if round.rejected > 0 {
        text.push_str(&format!(", {} rejected by the model", round.rejected));
    }
    cx.output.print(&format!("{text}\n"))?;
    Ok(Exit::Done)
}
