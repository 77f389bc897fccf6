//! `onward plan fork`: create a plan from an existing one.

use clap::Args;
use onward_core::command::ForkPlan;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::format;
use crate::wire::created::CreatedPlan;
use crate::wire::review::ReviewLinks;

/// Create a plan from an existing one, from one of its steps on
///
/// The new plan takes over the results of the completed steps before that step. All other steps are
/// pending. The existing plan does not change.
#[derive(Args)]
pub(crate) struct Fork {
    /// First step to do again: PLAN/ORDER (such as `5fa2/6`) or a step id
    #[arg(value_name = "STEP")]
    step: String,
    /// Name of the new plan [default: the name of the existing one]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// A person must approve the plan before its first step is assigned
    #[arg(long)]
    requires_approval: bool,
}

pub(super) async fn run(args: &Fork, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let step = database.find_step(&args.step).await?;
    let (source, step) = engine.step(caller, step).await?;
    let command = ForkPlan {
        plan: engine.new_plan_id(),
        from_order: step.order,
        name: args.name.clone(),
        research_question: None,
        design_rationale: None,
        session: None,
        approval: args.requires_approval.then(|| engine.new_review_id()),
    };
    let forked = engine.fork_plan(caller, source.head.id, command, None);
    let forked = forked.await?;
    let (taken, all) = (forked.taken_over.len(), forked.created.steps.len());
    let count = |number: usize, one, many| {
        format::count(u64::try_from(number).unwrap_or(u64::MAX), one, many)
    };
    let id = database.short_plan(forked.created.plan).await?;
    cx.output.note(&format!(
        "plan {id} takes over {}; {} pending",
        count(taken, "result", "results"),
        count(all.saturating_sub(taken), "step is", "steps are")
    ));
    if cx.output.json {
        cx.output
            .print_json(&CreatedPlan::new(&forked, &ReviewLinks::None))?;
    } else {
        cx.output.print(&format!("{}\n", forked.created.plan))?;
    }
    Ok(Exit::Done)
}
