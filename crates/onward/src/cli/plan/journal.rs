//! `onward plan journal`: the steps that agents completed in a project, by day.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::journal::{Day, PlanDay, days};
use crate::output::{Tone, format};
use crate::project;

/// Show what the agents did in a project, by day
///
/// Lists the completed steps of all plans of the project, including the agents' own task lists.
#[derive(Args)]
pub(crate) struct Journal {
    /// A directory of the project; default: the current directory
    #[arg(value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Maximum number of steps
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JournalJson {
    project: String,
    days: Vec<DayJson>,
    /// Whether there are earlier steps.
    truncated: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DayJson {
    date: String,
    plans: Vec<PlanJson>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanJson {
    plan_id: String,
    name: String,
    done: u32,
    total_steps: u32,
    completed: Vec<StepJson>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StepJson {
    step_order: u32,
    title: String,
    completed_at: String,
}

pub(super) async fn run(args: &Journal, cx: &Context) -> Result {
    let directory = match &args.directory {
        Some(directory) => std::path::absolute(directory),
        None => std::env::current_dir(),
    };
    let directory = directory.map_err(|error| {
        Failure::failed(
            format!("cannot read the current directory: {error}"),
            "change to an existing directory",
        )
    })?;
    let project = project::key(&directory).display().to_string();
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let page = engine.journal(caller, &project, None, args.limit).await?;
    let zone = cx.output.zone();
    let days = days(&page.entries, zone);
    if cx.output.json {
        cx.output.print_json(&JournalJson {
            project,
            days: days.iter().map(DayJson::new).collect(),
            truncated: page.next.is_some(),
        })?;
        return Ok(Exit::Done);
    }
    if days.is_empty() {
        let project = format::sanitize_line(&project);
        cx.output
            .note(&format!("no completed steps in the project `{project}`"));
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for day in &days {
        if !text.is_empty() {
            text.push('\n');
        }
        let title = cx.output.paint(Some(Tone::Heading), &zone.day(day.at));
        let _ = writeln!(text, "{title}");
        for plan in &day.plans {
            let id = database.short_plan(plan.plan).await?;
            let id = cx.output.paint(Some(Tone::Faint), &id);
            let PlanDay { done, total, .. } = plan;
            let name = format::truncate(&plan.name, format::MAX_SUMMARY);
            let _ = writeln!(text, " {id}  {name} ({done}/{total})");
            for step in &plan.steps {
                let mark = cx.output.paint(Some(Tone::Good), "✓");
                let title = format::truncate(&step.title, format::MAX_SUMMARY);
                let _ = writeln!(text, "       {mark} {title}");
            }
        }
    }
    cx.output.print(&text)?;
    if page.next.is_some() {
        let limit = args.limit.saturating_mul(5);
        cx.output.note(&format!(
            "showing the last {} steps (use `--limit {limit}` for more)",
            args.limit
        ));
    }
    Ok(Exit::Done)
}

impl DayJson {
    fn new(day: &Day) -> Self {
        let plan = |plan: &PlanDay| PlanJson {
            plan_id: plan.plan.to_string(),
            name: plan.name.clone(),
            done: plan.done,
            total_steps: plan.total,
            completed: (plan.steps.iter())
                .map(|step| StepJson {
                    step_order: step.order,
                    title: step.title.clone(),
                    completed_at: step.at.to_string(),
                })
                .collect(),
        };
        Self {
            date: day.date.clone(),
            plans: day.plans.iter().map(plan).collect(),
        }
    }
}
