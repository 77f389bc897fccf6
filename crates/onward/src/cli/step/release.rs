//! `onward step release`: return steps in progress to the queue.

use clap::Args;
use onward_core::command::Modification;
use onward_core::{Code, StepStatus};

use super::{Target, modify};
use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};

/// Steps in progress that are read of a plan.
const MAX_STEPS: u32 = 10_000;

/// Release steps: return them to the queue, for the next agent
///
/// The next request for a step starts a new attempt. Until then, the result of the previous agent is
/// accepted. After that, it is rejected and stored as an artifact.
#[derive(Args)]
pub(crate) struct Release {
    /// PLAN/ORDER (such as `5fa2/6`) or a step id; a plan selects all its stuck steps
    #[arg(value_name = "STEP", required = true)]
    steps: Vec<String>,
}

pub(super) async fn run(args: &Release, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let mut targets = Vec::new();
    for text in &args.steps {
        match database.find_step(text).await {
            Ok(step) => targets.push(Target::read(&database, step).await?),
            Err(failure) if failure.code == Code::StepNotFound && !text.contains('/') => {
                targets.extend(stuck_steps(&database, text, failure).await?);
            }
            Err(failure) => return Err(failure),
        }
    }
    let change = |step| Modification::RequeueStep { step };
    let describe = |target: &Target| {
        format!(
            "step {} of `{}` is back in the queue",
            target.order,
            target.name()
        )
    };
    modify(&database, cx, &targets, "requeue_step", change, describe).await
}

/// The stuck steps of a plan.
async fn stuck_steps(database: &Database, text: &str, missing: Failure) -> Result<Vec<Target>> {
    let Database {
        engine,
        caller,
        now,
    } = database;
    let plan = match database.find_plan(text).await {
        Ok(plan) => plan,
        Err(failure) if failure.code == Code::PlanNotFound => return Err(missing),
        Err(failure) => return Err(failure),
    };
    let in_progress = Some(StepStatus::InProgress);
    let page = engine
        .list_steps(caller, plan, in_progress, 0, MAX_STEPS)
        .await?;
    let mut targets = Vec::new();
    for line in page.steps.iter().filter(|line| line.is_stalled(*now)) {
        targets.push(Target::read(database, line.id).await?);
    }
    if targets.is_empty() {
        return Err(Failure::new(
            Exit::Rejected,
            Code::IllegalTransition,
            format!("plan `{text}` has no stuck steps"),
            format!("to release a step that is not stuck: `onward step release {text}/ORDER`"),
        ));
    }
    Ok(targets)
}
