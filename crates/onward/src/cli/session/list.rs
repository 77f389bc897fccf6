//! `onward session list`: agent sessions, most recent activity first.

use clap::Args;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::{Cell, Table};
use crate::output::{Tone, format};
use crate::wire::session::Sessions;

/// List agent sessions, most recent activity first
#[derive(Args)]
pub(crate) struct List {
    /// Maximum number of sessions
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
        cx.output.print_json(&Sessions::new(&sessions))?;
    } else if !sessions.is_empty() {
        let mut table = Table::new(&[
            "SESSION",
            "AGENT",
            "TURNS",
            "STUCK",
            "ACTIVITY",
            "DIRECTORY",
        ]);
        for line in &sessions {
            let session = &line.session;
            let seen = match session.ended_at {
                Some(ended) => format!("ended {}", format::ago(now, ended)),
                None => format::ago(now, session.last_seen_at),
            };
            let stuck = match (session.switched_off, line.held) {
                (true, count) => Cell::toned(format!("{count}, control off"), Some(Tone::Bad)),
                (false, 0) => Cell::number(0),
                (false, count) => Cell::toned(count.to_string(), Some(Tone::Bad)),
            };
            table.row([
                format::short_id(&session.id).into(),
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
            .note("no sessions yet; install hooks with `onward install claude-code`");
    }
    Ok(Exit::Done)
}
