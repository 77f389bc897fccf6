//! `onward plan`: create, list, inspect and change plans; one file per subcommand.

mod abandon;
mod budget;
mod create;
mod definition;
mod delete;
mod edit;
mod fork;
mod journal;
mod list;
mod log;
mod new;
mod next;
mod resume;
mod show;
mod template;

use clap::Subcommand;
pub(super) use definition::read_text;

use super::Context;
use crate::failure::Result;

#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Journal(journal::Journal),
    Show(show::Show),
    Log(log::Log),
    Next(next::Next),
    Edit(edit::Edit),
    Budget(budget::Budget),
    Create(create::Create),
    New(new::New),
    /// List, show and use plan templates: plan files of the project and the user
    #[command(subcommand)]
    Template(template::Command),
    Resume(resume::Resume),
    Abandon(abandon::Abandon),
    Fork(fork::Fork),
    Delete(delete::Delete),
}

pub(super) async fn run(command: &Command, cx: &Context) -> Result {
    match command {
        Command::List(args) => list::run(args, cx).await,
        Command::Journal(args) => journal::run(args, cx).await,
        Command::Show(args) => show::run(args, cx).await,
        Command::Log(args) => log::run(args, cx).await,
        Command::Next(args) => next::run(args, cx).await,
        Command::Edit(args) => edit::run(args, cx).await,
        Command::Budget(args) => budget::run(args, cx).await,
        Command::Create(args) => create::run(args, cx).await,
        Command::New(args) => new::run(args, cx).await,
        Command::Template(command) => template::run(command, cx).await,
        Command::Resume(args) => resume::run(args, cx).await,
        Command::Abandon(args) => abandon::run(args, cx).await,
        Command::Fork(args) => fork::run(args, cx).await,
        Command::Delete(args) => delete::run(args, cx).await,
    }
}
