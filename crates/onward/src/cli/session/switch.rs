//! `onward session off` and `on`: whether anything is done about a session's turns.

use clap::Args;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::words;

#[derive(Args)]
pub(crate) struct Switch {
    /// The session: its id, or the beginning of it
    #[arg(value_name = "SESSION")]
    id: String,
}

pub(super) async fn run(args: &Switch, off: bool, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let session = engine.switch_session(&caller, &args.id, off).await?;
    let id = words::line(&session.id);
    cx.output.say(&match off {
        true => format!("`{id}` is left alone: its turns are watched, and nothing is done"),
        false => format!("`{id}` is looked after again"),
    });
    Ok(Exit::Done)
}
