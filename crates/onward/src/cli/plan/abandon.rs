//! `onward plan abandon`: mark a plan as failed, with the reason in its audit trail.

use clap::Args;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::format;
use crate::wire::plan::ChangedPlan;

/// Cancel a plan; it is kept and shown as cancelled
#[derive(Args)]
pub(crate) struct Abandon {
    /// Plan: id, unique prefix of the id, or words of its name
    #[arg(value_name = "PLAN")]
    id: String,
    /// Reason, recorded in the plan's audit trail
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(args: &Abandon, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let plan = database.find_plan(&args.id).await?;
    let name = engine.sheet(caller, plan).await?.brief.name;
    let reason = args.reason.clone();
    let status = engine.abandon_plan(caller, plan, reason).await?;
    cx.output.note(&format!(
        "`{}` cancelled; the plan is kept, and its steps cannot be claimed",
        format::sanitize_line(&name)
    ));
    if cx.output.json {
        cx.output
            .print_json(&ChangedPlan::new(plan, name, status))?;
    }
    Ok(Exit::Done)
}
