//! `onward review decide`: the reviewer's decision.
//!
//! A plan has at most one pending review, so the review can be identified by the plan as well as by
//! the step.

use clap::{Args, ValueEnum};
use onward_core::StepId;
use onward_core::event::Decision as Core;
use onward_core::plan::PlanState;
use onward_engine::step::ReviewDecision;
use onward_engine::{Caller, Engine, Error};

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::status::{plan_label, step_label};
use crate::wire::review::DecisionOutcome;

/// Decide a pending review
#[derive(Args)]
pub(crate) struct Decide {
    /// Id of the step or its plan, or a unique prefix of it
    #[arg(value_name = "STEP")]
    id: String,
    /// Your decision
    #[arg(value_name = "DECISION")]
    decision: Decision,
    /// Feedback for the agent; required for `modify`
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Decision {
    /// Accept the summary as the step's result and continue the plan
    Approve,
    /// Fail the step and the plan
    Reject,
    /// Return the step to the agent with your feedback
    Modify,
    /// Skip the step and continue the plan
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
    let review = ReviewDecision::new(step, decision, feedback);
    let reviewed = engine.decide_review(&caller, review).await?;
    cx.output.note(&format!(
        "step: {}, plan: {}",
        step_label(reviewed.step_status),
        plan_label(reviewed.plan_status)
    ));
    if cx.output.json {
        cx.output.print_json(&DecisionOutcome::new(&reviewed))?;
    }
    Ok(Exit::Done)
}

async fn find(engine: &Engine, caller: &Caller, id: &str) -> Result<StepId> {
    let missing = match engine.find_step(caller, id).await {
        Ok(step) => return Ok(step),
        Err(missing @ Error::StepNotFound { .. }) => missing,
        Err(error) => return Err(error.into()),
    };
    let plan = match engine.find_plan(caller, id).await {
        Ok(plan) => plan,
        Err(Error::PlanNotFound(_)) => return Err(missing.into()),
        Err(error) => return Err(error.into()),
    };
    match engine.sheet(caller, plan).await?.head.state {
        PlanState::AwaitingReview { step, .. } => Ok(step),
        PlanState::Planning
        | PlanState::Executing
        | PlanState::Stalled { .. }
        | PlanState::Completed { .. }
        | PlanState::Failed { .. } => Err(Failure::new(
            Exit::Rejected,
            onward_core::Code::IllegalTransition,
            format!("plan `{id}` has no pending review"),
            "list the pending reviews with `onward review list`",
        )),
    }
}
