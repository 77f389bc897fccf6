//! `onward plan resume`: resume a plan that is marked as stalled.

use clap::Args;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::format;
use crate::output::status::plan_label;
use crate::wire::plan::ChangedPlan;

/// Resume a stuck plan
///
/// Changes only the status of the plan: a stuck step stays assigned to its agent. Release or fail the
/// step on the dashboard.
#[derive(Args)]
pub(crate) struct Resume {
    /// Plan id, or a unique prefix of it
    #[arg(value_name = "PLAN")]
    id: String,
}

pub(super) async fn run(args: &Resume, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let plan = engine.find_plan(&caller, &args.id).await?;
    let name = engine.sheet(&caller, plan).await?.brief.name;
    let status = engine.resume_plan(&caller, plan).await?;
    cx.output.note(&format!(
        "`{}` resumed: {}",
        format::sanitize_line(&name),
        plan_label(status)
    ));
    if cx.output.json {
        cx.output.print_json(&ChangedPlan {
            plan_id: plan.to_string(),
            name,
            status: status.as_str(),
        })?;
    }
    Ok(Exit::Done)
}
