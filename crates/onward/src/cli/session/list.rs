//! `onward session list`: agents' sessions, those that were heard of last first.

use clap::Args;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::{Cell, Table};
use crate::output::{Tone, words};
use crate::wire::session::Sessions;

/// Show agents' sessions, those that were heard of last first
#[derive(Args)]
pub(crate) struct List {
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

pub(super) async fn run(args: &List, cx: &Context) -> Result {
    let Database {
        engine,
        caller,
        now,
    } = Database::open(cx).await?;
    let sessions = engine.list_sessions(&caller, args.limit).await?;
    if cx.output.json {
        cx.output.print_json(&Sessions::of(&sessions))?;
    } else if !sessions.is_empty() {
        let mut table = Table::new(&["SESSION", "AGENT", "TURNS", "STUCK", "SEEN", "DIRECTORY"]);
        for line in &sessions {
            let session = &line.session;
            let seen = match session.ended_at {
                Some(ended) => format!("ended {}", words::ago(now, ended)),
                None => words::ago(now, session.last_seen_at),
            };
            let stuck = match (session.switched_off, line.held) {
                (true, held) => Cell::toned(format!("{held}, off"), Some(Tone::Bad)),
                (false, 0) => Cell::number(0),
                (false, held) => Cell::toned(held.to_string(), Some(Tone::Bad)),
            };
            table.row([
                words::short(&session.id).into(),
                (&session.agent).into(),
                Cell::number(line.turns),
                stuck,
                seen.into(),
                session.directory.as_deref().unwrap_or_default().into(),
            ]);
        }
        cx.output.print(&table.render(cx.output, ""))?;
    }
    if sessions.is_empty() {
        cx.output
            .say("no sessions yet; `onward install AGENT` lets an agent's hooks tell of them, and `onward proxy` sees the others");
    }
    Ok(Exit::Done)
}
