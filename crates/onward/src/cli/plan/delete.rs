//! `onward plan delete`: delete a plan with its trail. It asks first, where there is somebody to ask.

use clap::Args;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{confirm, words};

/// Delete a plan with its steps and its log
///
/// What was found for it stays, and the tenant's log says that the plan was there. `onward plan
/// abandon` ends a plan and keeps it.
#[derive(Args)]
pub(crate) struct Delete {
    /// The plan: its id, or the beginning of it
    #[arg(value_name = "PLAN")]
    id: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    plan_id: String,
    name: String,
    deleted: bool,
}

pub(super) async fn run(args: &Delete, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let plan = engine.find_plan(&caller, &args.id).await?;
    let sheet = engine.sheet(&caller, plan).await?;
    let name = words::line(&sheet.brief.name);
    if !args.yes {
        let steps = words::count(sheet.head.counts.total(), "step", "steps");
        let events = words::count(sheet.head.seq, "event", "events");
        let question = format!("delete `{name}` with its {steps} and {events} for good?");
        match confirm(&question) {
            Some(true) => {}
            Some(false) => {
                cx.output.say("nothing was deleted");
                return Ok(Exit::Failed);
            }
            None => {
                return Err(Failure::usage(
                    format!("nobody can be asked whether `{name}` shall be deleted"),
                    "say so with `--yes`; `onward export` keeps a copy",
                ));
            }
        }
    }
    let sheet = engine.delete_plan(&caller, plan).await?;
    cx.output.say(&format!("`{name}` is deleted"));
    if cx.output.json {
        cx.output.print_json(&Deleted {
            plan_id: plan.to_string(),
            name: sheet.brief.name,
            deleted: true,
        })?;
    }
    Ok(Exit::Done)
}
