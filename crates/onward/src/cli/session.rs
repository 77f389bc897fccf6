//! `onward session`: agents' sessions as their hooks tell of them, one verb per file.

mod list;
mod show;
mod switch;

use clap::Subcommand;
use onward_engine::Turn;

use super::Context;
use crate::failure::Result;
use crate::output::Tone;

#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Show(show::Show),
    /// Leave a session alone: its turns are watched, and nothing is done about them
    Off(switch::Switch),
    /// Do something about a session's turns again
    On(switch::Switch),
}

pub(super) async fn run(command: &Command, cx: &Context) -> Result {
    match command {
        Command::List(args) => list::run(args, cx).await,
        Command::Show(args) => show::run(args, cx).await,
        Command::Off(args) => switch::run(args, true, cx).await,
        Command::On(args) => switch::run(args, false, cx).await,
    }
}

/// How a turn went, in a few words, and whether that is worth a colour.
fn standing(turn: &Turn) -> (String, Option<Tone>) {
    let held = turn.standing.held.map(|held| held.as_str());
    let tone = held.map(|_| Tone::Bad);
    let word = match (turn.ended, held) {
        (None, Some(held)) => held.to_owned(),
        (None, None) => "under way".to_owned(),
        (Some((_, why)), None) => why.as_str().to_owned(),
        (Some((_, why)), Some(held)) => format!("{held}, {why}"),
    };
    (word, tone)
}
