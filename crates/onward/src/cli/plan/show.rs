//! `onward plan show`: the state of a plan, its steps, and the commands that continue it.

use std::fmt::Write;

use clap::Args;
use onward_core::attention::Word;
use onward_core::plan::{Origin, PlanState};
use onward_core::{StepStatus, Timestamp};
use onward_engine::status::{StalledStep, Status};
use onward_engine::{Caller, Engine, StepLine};

use crate::cli::Context;
use crate::cli::database::Database;
use crate::cli::step::{drop_command, resume_command};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::status::{StepMark, word_mark};
use crate::output::table::{Cell, Table};
use crate::output::{budget, format, heading};
use crate::plan_file;
use crate::wire::plan::PlanDetails;

/// Steps printed without `--all`.
const MAX_STEPS: u32 = 100;
/// Steps per query.
const PAGE_SIZE: u32 = 1_000;

/// Show the state of a plan and its steps
#[derive(Args)]
pub(crate) struct Show {
    /// Plan: id, unique prefix of the id, or words of its name
    #[arg(value_name = "PLAN")]
    id: String,
    /// Print all steps, not only the first 100
    #[arg(long)]
    all: bool,
    /// Print the definition of the plan as a file for `onward plan create`
    #[arg(long)]
    as_file: bool,
}

pub(super) async fn run(args: &Show, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database {
        engine,
        caller,
        now,
    } = &database;
    let plan = database.find_plan(&args.id).await?;
    if args.as_file {
        let arguments = plan_file::arguments_of_plan(&engine.full_plan(caller, plan).await?);
        if cx.output.json {
            cx.output.print_json(&arguments)?;
        } else {
            cx.output.print(&plan_file::to_markdown(&arguments))?;
        }
        return Ok(Exit::Done);
    }
    let status = engine.status(caller, plan, None).await?;
    if cx.output.json {
        cx.output.print_json(&PlanDetails::new(&status))?;
        return Ok(Exit::Done);
    }
    let limit = if args.all { u32::MAX } else { MAX_STEPS };
    let steps = steps(engine, caller, &status, limit).await?;
    let mut text = head(&status, cx, *now);
    text.push('\n');
    text.push_str(&table(&steps, status.sheet.head.origin, *now).render(cx.output, "  "));
    let total = status.sheet.head.counts.last_order();
    let left = total.saturating_sub(u32::try_from(steps.len()).unwrap_or(u32::MAX));
    if left > 0 {
        let _ = writeln!(text, "  … {left} more (add `--all`)");
    }
    let id = database.short_plan(plan).await?;
    let commands = commands(&status, &id);
    if !commands.is_empty() {
        text.push('\n');
    }
    for (name, command) in commands {
        let _ = writeln!(text, "  {:<16}{command}", format!("{name}:"));
    }
    cx.output.print(&text)?;
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
    let (sheet, output) = (&status.sheet, cx.output);
    let name = format::sanitize_line(&sheet.brief.name);
    let word = status.attention.word;
    let (symbol, tone) = word_mark(word);
    let state = format!("{symbol} {}", word.label());
    let mut text = heading(output, &name, &state, Some(tone));
    let mut line = |text_line: &str| {
        for wrapped in format::wrapped(text_line, output.text_width().saturating_sub(2)) {
            let _ = writeln!(text, "  {wrapped}");
        }
    };
    let origin = &sheet.owner.origin;
    let created = output.zone().time(sheet.created_at, now);
    let facts = [
        Some(format::person(&sheet.owner.person)),
        origin.client.as_deref().map(format::sanitize_line),
        origin.directory.as_deref().map(format::sanitize_line),
        Some(format!("created {created}")),
        Some(sheet.head.id.to_string()),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    line(&facts.join(" · "));
    let question = format::sanitize_line(&sheet.brief.research_question);
    if !question.starts_with(&name) {
        line(&format::truncate(&question, 3 * output.text_width()));
    }
    let counts = &sheet.head.counts;
    let mut progress = format!(
        "{} of {} done",
        counts.completed.saturating_add(counts.skipped),
        format::count(counts.total(), "step", "steps"),
    );
    if counts.failed > 0 {
        let _ = write!(progress, ", {} failed", counts.failed);
    }
    if counts.superseded > 0 {
        let _ = write!(progress, ", {} superseded", counts.superseded);
    }
    let active = format::ago(now, sheet.acted_at);
    line(&format!("{progress}, last activity {active}"));
    if let Some(source) = &sheet.brief.forked_from {
        let plan = format::short_id(source.plan);
        line(&format!(
            "fork of plan {plan} from step {}",
            source.step_order
        ));
    }
    if !status.forks.is_empty() {
        let forks: Vec<String> = status.forks.iter().map(format::short_id).collect();
        line(&format!("forks: {}", forks.join(", ")));
    }
    if let Some(tokens) = sheet.tokens {
        line(&format!("{tokens} tokens"));
    }
    if let Some(budget) = &sheet.head.budget {
        line(&format!(
            "budget: {}",
            budget::use_text(budget, sheet.tokens, now)
        ));
    }
    for wrapped in format::wrapped(&verdict(status, cx, now), output.text_width() - 2) {
        let _ = writeln!(text, "  {}", output.paint(Some(tone), &wrapped));
    }
    text
}

/// Why the plan is in its state, and since when; empty if the state needs no explanation.
fn verdict(status: &Status, cx: &Context, now: Timestamp) -> String {
    let since = status.attention.since;
    let age = format::age(now.since(since));
    let since = cx.output.zone().time(since, now);
    match status.attention.word {
        Word::Stuck => match status.exhausted.filter(|_| status.stopped_by_budget) {
            Some(exhausted) if status.stalled.is_empty() => {
                let exhausted = budget::exhausted_text(&exhausted);
                format!("the budget is exhausted since {since} ({age}): {exhausted}")
            }
            Some(_) | None => stuck(&status.stalled, &since, &age),
        },
        Word::NeedsYou => format!("a review has been pending since {since} ({age})"),
        Word::NoAgent => format!("no agent since {since} ({age})"),
        Word::Blocked => "blocked: every pending step depends on a step that failed".to_owned(),
        Word::Working => match status.next_stall_at {
            Some(at) => {
                let left = format::age(at.since(now));
                format!("counts as stuck in {left} without an update")
            }
            None => String::new(),
        },
        Word::Failed | Word::Cancelled => match &status.sheet.head.state {
            PlanState::Failed { reason, .. } => {
                let reason = format::sanitize_line(&reason.to_string());
                format!("{} {since}: {reason}", status.attention.word.label())
            }
            PlanState::Planning
            | PlanState::Executing
            | PlanState::AwaitingReview { .. }
            | PlanState::Stalled { .. }
            | PlanState::Completed { .. } => String::new(),
        },
        Word::Done | Word::DoneWithFailures => {
            format!("{} {since}", status.attention.word.label())
        }
        Word::UnfinishedList => {
            format!("an agent's own list, unfinished; last activity {since} ({age})")
        }
        Word::NotStarted => String::new(),
    }
}

/// "steps 6 and 7: no update since 07:45 (1 h 15 min, limit 30 min)".
fn stuck(stalled: &[StalledStep], since: &str, age: &str) -> String {
    let mut orders: Vec<String> = stalled.iter().map(|step| step.order.to_string()).collect();
    let steps = match orders.pop() {
        Some(last) if orders.is_empty() => format!("step {last}"),
        Some(last) => format!("steps {} and {last}", orders.join(", ")),
        None => "the plan".to_owned(),
    };
    let limit = stalled.iter().map(|step| step.threshold).min();
    let limit = limit.map_or(String::new(), |limit| {
        format!(", limit {}", format::duration(limit))
    });
    format!("{steps}: no update since {since} ({age}{limit})")
}

fn table(steps: &[StepLine], origin: Origin, now: Timestamp) -> Table {
    let mut table = Table::new(&["", "", "", "", ""]).with_flexible(&[2, 4]);
    for line in steps {
        let mark = StepMark::new(line, origin, now);
        let title = line.title.as_deref().unwrap_or(line.step_type.as_str());
        table.row([
            Cell::toned(mark.symbol.to_string(), mark.tone),
            Cell::number(line.order),
            title.into(),
            duration(line, now).into(),
            Cell::summary(detail(line, mark.label)),
        ]);
    }
    table
}

/// How long a step took, or has taken so far; of a stuck step, the time since its last update.
fn duration(line: &StepLine, now: Timestamp) -> String {
    let Some(started) = line.started_at else {
        return String::new();
    };
    match (line.status, line.ended_at) {
        (StepStatus::InProgress, _) if line.is_stalled(now) => {
            format::age(now.since(line.timestamp().reference()))
        }
        (StepStatus::InProgress | StepStatus::AwaitingInput, _) => format::age(now.since(started)),
        (_, Some(ended)) => format::duration(ended.since(started)),
        (_, None) => String::new(),
    }
}

/// The result, the failure, or the state of a step.
fn detail(line: &StepLine, label: &str) -> String {
    let attempt = match line.attempt {
        0 | 1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    let session = line.session.as_ref();
    let session = session.map_or(String::new(), |session| {
        let id = format::sanitize_line(session.as_str());
        format!(", session {}", format::short_id(id))
    });
    let note = line.note.as_ref().and_then(|note| {
        let percent = note.percent.map(|percent| format!("{percent:.0} %"));
        let parts: Vec<String> = percent.into_iter().chain(note.text.clone()).collect();
        (!parts.is_empty()).then(|| format!(": {}", parts.join(" ")))
    });
    match line.status {
        StepStatus::Completed => line.result_summary.clone().unwrap_or_default(),
        StepStatus::Failed => match &line.failure {
            Some(reason) => format!("failed{attempt}: {reason}"),
            None => format!("failed{attempt}"),
        },
        StepStatus::InProgress => {
            format!("{label}{attempt}{session}{}", note.unwrap_or_default())
        }
        StepStatus::AwaitingInput | StepStatus::Skipped => label.to_owned(),
        StepStatus::Pending if line.attempt > 1 => format!("queued{attempt}"),
        StepStatus::Pending => String::new(),
    }
}

/// The commands that continue the plan.
fn commands(status: &Status, id: &str) -> Vec<(&'static str, String)> {
    let proceed = ("continue", resume_command(id));
    match status.attention.word {
        Word::Stuck if status.stopped_by_budget && status.stalled.is_empty() => {
            vec![("raise", format!("onward plan budget {id}"))]
        }
        Word::Stuck => {
            let name = match status.stalled.len() {
                1 => "release",
                2 => "release both",
                _ => "release all",
            };
            let steps = status.stalled.iter().take(4);
            let steps = steps.map(|step| format!(" {id}/{}", step.order));
            let command = if status.stalled.len() > 4 {
                format!("onward step release {id}")
            } else {
                format!("onward step release{}", steps.collect::<String>())
            };
            vec![(name, command), proceed]
        }
        Word::NeedsYou => vec![("decide", format!("onward review show {id}"))],
        Word::NoAgent | Word::NotStarted => vec![proceed],
        Word::UnfinishedList => vec![proceed, ("drop", drop_command(id))],
        Word::Blocked => {
            let failed = status.failed.iter();
            let failed = failed.filter(|line| line.superseded_by.is_none()).take(1);
            let step = failed.map(|line| format!("{id}/{}", line.order)).next();
            let actions = step.map(|step| {
                let retry = format!("onward step retry {step} --reason \"…\"");
                [
                    ("retry", retry),
                    ("skip", format!("onward step skip {step}")),
                ]
            });
            actions.into_iter().flatten().collect()
        }
        Word::Working | Word::Done | Word::DoneWithFailures | Word::Failed | Word::Cancelled => {
            Vec::new()
        }
    }
}
