//! `onward plan show`: where a plan stands, with its steps.

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
use crate::output::table::{Cell, Table};
use crate::output::{Tone, words};
use crate::wire::plan::Standing;

/// How many steps are shown of a long plan.
const SHOWN: u32 = 100;
/// How many are read at once.
const PIECE: u32 = 1_000;

/// Show where a plan stands, with its steps
#[derive(Args)]
pub(crate) struct Show {
    /// The plan: its id, or the beginning of it
    #[arg(value_name = "PLAN")]
    id: String,
    /// Every step of a long plan, not only the first 100
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
        cx.output.print_json(&Standing::of(&status))?;
        return Ok(Exit::Done);
    }
    let most = if args.all { u32::MAX } else { SHOWN };
    let steps = steps(&engine, &caller, &status, most).await?;
    let mut text = head(&status, cx, now);
    text.push('\n');
    text.push_str(&table(&steps, now).render(cx.output, "  "));
    let total = status.sheet.head.counts.total();
    let left = total.saturating_sub(u32::try_from(steps.len()).unwrap_or(u32::MAX));
    if left > 0 {
        let _ = writeln!(text, "  … and {left} more; `--all` shows them");
    }
    cx.output.print(&text)?;
    if let Some(advice) = advice(&status) {
        cx.output.say(&advice);
    }
    Ok(Exit::Done)
}

async fn steps(
    engine: &Engine,
    caller: &Caller,
    status: &Status,
    most: u32,
) -> Result<Vec<StepLine>> {
    let plan = status.sheet.head.id;
    let mut steps = Vec::new();
    let mut behind = 0;
    loop {
        let left = most.saturating_sub(u32::try_from(steps.len()).unwrap_or(u32::MAX));
        let page = engine
            .list_steps(caller, plan, None, behind, left.min(PIECE))
            .await?;
        steps.extend(page.steps);
        match page.next {
            Some(next) if left > PIECE => behind = next,
            Some(_) | None => return Ok(steps),
        }
    }
}

fn head(status: &Status, cx: &Context, now: Timestamp) -> String {
    let (head, brief) = (&status.sheet.head, &status.sheet.brief);
    let counts = &head.counts;
    let mut text = format!("{}\n", words::line(&brief.name));
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
        &words::cut(&words::line(&brief.research_question), width),
    );
    let standing = head.status();
    let mut word = cx.output.paint(tone(standing), standing.as_str());
    match &head.state {
        PlanState::Stalled { marked_at } => {
            let _ = write!(word, ", marked {}", words::ago(now, *marked_at));
        }
        PlanState::Completed { ended_at } => {
            let _ = write!(word, " {}", words::ago(now, *ended_at));
        }
        PlanState::Failed { reason, ended_at } => {
            let reason = words::line(&reason.to_string());
            let _ = write!(word, " {}: {reason}", words::ago(now, *ended_at));
        }
        PlanState::Planning | PlanState::Executing | PlanState::AwaitingReview { .. } => {}
    }
    if status.derived != standing && !standing.is_terminal() {
        let _ = write!(word, "; its steps add up to {}", status.derived);
    }
    field("status", &word);
    let mut done = format!(
        "{}%, {} of {}",
        counts.progress(),
        counts.completed.saturating_add(counts.skipped),
        words::count(counts.total(), "step", "steps"),
    );
    for (number, what) in [
        (counts.in_progress, "in progress"),
        (counts.awaiting_input, "waiting for a decision"),
        (counts.failed, "failed"),
    ] {
        if number > 0 {
            let _ = write!(done, ", {number} {what}");
        }
    }
    field("progress", &done);
    for stalled in &status.stalled {
        let what = format!(
            "step {}: no sign of life for {}, and {} are allowed",
            stalled.order,
            words::span(stalled.elapsed),
            words::span(stalled.threshold),
        );
        field("silent", &cx.output.paint(Some(Tone::Bad), &what));
    }
    if let Some(at) = status.next_stall_at.filter(|_| status.stalled.is_empty()) {
        let left = words::span(at.since(now));
        field(
            "stalls in",
            &format!("{left}, unless its agent shows a sign of life"),
        );
    }
    field("changed", &words::ago(now, status.sheet.updated_at));
    field("created", &words::instant(status.sheet.created_at));
    text
}

fn table(steps: &[StepLine], now: Timestamp) -> Table {
    let mut table = Table::new(&["STEP", "STATUS", "TYPE", "ATTEMPT", "CHANGED", "WHAT"]);
    for line in steps {
        let stalled = line.stalls_at.is_some_and(|at| now > at);
        let (word, tone) = if stalled && line.status == StepStatus::InProgress {
            (format!("{}, silent", line.status), Some(Tone::Bad))
        } else {
            (line.status.to_string(), step_tone(line.status))
        };
        let touched = line.status != StepStatus::Pending;
        table.row([
            Cell::number(line.order),
            Cell::toned(word, tone),
            line.step_type.as_str().into(),
            attempt(line),
            if touched {
                words::ago(now, line.updated_at)
            } else {
                String::new()
            }
            .into(),
            what(line).into(),
        ]);
    }
    table
}

/// Which attempt it is, where it was ever handed out.
fn attempt(line: &StepLine) -> Cell {
    match (line.status, line.attempt) {
        (_, 0) | (StepStatus::Pending, 1) => "".into(),
        (_, attempt) => Cell::number(attempt),
    }
}

/// Its name, and how it came out.
fn what(line: &StepLine) -> String {
    let title = line.title.as_deref();
    let came_out = match &line.failure {
        Some(reason) => Some(reason.to_string()),
        None => line.result_summary.clone(),
    };
    match (title, came_out) {
        (Some(title), Some(came_out)) => format!("{title}: {came_out}"),
        (Some(title), None) => title.to_owned(),
        (None, Some(came_out)) => came_out,
        (None, None) => String::new(),
    }
}

/// What a person could do about it.
fn advice(status: &Status) -> Option<String> {
    let id = words::short(status.sheet.head.id);
    match status.sheet.head.status() {
        PlanStatus::AwaitingReview => Some(format!(
            "it waits for you: `onward review list`, then `onward review decide {id} approve`"
        )),
        PlanStatus::Stalled => Some(format!("`onward plan resume {id}` goes on with it")),
        PlanStatus::Planning
        | PlanStatus::Executing
        | PlanStatus::Completed
        | PlanStatus::Failed => None,
    }
}
