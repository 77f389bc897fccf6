//! `onward review`: reviews that agents requested.

mod decide;
mod list;
mod show;

use clap::Subcommand;

use super::Context;
use crate::failure::Result;

#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Show(show::Show),
    Decide(decide::Decide),
}

pub(super) async fn run(command: &Command, cx: &Context) -> Result {
    match command {
        Command::List(args) => list::run(args, cx).await,
        Command::Show(args) => show::run(args, cx).await,
        Command::Decide(args) => decide::run(args, cx).await,
    }
}
