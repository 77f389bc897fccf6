//! `onward session`: agent sessions reported by hooks, the proxy or the API; one file per
//! subcommand.

mod list;
mod loop_control;
mod show;

use clap::Subcommand;
use onward_core::turn::TurnEnd;
use onward_core::turn::escalation::TextOnlyReason;
use onward_engine::Turn;

use super::Context;
use crate::failure::Result;
use crate::output::Tone;

#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Show(show::Show),
    /// Turn loop control off for a session; turns are still recorded
    Off(loop_control::LoopControl),
    /// Turn loop control on for a session
    On(loop_control::LoopControl),
}

pub(super) async fn run(command: &Command, cx: &Context) -> Result {
    match command {
        Command::List(args) => list::run(args, cx).await,
        Command::Show(args) => show::run(args, cx).await,
        Command::Off(args) => loop_control::run(args, true, cx).await,
        Command::On(args) => loop_control::run(args, false, cx).await,
    }
}

/// The state of a turn, and its colour.
fn describe_turn(turn: &Turn) -> (String, Option<Tone>) {
    let reason = turn.standing.text_only.map(text_only_label);
    let tone = match (turn.ended, reason) {
        (_, Some(_)) => Tone::Alert,
        (None, None) => Tone::Active,
        (Some(_), None) => Tone::Faint,
    };
    let text = match (turn.ended, reason) {
        (None, Some(reason)) => reason.to_owned(),
        (None, None) => "in progress".to_owned(),
        (Some((_, end)), None) => end_label(end).to_owned(),
        (Some((_, end)), Some(reason)) => format!("{reason}, {}", end_label(end)),
    };
    (text, Some(tone))
}

const fn text_only_label(reason: TextOnlyReason) -> &'static str {
    match reason {
        TextOnlyReason::Stalled => "looping",
        TextOnlyReason::MaxSteps => "response limit reached",
    }
}

const fn end_label(end: TurnEnd) -> &'static str {
    match end {
        TurnEnd::Answered => "answered",
        TurnEnd::NextPrompt => "ended by the next prompt",
        TurnEnd::Stopped => "stopped",
        TurnEnd::SessionEnded => "session ended",
    }
}
