//! `onward search QUERY`: what was stored, by words, the best first.

use std::fmt::Write;
use std::time::Instant;

use clap::Args;
use onward_core::Timestamp;
use onward_engine::search::{Found, Wanted};
use onward_engine::{Artifact, Source};

use super::Context;
use super::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::words;
use crate::wire::search::Results;

/// Search what agents found and plans delivered, the best first
///
/// A query is words, in any order; what holds all of them comes first. There is no syntax: quotes
/// and signs are passed over.
#[derive(Args)]
pub(super) struct Search {
    /// Words
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=50))]
    limit: u32,
    /// Only what belongs to this plan
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
    /// Only artifacts of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = clap::builder::PossibleValuesParser::new(Artifact::KINDS))]
    kind: Option<String>,
    /// Only what was stored at this instant or later, like `2026-07-28T09:00:00Z`
    #[arg(long, value_name = "INSTANT")]
    after: Option<String>,
    /// Only what was stored before this instant
    #[arg(long, value_name = "INSTANT")]
    before: Option<String>,
}

pub(super) async fn run(args: &Search, cx: &Context) -> Result {
    let (after, before) = (
        instant("--after", args.after.as_deref())?,
        instant("--before", args.before.as_deref())?,
    );
    let Database {
        engine,
        caller,
        now,
    } = Database::open(cx).await?;
    let plan = match &args.plan {
        Some(plan) => Some(engine.find_plan(&caller, plan).await?),
        None => None,
    };
    let began = Instant::now();
    let wanted = Wanted {
        query: args.query.join(" "),
        limit: Some(args.limit),
        plan,
        kind: args.kind.clone(),
        created_after: after,
        created_before: before,
    };
    let searched = engine.search(&caller, wanted).await?;
    let is_empty = searched.found.is_empty();
    if cx.output.json {
        cx.output
            .print_json(&Results::of(searched, began.elapsed()))?;
    } else {
        let shown: Vec<String> = searched
            .found
            .iter()
            .map(|found| entry(found, now))
            .collect();
        cx.output.print(&shown.join("\n"))?;
    }
    if is_empty {
        cx.output.say("nothing that is stored holds these words");
    }
    Ok(Exit::Done)
}

fn instant(option: &str, text: Option<&str>) -> Result<Option<Timestamp>> {
    let at = text.map(str::parse).transpose();
    at.map_err(|_| {
        Failure::usage(
            format!("`{option}` is no instant"),
            "write it like `2026-07-28T09:00:00Z`",
        )
    })
}

fn entry(found: &Found, now: Timestamp) -> String {
    let hit = &found.hit;
    let (what, id) = match hit.source {
        Source::Artifact(id) => (hit.kind.as_deref().unwrap_or_default(), id.to_string()),
        Source::Output(id) => ("output", id.to_string()),
    };
    let stored = words::ago(now, hit.created_at);
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = writeln!(text, "{}", words::line(&hit.title));
    let of = hit.plan.map_or(String::new(), |plan| {
        format!(", plan {}", words::short(plan))
    });
    let _ = writeln!(text, "  {what} {id}{of}, stored {stored}");
    if let Some(url) = &hit.source_url {
        let _ = writeln!(text, "  {}", words::line(url));
    }
    let _ = writeln!(text, "  {}", words::line(&found.snippet));
    text
}
