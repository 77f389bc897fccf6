//! `onward step skip`: skip steps that no agent works on.

use clap::Args;
use onward_core::command::Modification;

use super::{Target, modify};
use crate::cli::Context;
use crate::cli::database::Database;
use crate::failure::Result;

/// Skip steps that are pending or failed
///
/// Steps that wait for a skipped step can start. A failed step stays as history: a skipped step takes
/// its place.
#[derive(Args)]
pub(crate) struct Skip {
    /// PLAN/ORDER (such as `5fa2/6`) or a step id
    #[arg(value_name = "STEP", required = true)]
    steps: Vec<String>,
}

pub(super) async fn run(args: &Skip, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let targets = Target::read_all(&database, &args.steps).await?;
    let change = |step| Modification::SkipStep { step };
    let describe =
        |target: &Target| format!("step {} of `{}` is skipped", target.order, target.name());
    modify(&database, cx, &targets, "skip_step", change, describe).await
}
