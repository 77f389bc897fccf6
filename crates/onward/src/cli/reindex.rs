//! `onward reindex`: what is searched, cut into chunks anew, and asked about anew where a model is
//! configured. For an index that was lost, or a model that answers otherwise under the same name.

use clap::Args;
use onward_engine::embed::EmbedError;
use serde::Serialize;

use super::Context;
use super::database::{Database, must_exist};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::words;

/// Build the index of what is stored anew, words and meaning
///
/// Nothing that is stored changes. What it means is asked of the model of `[embeddings]`, where one is
/// configured; that takes as long as the model takes, and can be interrupted: a running server, or this
/// command, goes on with the rest.
#[derive(Args)]
pub(super) struct Reindex {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    sources: u64,
    chunks: u64,
    embedded: u64,
    refused: u64,
}

pub(super) async fn run(cx: &Context) -> Result {
    must_exist(cx)?;
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let cut = engine.reindex(&caller).await?;
    let has_model = engine.search_health(&caller).await?.model.is_some();
    if has_model {
        let waiting = words::count(cut.chunks, "chunk", "chunks");
        cx.output
            .say(&format!("the model is asked about {waiting}"));
    }
    let round = engine.embed_waiting().await.map_err(|why| match why {
        EmbedError::Engine(why) => Failure::from(why),
        EmbedError::Model(_) => Failure::failed(
            format!("the words are indexed, what they mean is not: {why}"),
            "check `[embeddings]`: `onward config` shows what holds; what is left is done by \
             `onward serve`, `onward mcp`, or this command",
        ),
    })?;
    if cx.output.json {
        cx.output.print_json(&Answer {
            sources: cut.sources,
            chunks: cut.chunks,
            embedded: round.embedded,
            refused: round.refused,
        })?;
        return Ok(Exit::Done);
    }
    let chunks = words::count(cut.chunks, "chunk", "chunks");
    let sources = words::count(cut.sources, "text", "texts");
    let mut told = format!("{sources} indexed, in {chunks}");
    if has_model {
        told.push_str(&format!("; {} embedded", round.embedded));
    }
    if round.refused > 0 {
        told.push_str(&format!(", {} refused by the model", round.refused));
    }
    cx.output.print(&format!("{told}\n"))?;
    Ok(Exit::Done)
}
