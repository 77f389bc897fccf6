//! `onward plan resume`: snooze a plan that is marked as stuck.

use clap::Args;
use onward_core::policy::stall_threshold;
use onward_core::{Code, PlanId, StepStatus};
use onward_engine::StepLine;
use onward_engine::status::Status;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::format;
use crate::wire::plan::ChangedPlan;

/// Steps in progress that are read.
const MAX_STEPS: u32 = 50;

/// Snooze a stuck plan until its limit has passed again
///
/// Changes only the status of the plan. A stuck step stays assigned to its agent; return it to
/// the queue with `onward step release`.
#[derive(Args)]
pub(crate) struct Resume {
    /// Plan: id, unique prefix of the id, or words of its name
    #[arg(value_name = "PLAN")]
    id: String,
}

pub(super) async fn run(args: &Resume, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let plan = database.find_plan(&args.id).await?;
    let before = engine.status(caller, plan, None).await?;
    let stuck = stuck_steps(&database, plan).await?;
    let short = database.short_plan(plan).await?;
    let status = match engine.resume_plan(caller, plan).await {
        Ok(status) => status,
        Err(error) => return Err(with_stuck_steps(error.into(), &stuck, &short)),
    };
    let name = before.sheet.brief.name.clone();
    cx.output.note(&describe(&before, &stuck, &short));
    if cx.output.json {
        cx.output
            .print_json(&ChangedPlan::new(plan, name, status))?;
    }
    Ok(Exit::Done)
}

async fn stuck_steps(database: &Database, plan: PlanId) -> Result<Vec<StepLine>> {
    let Database {
        engine,
        caller,
        now,
    } = database;
    let in_progress = Some(StepStatus::InProgress);
    let page = engine.list_steps(caller, plan, in_progress, 0, MAX_STEPS);
    let mut steps = page.await?.steps;
    steps.retain(|line| line.is_stalled(*now));
    Ok(steps)
}

/// The command that releases these steps.
fn release_command(stuck: &[StepLine], plan: &str) -> String {
    let steps = stuck.iter().map(|line| format!(" {plan}/{}", line.order));
    format!("onward step release{}", steps.collect::<String>())
}

/// A plan that is not marked may have stuck steps; the hint then releases them.
fn with_stuck_steps(mut failure: Failure, stuck: &[StepLine], plan: &str) -> Failure {
    if failure.code == Code::IllegalTransition && !stuck.is_empty() {
        failure.message = format!(
            "the plan is already snoozed or not marked as stuck yet; {}",
            steps_are(stuck, "stuck")
        );
        failure.hint = release_command(stuck, plan);
    }
    failure
}

fn describe(before: &Status, stuck: &[StepLine], plan: &str) -> String {
    let head = &before.sheet.head;
    let own = stuck.iter().filter_map(|line| line.stall_threshold).min();
    let limit = format::duration(stall_threshold(None, own, head.stall_threshold));
    let since = before.stalled.iter().map(|stalled| stalled.elapsed).max();
    let mut text = format!("snoozed for {limit}");
    if !stuck.is_empty() {
        let since = since.map_or(String::new(), |since| {
            format!(" (no update for {})", format::age(since))
        });
        let assigned = steps_are(stuck, "still assigned");
        text.push_str(&format!(
            "; {assigned}{since}\nrelease: {}",
            release_command(stuck, plan)
        ));
    }
    text
}

/// "step 4 is stuck", "steps 6 and 7 are stuck".
fn steps_are(lines: &[StepLine], state: &str) -> String {
    let mut orders: Vec<String> = lines.iter().map(|line| line.order.to_string()).collect();
    match orders.pop() {
        None => format!("no step is {state}"),
        Some(last) if orders.is_empty() => format!("step {last} is {state}"),
        Some(last) => format!("steps {} and {last} are {state}", orders.join(", ")),
    }
}
