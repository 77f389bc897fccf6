//! `onward step retry`: redo steps that have ended.

use clap::Args;
use onward_core::command::Modification;

use super::{Target, modify};
use crate::cli::Context;
use crate::cli::database::Database;
use crate::failure::Result;

/// Redo steps that are completed, failed or skipped
///
/// Adds a new step after each one, with the same instructions and the reason. Pending steps that
/// depended on the old step depend on the new one. The old step stays as history. To redo a step of
/// a plan that has ended, use `onward plan fork`.
#[derive(Args)]
pub(crate) struct Retry {
    /// PLAN/ORDER (such as `5fa2/6`) or a step id
    #[arg(value_name = "STEP", required = true)]
    steps: Vec<String>,
    /// Reason, visible to agents
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Also redo the completed steps that depend on them
    #[arg(long)]
    cascade: bool,
}

pub(super) async fn run(args: &Retry, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let targets = Target::read_all(&database, &args.steps).await?;
    let change = |step| Modification::RedoStep {
        step,
        reason: args.reason.clone(),
        cascade: args.cascade,
        ids: Vec::new(),
    };
    let describe = |target: &Target| {
        format!(
            "step {} of `{}` is in the queue again",
            target.order,
            target.name()
        )
    };
    modify(&database, cx, &targets, "redo_step", change, describe).await
}
