//! `onward review decide`: a person's answer.
//!
//! A plan has at most one open review, so the plan names it as well as the step does, and its id is
//! the shorter one.

use clap::{Args, ValueEnum};
use onward_core::StepId;
use onward_core::event::Decision as Core;
use onward_core::plan::PlanState;
use onward_engine::{Caller, Engine, Error};

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::wire::review::Decided;

/// Decide about a step that waits for you
#[derive(Args)]
pub(crate) struct Decide {
    /// The step, or the plan that waits: its id, or the beginning of it
    #[arg(value_name = "STEP")]
    id: String,
    /// What you decide
    #[arg(value_name = "DECISION")]
    decision: Decision,
    /// What the agent should know; `modify` needs it
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Decision {
    /// The summary is the step's result, and the plan goes on
    Approve,
    /// The step and the plan fail
    Reject,
    /// The agent goes on with the step, and with your feedback
    Modify,
    /// The step is passed over, and the plan goes on
    Skip,
}

pub(super) async fn run(args: &Decide, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let step = find(&engine, &caller, &args.id).await?;
    let decision = match args.decision {
        Decision::Approve => Core::Approve,
        Decision::Reject => Core::Reject,
        Decision::Modify => Core::Modify,
        Decision::Skip => Core::Skip,
    };
    let feedback = args.feedback.clone();
    let reviewed = engine
        .decide_review(&caller, step, decision, feedback)
        .await?;
    cx.output.say(&format!(
        "the step is {}, the plan is {}",
        reviewed.step_status, reviewed.plan_status
    ));
    if cx.output.json {
        cx.output.print_json(&Decided::of(&reviewed))?;
    }
    Ok(Exit::Done)
}

async fn find(engine: &Engine, caller: &Caller, id: &str) -> Result<StepId> {
    let missing = match engine.find_step(caller, id).await {
        Ok(step) => return Ok(step),
        Err(missing @ Error::StepNotFound { .. }) => missing,
        Err(why) => return Err(why.into()),
    };
    let plan = match engine.find_plan(caller, id).await {
        Ok(plan) => plan,
        Err(Error::PlanNotFound(_)) => return Err(missing.into()),
        Err(why) => return Err(why.into()),
    };
    match engine.sheet(caller, plan).await?.head.state {
        PlanState::AwaitingReview { step, .. } => Ok(step),
        PlanState::Planning
        | PlanState::Executing
        | PlanState::Stalled { .. }
        | PlanState::Completed { .. }
        | PlanState::Failed { .. } => Err(crate::failure::Failure::new(
            Exit::Refused,
            onward_core::Code::IllegalTransition,
            format!("no step of plan `{id}` waits for a decision"),
            "`onward review list` shows what waits for a decision",
        )),
    }
}
