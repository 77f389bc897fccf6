//! `onward plan edit`: change the project, the labels or the priority of a plan.

use clap::Args;
use onward_core::command::{Modification, ModifyPlan};
use onward_engine::Error;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::cli::step::edit::fields;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::format;
use crate::tools::modify_plan;
use crate::wire::modified::ModifiedPlan;

/// Change the project, the labels or the priority of a plan
///
/// The fields are those of a plan file: `projectKey`, `labels` and `priority`. Fields that are not set
/// stay. An empty text or list removes a value.
#[derive(Args)]
pub(crate) struct Edit {
    /// Plan: id, unique prefix of the id, or words of its name
    #[arg(value_name = "PLAN")]
    id: String,
    /// Field and new value; a value that is not JSON is a text
    #[arg(long, value_name = "FIELD=VALUE", required = true)]
    set: Vec<String>,
}

pub(super) async fn run(args: &Edit, cx: &Context) -> Result {
    let update = modify_plan::plan_update(fields(&args.set)?).map_err(Error::from)?;
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let plan = database.find_plan(&args.id).await?;
    let sheet = engine.sheet(caller, plan).await?;
    let command = ModifyPlan {
        resume: true,
        ..ModifyPlan::new(Modification::UpdatePlan { update })
    };
    let modified = engine.modify_plan(caller, plan, command).await?;
    let name = format::sanitize_line(&sheet.brief.name);
    cx.output.note(&format!("`{name}` changed"));
    if cx.output.json {
        cx.output
            .print_json(&ModifiedPlan::new("update_plan", &modified))?;
    }
    Ok(Exit::Done)
}
