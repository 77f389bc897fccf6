//! `onward plan delete`: delete a plan with its audit trail, after a confirmation.

use clap::Args;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{confirm, format};

/// Delete a plan with its steps and its audit trail
///
/// Artifacts are kept, and the tenant's audit trail records the deletion. To end a plan and keep it, use
/// `onward plan abandon`.
#[derive(Args)]
pub(crate) struct Delete {
    /// Plan id, or a unique prefix of it
    #[arg(value_name = "PLAN")]
    id: String,
    /// Delete without confirmation
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
    let name = format::sanitize_line(&sheet.brief.name);
    if !args.yes {
        let steps = format::count(sheet.head.counts.total(), "step", "steps");
        let events = format::count(sheet.head.seq, "event", "events");
        let question = format!("permanently delete `{name}` with {steps} and {events}?");
        match confirm(&question) {
            Some(true) => {}
            Some(false) => {
                cx.output.note("nothing deleted");
                return Ok(Exit::Failed);
            }
            None => {
                return Err(Failure::usage(
                    format!("cannot ask for confirmation to delete `{name}`: not a terminal"),
                    "confirm with `--yes`; keep a copy with `onward export`",
                ));
            }
        }
    }
    let sheet = engine.delete_plan(&caller, plan).await?;
    cx.output.note(&format!("`{name}` deleted"));
    if cx.output.json {
        cx.output.print_json(&Deleted {
            plan_id: plan.to_string(),
            name: sheet.brief.name,
            deleted: true,
        })?;
    }
    Ok(Exit::Done)
}
