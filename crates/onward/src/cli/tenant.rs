//! `onward tenant`: isolated organisations in one database.

mod create;
mod list;
mod set;

use clap::Subcommand;

use super::Context;
use crate::failure::Result;

#[derive(Subcommand)]
pub(crate) enum Command {
    Create(create::Create),
    List(list::List),
    Set(set::Set),
}

pub(super) async fn run(command: &Command, cx: &Context) -> Result {
    match command {
        Command::Create(args) => create::run(args, cx).await,
        Command::List(_) => list::run(cx).await,
        Command::Set(args) => set::run(args, cx).await,
    }
}
