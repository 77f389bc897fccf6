//! `onward step fail`: mark steps as failed.

use clap::Args;
use onward_core::command::Modification;

use super::{Target, modify};
use crate::cli::Context;
use crate::cli::database::Database;
use crate::failure::Result;

/// Mark steps as failed; the plan continues without them
///
/// Cannot be undone. Steps that depend on a failed step can start. To return a step to the queue instead,
/// use `onward step release`.
#[derive(Args)]
pub(crate) struct Fail {
    /// PLAN/ORDER (such as `5fa2/6`) or a step id
    #[arg(value_name = "STEP", required = true)]
    steps: Vec<String>,
    /// Reason, visible to agents
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(args: &Fail, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let targets = Target::read_all(&database, &args.steps).await?;
    let change = |step| Modification::FailStep {
        step,
        reason: args.reason.clone(),
    };
    let describe = |target: &Target| format!("step {} of `{}` failed", target.order, target.name());
    modify(&database, cx, &targets, "fail_step", change, describe).await
}
