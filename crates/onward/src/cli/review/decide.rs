//! `onward review decide`: the reviewer's decision.
//!
//! A review is identified by its own id or its step, and by the plan if that has only one pending
//! review.

use clap::{Args, ValueEnum};
use onward_core::event::Decision as Core;
use onward_engine::step::ReviewDecision;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::cli::step::outlook;
use crate::exit::Exit;
use crate::failure::Result;
use crate::wire::review::DecisionOutcome;

/// Decide a pending review
#[derive(Args)]
pub(crate) struct Decide {
    /// Review, step or plan: unique prefix of its id, PLAN/ORDER, or words of the plan's name
    #[arg(value_name = "REVIEW")]
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
    /// Accept the result, or the summary, and continue the plan
    Approve,
    /// Fail the step and the plan
    Reject,
    /// Return the step to the agent with your feedback
    Modify,
    /// Skip the step and continue the plan
    Skip,
}

pub(super) async fn run(args: &Decide, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let open = database.find_review(&args.id).await?;
    let decision = match args.decision {
        Decision::Approve => Core::Approve,
        Decision::Reject => Core::Reject,
        Decision::Modify => Core::Modify,
        Decision::Skip => Core::Skip,
    };
    let feedback = args.feedback.clone();
    let review = ReviewDecision {
        review: Some(open.id),
        ..ReviewDecision::new(open.step, decision, feedback)
    };
    let reviewed = engine.decide_review(caller, review).await?;
    let decided = match args.decision {
        Decision::Approve => "approved",
        Decision::Reject => "rejected: the plan failed",
        Decision::Modify => "sent back to the agent with your feedback",
        Decision::Skip => "skipped",
    };
    cx.output.note(&format!("step {} {decided}", open.order));
    if !reviewed.plan_status.is_terminal() {
        cx.output.note(&outlook(&database, open.plan).await?);
    }
    if cx.output.json {
        cx.output.print_json(&DecisionOutcome::new(&reviewed))?;
    }
    Ok(Exit::Done)
}
