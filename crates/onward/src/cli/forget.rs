//! `onward forget`: applies `[retention]` once to one tenant, and prints how much was deleted.

use clap::Args;
use onward_engine::retention::Retention;
use serde::Serialize;

use super::Context;
use super::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::format;

/// Delete data older than the `[retention]` settings
///
/// `finished_plans_days` deletes completed and failed plans, `tool_calls_days` (default: 30) the
/// request log and the results of `extract_data` for texts passed in a call, `sessions_days`
/// inactive agent sessions. Open plans are never deleted. With `--verbose` or `--json`, prints the ids
/// of the deleted plans.
#[derive(Args)]
pub(crate) struct Forget {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    plans: Vec<String>,
    tool_calls: u64,
    extractions: u64,
    sessions: u64,
    finished_plans_days: Option<u32>,
    tool_calls_days: Option<u32>,
    sessions_days: Option<u32>,
}

pub(super) async fn run(cx: &Context) -> Result {
    let retention = cx.config.retention.policy();
    let (plans_days, calls_days, sessions_days) = (
        cx.config.retention.finished_plans_days,
        cx.config.retention.tool_calls_days(),
        cx.config.retention.sessions_days,
    );
    let (mut plans, mut tool_calls, mut extractions, mut sessions) = (Vec::new(), 0, 0, 0);
    if retention == Retention::default() {
        cx.output.note(
            "nothing deleted: `[retention]` is not configured\n\
             to delete finished plans after a year, add this to `~/.config/onward/config.toml`:\n\n\
             [retention]\n\
             finished_plans_days = 365",
        );
    } else {
        let Database { engine, caller, .. } = Database::open(cx).await?;
        let deleted = engine.apply_retention(&caller.tenant, retention).await?;
        (tool_calls, sessions) = (deleted.tool_calls, deleted.sessions);
        extractions = deleted.extractions;
        plans.extend(deleted.plans.iter().map(ToString::to_string));
        let finished = u64::try_from(plans.len()).unwrap_or(u64::MAX);
        for (days, number, one, many) in [
            (plans_days, finished, "finished plan", "finished plans"),
            (
                calls_days,
                tool_calls,
                "request log entry",
                "request log entries",
            ),
            (calls_days, extractions, "extraction", "extractions"),
            (sessions_days, sessions, "session", "sessions"),
        ] {
            let Some(days) = days else { continue };
            let number = format::count(number, one, many);
            let days = format::count(days, "day", "days");
            cx.output
                .note(&format!("{number} older than {days} deleted"));
        }
    }
    if cx.output.json {
        cx.output.print_json(&Deleted {
            plans,
            tool_calls,
            extractions,
            sessions,
            finished_plans_days: plans_days,
            tool_calls_days: calls_days,
            sessions_days,
        })?;
    } else if cx.output.is_verbose() {
        let lines: String = plans.iter().map(|plan| format!("{plan}\n")).collect();
        cx.output.print(&lines)?;
    }
    Ok(Exit::Done)
}
