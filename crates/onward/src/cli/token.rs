//! `onward token`: access tokens.

mod create;
mod list;
mod revoke;

use clap::Subcommand;
pub(super) use create::parse_duration;

use super::Context;
use crate::failure::Result;

#[derive(Subcommand)]
pub(crate) enum Command {
    Create(create::Create),
    List(list::List),
    Revoke(revoke::Revoke),
}

pub(super) async fn run(command: &Command, cx: &Context) -> Result {
    match command {
        Command::Create(args) => create::run(args, cx).await,
        Command::List(_) => list::run(cx).await,
        Command::Revoke(args) => revoke::run(args, cx).await,
    }
}
