//! `onward plan resume`: go on with a plan that was marked stalled.

use clap::Args;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::words;
use crate::wire::plan::Changed;

/// Go on with a stalled plan
#[derive(Args)]
pub(crate) struct Resume {
    /// The plan: its id, or the beginning of it
    #[arg(value_name = "PLAN")]
    id: String,
}

pub(super) async fn run(args: &Resume, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let plan = engine.find_plan(&caller, &args.id).await?;
    let name = engine.sheet(&caller, plan).await?.brief.name;
    let status = engine.resume_plan(&caller, plan).await?;
    cx.output
        .say(&format!("`{}` goes on: it is {status}", words::line(&name)));
    if cx.output.json {
        cx.output.print_json(&Changed {
            plan_id: plan.to_string(),
            name,
            status: status.as_str(),
        })?;
    }
    Ok(Exit::Done)
}
