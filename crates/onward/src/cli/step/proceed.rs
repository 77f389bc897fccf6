//! `onward step continue`: let steps start although steps that they depend on have failed.

use clap::Args;
use onward_core::command::{Modification, StepUpdate};
use onward_core::policy::OnDependencyFailure;

use super::{Target, modify};
use crate::cli::Context;
use crate::cli::database::Database;
use crate::failure::Result;

/// Let steps start although steps that they depend on have failed
///
/// The agent receives the reason of each failure with the step.
#[derive(Args)]
pub(crate) struct Continue {
    /// PLAN/ORDER (such as `5fa2/6`) or a step id
    #[arg(value_name = "STEP", required = true)]
    steps: Vec<String>,
}

pub(super) async fn run(args: &Continue, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let targets = Target::read_all(&database, &args.steps).await?;
    let change = |step| Modification::UpdateStep {
        step,
        update: StepUpdate {
            on_dependency_failure: Some(OnDependencyFailure::Continue),
            ..StepUpdate::default()
        },
    };
    let describe = |target: &Target| {
        format!(
            "step {} of `{}` no longer waits for failed steps",
            target.order,
            target.name()
        )
    };
    modify(&database, cx, &targets, "update_step", change, describe).await
}
