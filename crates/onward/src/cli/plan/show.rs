//! `onward plan show`: the state of a plan and its steps.

use std::fmt::Write;

use clap::Args;
use onward_core::plan::PlanState;
use onward_core::{PlanStatus, StepStatus, Timestamp};
use onward_engine::status::Status;
use onward_engine::{Caller, Engine, StepLine};

use super::{step_tone, tone};
use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::status::{STUCK, plan_label, step_label};
use crate::output::table::{Cell, Table};
use crate::output::{Tone, format};
use crate::wire::plan::PlanDetails;

/// Steps printed without `--all`.
const MAX_STEPS: u32 = 100;
/// Steps per query.
const PAGE_SIZE: u32 = 1_000;

/// Show the state of a plan and its steps
#[derive(Args)]
pub(crate) struct Show {
    /// Plan id, or a unique prefix of it
    #[arg(value_name = "PLAN")]
    id: String,
    /// Print all steps, not only the first 100
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(args: &Show, cx: &Context) -> Result {
    let Database {
        engine,
        caller,
        now,
    } = Database::open(cx).await?;
    let plan = engine.find_plan(&caller, &args.id).await?;
    let status = engine.status(&caller, plan, None).await?;
    if cx.output.json {
        cx.output.print_json(&PlanDetails::new(&status))?;
        return Ok(Exit::Done);
    }
    let limit = if args.all { u32::MAX } else { MAX_STEPS };
    let steps = steps(&engine, &caller, &status, limit).await?;
    let mut text = head(&status, cx, now);
    text.push('\n');
    text.push_str(&table(&steps, now).render(cx.output, "  "));
    let total = status.sheet.head.counts.total();
    let left = total.saturating_sub(u32::try_from(steps.len()).unwrap_or(u32::MAX));
    if left > 0 {
        let _ = writeln!(text, "  … {left} more (add `--all`)");
    }
    cx.output.print(&text)?;
    if let Some(hint) = next_command(&status) {
        cx.output.note(&hint);
    }
    Ok(Exit::Done)
}

async fn steps(
    engine: &Engine,
    caller: &Caller,
    status: &Status,
    limit: u32,
) -> Result<Vec<StepLine>> {
    let plan = status.sheet.head.id;
    let mut steps = Vec::new();
    let mut after = 0;
    loop {
        let left = limit.saturating_sub(u32::try_from(steps.len()).unwrap_or(u32::MAX));
        let page = engine
            .list_steps(caller, plan, None, after, left.min(PAGE_SIZE))
            .await?;
        steps.extend(page.steps);
        match page.next {
            Some(next) if left > PAGE_SIZE => after = next,
            Some(_) | None => return Ok(steps),
        }
    }
}

fn head(status: &Status, cx: &Context, now: Timestamp) -> String {
    let (head, brief) = (&status.sheet.head, &status.sheet.brief);
    let counts = &head.counts;
    let mut text = format!("{}\n", format::sanitize_line(&brief.name));
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    field("plan", &head.id.to_string());
    let width = cx
        .output
        .width()
        .map_or(usize::MAX, |width| width.saturating_sub(13));
    field(
        "question",
        &format::truncate(&format::sanitize_line(&brief.research_question), width),
    );
    let current = head.status();
    let mut label = cx.output.paint(tone(current), plan_label(current));
    match &head.state {
        PlanState::Stalled { marked_at } => {
            let _ = write!(label, ", detected {}", format::ago(now, *marked_at));
        }
        PlanState::Completed { ended_at } => {
            let _ = write!(label, " {}", format::ago(now, *ended_at));
        }
        PlanState::Failed { reason, ended_at } => {
            let reason = format::sanitize_line(&reason.to_string());
            let _ = write!(label, " {}: {reason}", format::ago(now, *ended_at));
        }
        PlanState::Planning | PlanState::Executing | PlanState::AwaitingReview { .. } => {}
    }
    field("status", &label);
    let mut done = format!(
        "{}%, {} of {}",
        counts.progress(),
        counts.completed.saturating_add(counts.skipped),
        format::count(counts.total(), "step", "steps"),
    );
    for (number, label) in [
        (counts.in_progress, "in progress"),
        (counts.awaiting_input, "awaiting review"),
        (counts.failed, "failed"),
    ] {
        if number > 0 {
            let _ = write!(done, ", {number} {label}");
        }
    }
    field("progress", &done);
    for stalled in &status.stalled {
        let stuck = format!(
            "step {}: no update for {} (limit {})",
            stalled.order,
            format::duration(stalled.elapsed),
            format::duration(stalled.threshold),
        );
        field("stuck", &cx.output.paint(Some(Tone::Bad), &stuck));
    }
    if let Some(at) = status.next_stall_at.filter(|_| status.stalled.is_empty()) {
        let left = format::duration(at.since(now));
        field("limit", &format!("stuck in {left} without an update"));
    }
    field("updated", &format::ago(now, status.sheet.updated_at));
    field("created", &format::timestamp(status.sheet.created_at));
    text
}

fn table(steps: &[StepLine], now: Timestamp) -> Table {
    let mut table = Table::new(&["STEP", "STATUS", "TYPE", "ATTEMPT", "UPDATED", "TITLE"]);
    for line in steps {
        let stalled = line.stalls_at.is_some_and(|at| now > at);
        let (label, tone) = if stalled && line.status == StepStatus::InProgress {
            (STUCK, Some(Tone::Bad))
        } else {
            (step_label(line.status), step_tone(line.status))
        };
        let is_pending = line.status == StepStatus::Pending;
        table.row([
            Cell::number(line.order),
            Cell::toned(label, tone),
            line.step_type.as_str().into(),
            attempt(line),
            if is_pending {
                String::new()
            } else {
                format::ago(now, line.updated_at)
            }
            .into(),
            title(line).into(),
        ]);
    }
    table
}

/// The attempt number of a step that was assigned at least once.
fn attempt(line: &StepLine) -> Cell {
    match (line.status, line.attempt) {
        (_, 0) | (StepStatus::Pending, 1) => "".into(),
        (_, attempt) => Cell::number(attempt),
    }
}

/// The title of a step, followed by its result or failure.
fn title(line: &StepLine) -> String {
    let title = line.title.as_deref();
    let outcome = match &line.failure {
        Some(reason) => Some(reason.to_string()),
        None => line.result_summary.clone(),
    };
    match (title, outcome) {
        (Some(title), Some(outcome)) => format!("{title}: {outcome}"),
        (Some(title), None) => title.to_owned(),
        (None, Some(outcome)) => outcome,
        (None, None) => String::new(),
    }
}

/// A hint with the command that continues the plan.
fn next_command(status: &Status) -> Option<String> {
    let id = format::short_id(status.sheet.head.id);
    match status.sheet.head.status() {
        PlanStatus::AwaitingReview => Some(format!(
            "read the review with `onward review list`, then decide: `onward review decide {id} approve`"
        )),
        PlanStatus::Stalled => Some(format!("resume it with `onward plan resume {id}`")),
        PlanStatus::Planning
        | PlanStatus::Executing
        | PlanStatus::Completed
        | PlanStatus::Failed => None,
    }
}
