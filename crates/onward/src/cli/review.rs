//! `onward review`: reviews that agents requested.

mod decide;
mod list;

use clap::Subcommand;

use super::Context;
use crate::failure::Result;

#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Decide(decide::Decide),
}

pub(super) async fn run(command: &Command, cx: &Context) -> Result {
    match command {
        Command::List(_) => list::run(cx).await,
        Command::Decide(args) => decide::run(args, cx).await,
    }
}
