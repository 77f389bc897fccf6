//! `onward session off` and `onward session on`: loop control of one session.

use clap::Args;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::format;

#[derive(Args)]
pub(crate) struct LoopControl {
    /// Session id, or a unique prefix of it
    #[arg(value_name = "SESSION")]
    id: String,
}

pub(super) async fn run(args: &LoopControl, off: bool, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let session = engine.switch_session(&caller, &args.id, off).await?;
    let id = format::sanitize_line(&session.id);
    cx.output.note(&if off {
        format!("loop control is off for `{id}` (still recording)")
    } else {
        format!("loop control is on for `{id}`")
    });
    Ok(Exit::Done)
}
