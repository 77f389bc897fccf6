//! `onward search`: search of artifacts, outputs and step results, best match first.

use std::fmt::Write;
use std::time::Instant;

use clap::Args;
use onward_core::Timestamp;
use onward_engine::Source;
use onward_engine::search::{KINDS, SearchRequest, SearchResult};

use super::Context;
use super::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::format;
use crate::wire::search::Results;

/// Search artifacts, outputs and step results, best match first
///
/// The query is a list of words in any order. Texts with all words rank first. There is no query
/// syntax: quotes and punctuation are ignored.
#[derive(Args)]
pub(super) struct Search {
    /// Words to search for
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=50))]
    limit: u32,
    /// Only results of this plan
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
    /// Only artifacts of this type, or the results of steps
    #[arg(long = "type", value_name = "TYPE", value_parser = clap::builder::PossibleValuesParser::new(KINDS))]
    kind: Option<String>,
    /// Only results stored at this time or later, for example `2026-07-28T09:00:00Z`
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
    /// Only results stored before this time
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
}

pub(super) async fn run(args: &Search, cx: &Context) -> Result {
    let (after, before) = (
        parse_time("--after", args.after.as_deref())?,
        parse_time("--before", args.before.as_deref())?,
    );
    let database = Database::open(cx).await?;
    let Database {
        engine,
        caller,
        now,
    } = &database;
    let plan = match &args.plan {
        Some(plan) => Some(database.find_plan(plan).await?),
        None => None,
    };
    let started = Instant::now();
    let wanted = SearchRequest {
        query: args.query.join(" "),
        limit: Some(args.limit),
        plan,
        kind: args.kind.clone(),
        created_after: after,
        created_before: before,
    };
    let searched = engine.search(caller, wanted).await?;
    let is_empty = searched.results.is_empty();
    if cx.output.json {
        cx.output
            .print_json(&Results::new(searched, started.elapsed()))?;
    } else {
        let entries: Vec<String> = searched
            .results
            .iter()
            .map(|found| entry(found, *now))
            .collect();
        cx.output.print(&entries.join("\n"))?;
    }
    if is_empty {
        cx.output.note("no results");
    }
    Ok(Exit::Done)
}

fn parse_time(option: &str, text: Option<&str>) -> Result<Option<Timestamp>> {
    let at = text.map(str::parse).transpose();
    at.map_err(|_| {
        Failure::usage(
            format!("`{option}` is not a valid time"),
            "use the format `2026-07-28T09:00:00Z`",
        )
    })
}

fn entry(found: &SearchResult, now: Timestamp) -> String {
    let hit = &found.hit;
    let (kind, id) = match hit.source {
        Source::Artifact(id) => (hit.kind.as_deref().unwrap_or_default(), id.to_string()),
        Source::Output(id) => ("output", id.to_string()),
        Source::Result(step) => ("result of step", format::short_id(step)),
    };
    let stored = format::ago(now, hit.created_at);
    let mut text = String::new();
    // Writing to a `String` does not fail.
    let _ = writeln!(text, "{}", format::sanitize_line(&hit.title));
    let plan = hit.plan.map_or(String::new(), |plan| {
        let name = found.plan_name.as_deref().map(format::quoted_name);
        let name = name.map_or_else(String::new, |name| format!(" {name}"));
        format!(", plan {}{name}", format::short_id(plan))
    });
    let _ = writeln!(text, "  {kind} {id}{plan}, stored {stored}");
    if let Some(url) = &hit.source_url {
        let _ = writeln!(text, "  {}", format::sanitize_line(url));
    }
    let _ = writeln!(text, "  {}", format::sanitize_line(&found.snippet));
    text
}
