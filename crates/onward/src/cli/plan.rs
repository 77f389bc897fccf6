//! `onward plan`: list, inspect and change plans; one file per subcommand.

mod abandon;
mod delete;
mod event_summary;
mod list;
mod log;
mod next;
mod resume;
mod show;

use clap::Subcommand;
use onward_core::{PlanStatus, StepStatus};

use super::Context;
use crate::failure::Result;
use crate::output::Tone;

#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Show(show::Show),
    Log(log::Log),
    Next(next::Next),
    Resume(resume::Resume),
    Abandon(abandon::Abandon),
    Delete(delete::Delete),
}

pub(super) async fn run(command: &Command, cx: &Context) -> Result {
    match command {
        Command::List(args) => list::run(args, cx).await,
        Command::Show(args) => show::run(args, cx).await,
        Command::Log(args) => log::run(args, cx).await,
        Command::Next(args) => next::run(args, cx).await,
        Command::Resume(args) => resume::run(args, cx).await,
        Command::Abandon(args) => abandon::run(args, cx).await,
        Command::Delete(args) => delete::run(args, cx).await,
    }
}

/// The colour of a plan's status.
pub(super) fn tone(status: PlanStatus) -> Option<Tone> {
    match status {
        PlanStatus::Completed => Some(Tone::Good),
        PlanStatus::AwaitingReview | PlanStatus::Stalled | PlanStatus::Failed => Some(Tone::Bad),
        PlanStatus::Planning | PlanStatus::Executing => None,
    }
}

/// The colour of a step's status.
pub(super) fn step_tone(status: StepStatus) -> Option<Tone> {
    match status {
        StepStatus::Completed => Some(Tone::Good),
        StepStatus::AwaitingInput | StepStatus::Failed => Some(Tone::Bad),
        StepStatus::Pending | StepStatus::InProgress | StepStatus::Skipped => None,
    }
}
