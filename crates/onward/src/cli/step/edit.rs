//! `onward step edit`: change the definition of a step.

use clap::Args;
use onward_core::command::StepUpdate;
use onward_engine::Error;
use serde_json::{Map, Value};

use super::{Target, modify};
use crate::cli::Context;
use crate::cli::database::Database;
use crate::failure::{Failure, Result};
use crate::tools::modify_plan;

/// Change a pending step: title, type, instructions, dependencies, limit, gates
///
/// The fields are those of a step in a plan file. Fields that are not set stay. An empty text or list
/// removes a value, and a `stallThresholdMs` of 0 the limit of the step. Instructions alone can be
/// changed in any status.
#[derive(Args)]
pub(crate) struct Edit {
    /// PLAN/ORDER (such as `5fa2/6`) or a step id
    #[arg(value_name = "STEP")]
    step: String,
    /// Field and new value; a value that is not JSON is a text
    #[arg(long, value_name = "FIELD=VALUE", required = true)]
    set: Vec<String>,
}

pub(super) async fn run(args: &Edit, cx: &Context) -> Result {
    let update = modify_plan::step_update(fields(&args.set)?).map_err(Error::from)?;
    let database = Database::open(cx).await?;
    let step = database.find_step(&args.step).await?;
    let target = Target::read(&database, step).await?;
    let change = |step| modify_plan::of_step(step, StepUpdate::clone(&update));
    let describe =
        |target: &Target| format!("step {} of `{}` changed", target.order, target.name());
    let action = "update_step_instructions";
    modify(&database, cx, &[target], action, change, describe).await
}

/// The values by field.
pub(crate) fn fields(pairs: &[String]) -> Result<Map<String, Value>> {
    let field = |pair: &String| {
        let (name, text) = pair.split_once('=').ok_or_else(|| {
            Failure::usage(
                format!("invalid `--set {pair}`"),
                "write `--set FIELD=VALUE`, such as `--set title=Sources`",
            )
        })?;
        let value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
        Ok((name.trim().to_owned(), value))
    };
    pairs.iter().map(field).collect()
}
