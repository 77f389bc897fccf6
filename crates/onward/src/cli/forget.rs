//! `onward forget`: applies `[retention]` once, now, to one tenant, and says what it did.

use clap::Args;
use onward_engine::retention::Retention;
use serde::Serialize;

use super::Context;
use super::database::{Database, must_exist};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::words;

/// Delete what is older than `[retention]` in the configuration says
///
/// Nothing is deleted unless the configuration asks for it: `finished_plans_days` for plans that are
/// over, `tool_calls_days` for the log of tool calls with what `extract_data` took out of texts that came
/// with one, `sessions_days` for agents' sessions that have been silent. A plan that is not over is never
/// touched.
#[derive(Args)]
pub(crate) struct Forget {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Forgotten {
    plans: Vec<String>,
    tool_calls: u64,
    extractions: u64,
    sessions: u64,
    finished_plans_days: Option<u32>,
    tool_calls_days: Option<u32>,
    sessions_days: Option<u32>,
}

pub(super) async fn run(cx: &Context) -> Result {
    let retention = cx.config.retention();
    let (plans_days, calls_days, sessions_days) = (
        cx.config.finished_plans_days.value,
        cx.config.tool_calls_days.value,
        cx.config.sessions_days.value,
    );
    let (mut plans, mut tool_calls, mut extractions, mut sessions) = (Vec::new(), 0, 0, 0);
    if retention == Retention::default() {
        cx.output.say(
            "nothing is forgotten: `[retention]` is not in the configuration\n\
             to forget finished plans after a year, put this into `onward.toml`:\n\n\
             [retention]\n\
             finished_plans_days = 365",
        );
    } else {
        must_exist(cx)?;
        let Database { engine, caller, .. } = Database::open(cx).await?;
        let forgotten = engine.forget(&caller.tenant, retention).await?;
        (tool_calls, sessions) = (forgotten.tool_calls, forgotten.sessions);
        extractions = forgotten.extractions;
        plans.extend(forgotten.plans.iter().map(ToString::to_string));
        let finished = u64::try_from(plans.len()).unwrap_or(u64::MAX);
        for (days, number, one, many) in [
            (plans_days, finished, "finished plan", "finished plans"),
            (calls_days, tool_calls, "tool call", "tool calls"),
            (calls_days, extractions, "extraction", "extractions"),
            (sessions_days, sessions, "session", "sessions"),
        ] {
            let Some(days) = days else { continue };
            let number = words::count(number, one, many);
            let days = words::count(days, "day", "days");
            cx.output
                .say(&format!("{number} older than {days} deleted"));
        }
    }
    if cx.output.json {
        cx.output.print_json(&Forgotten {
            plans,
            tool_calls,
            extractions,
            sessions,
            finished_plans_days: plans_days,
            tool_calls_days: calls_days,
            sessions_days,
        })?;
    } else {
        let lines: String = plans.iter().map(|plan| format!("{plan}\n")).collect();
        cx.output.print(&lines)?;
    }
    Ok(Exit::Done)
}
