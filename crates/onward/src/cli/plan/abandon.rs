//! `onward plan abandon`: give a plan up. It stays, as failed, with the reason in its trail.

use clap::Args;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::words;
use crate::wire::plan::Changed;

/// Give a plan up; it stays, as failed
#[derive(Args)]
pub(crate) struct Abandon {
    /// The plan: its id, or the beginning of it
    #[arg(value_name = "PLAN")]
    id: String,
    /// Why, for whoever reads the log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(super) async fn run(args: &Abandon, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let plan = engine.find_plan(&caller, &args.id).await?;
    let name = engine.sheet(&caller, plan).await?.brief.name;
    let reason = Some(args.reason.clone());
    let status = engine.abandon_plan(&caller, plan, reason).await?;
    cx.output.say(&format!(
        "`{}` is given up: it is {status}",
        words::line(&name)
    ));
    if cx.output.json {
        cx.output.print_json(&Changed {
            plan_id: plan.to_string(),
            name,
            status: status.as_str(),
        })?;
    }
    Ok(Exit::Done)
}
