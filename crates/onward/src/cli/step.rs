//! `onward step`: inspect and repair single steps; one file per subcommand.

pub(crate) mod edit;
mod fail;
mod proceed;
mod release;
mod retry;
mod show;
mod skip;

use clap::Subcommand;
use onward_core::command::{Modification, ModifyPlan};
use onward_core::{Code, PlanId, StepId};
use onward_engine::Sheet;
use onward_engine::next_step::NextStep;
use onward_engine::peek::Peek;
use serde::Serialize;

use super::Context;
use super::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{budget, format};
use crate::wire::modified::ModifiedPlan;

#[derive(Subcommand)]
pub(crate) enum Command {
    Show(show::Show),
    Edit(edit::Edit),
    Release(release::Release),
    Fail(fail::Fail),
    Retry(retry::Retry),
    Skip(skip::Skip),
    Continue(proceed::Continue),
}

pub(super) async fn run(command: &Command, cx: &Context) -> Result {
    match command {
        Command::Show(args) => show::run(args, cx).await,
        Command::Edit(args) => edit::run(args, cx).await,
        Command::Release(args) => release::run(args, cx).await,
        Command::Fail(args) => fail::run(args, cx).await,
        Command::Retry(args) => retry::run(args, cx).await,
        Command::Skip(args) => skip::run(args, cx).await,
        Command::Continue(args) => proceed::run(args, cx).await,
    }
}

/// The JSON of a command that changes steps: one entry per step.
#[derive(Serialize)]
struct Changes {
    changes: Vec<ModifiedPlan>,
}

/// A step and its plan.
struct Target {
    plan: Sheet,
    step: StepId,
    order: u32,
}

impl Target {
    /// The steps with these names.
    async fn read_all(database: &Database, names: &[String]) -> Result<Vec<Self>> {
        let mut targets = Vec::new();
        for name in names {
            let step = database.find_step(name).await?;
            targets.push(Self::read(database, step).await?);
        }
        Ok(targets)
    }

    async fn read(database: &Database, step: StepId) -> Result<Self> {
        let (plan, found) = database.engine.step(&database.caller, step).await?;
        Ok(Self {
            plan,
            step,
            order: found.order,
        })
    }

    fn name(&self) -> String {
        format::sanitize_line(&self.plan.brief.name)
    }
}

/// Applies a change to each step, in order, and reports each one. The first error ends the command.
/// A user's change also resumes a stalled plan.
async fn modify(
    database: &Database,
    cx: &Context,
    targets: &[Target],
    action: &'static str,
    change: impl Fn(StepId) -> Modification,
    describe: impl Fn(&Target) -> String,
) -> Result {
    let Database { engine, caller, .. } = database;
    let mut changes = Vec::new();
    for target in targets {
        let command = ModifyPlan {
            resume: true,
            ..ModifyPlan::new(change(target.step))
        };
        let plan = target.plan.head.id;
        let modified = match engine.modify_plan(caller, plan, command).await {
            Ok(modified) => modified,
            Err(error) => return Err(with_step(error.into(), target)),
        };
        cx.output.note(&describe(target));
        changes.push(ModifiedPlan::new(action, &modified));
    }
    let mut plans: Vec<PlanId> = targets.iter().map(|target| target.plan.head.id).collect();
    plans.dedup();
    for plan in plans {
        cx.output.note(&outlook(database, plan).await?);
    }
    if cx.output.json {
        cx.output.print_json(&Changes { changes })?;
    }
    Ok(Exit::Done)
}

/// A rejection, with the command that shows the step.
fn with_step(mut failure: Failure, target: &Target) -> Failure {
    if failure.code == Code::IllegalTransition {
        let plan = format::short_id(target.plan.head.id);
        failure.hint = format!(
            "see its state with `onward step show {plan}/{}`",
            target.order
        );
    }
    failure
}

/// What happens next in a plan.
pub(super) async fn outlook(database: &Database, plan: PlanId) -> Result<String> {
    let Database { engine, caller, .. } = database;
    let sheet = engine.sheet(caller, plan).await?;
    let id = database.short_plan(plan).await?;
    let in_progress = sheet.head.counts.in_progress;
    Ok(match engine.peek(caller, plan).await? {
        Peek::Step(step) if in_progress == 0 => format!(
            "no agent is working on this plan; continue with step {}:\n  {}",
            step.order,
            resume_command(&id)
        ),
        Peek::Step(step) => format!("the plan continues with step {}", step.order),
        Peek::None(next) => match next {
            NextStep::Started(step) => format!("the plan continues with step {}", step.order),
            NextStep::Complete(_) if sheet.head.counts.failed > 0 => {
                let failed = format::count(sheet.head.counts.failed, "failure", "failures");
                format!("the plan is done with {failed}")
            }
            NextStep::Complete(_) => "the plan is done".to_owned(),
            NextStep::Failed { reason } => {
                let reason = format::sanitize_line(&reason.to_string());
                format!("the plan failed: {reason}")
            }
            NextStep::AwaitingReview { .. } => {
                format!("the plan needs a decision: onward review show {id}")
            }
            NextStep::BudgetExhausted { exhausted, .. } => {
                let exhausted = budget::exhausted_text(&exhausted);
                format!("the budget is exhausted ({exhausted}); raise it: onward plan budget {id}")
            }
            NextStep::NoPendingSteps {
                in_progress: 0,
                blocked,
                ..
            } if blocked > 0 => {
                let blocked = format::count(blocked, "step is", "steps are");
                format!("{blocked} waiting for failed steps; skip or retry those")
            }
            NextStep::NoPendingSteps { .. } => {
                let working = format::count(in_progress, "step is", "steps are");
                format!("{working} in progress")
            }
        },
    })
}

/// The command with which an agent continues a plan.
pub(super) fn resume_command(plan: &str) -> String {
    format!("claude \"continue onward plan {plan}\"")
}

/// The command that cancels a plan that no agent continues.
pub(super) fn drop_command(plan: &str) -> String {
    format!("onward plan abandon {plan}")
}
