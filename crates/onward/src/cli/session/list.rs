//! `onward session list`: agent sessions with their state, most recent activity first.

use std::path::Path;

use clap::Args;
use onward_engine::{SessionLine, session};

use crate::cli::Context;
use crate::cli::database::Database;
use crate::config::location;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::format;
use crate::output::status::{session_label, session_tone};
use crate::output::table::{Cell, Table};
use crate::wire::session::Sessions;

/// List agent sessions, most recent activity first
#[derive(Args)]
pub(crate) struct List {
    /// Maximum number of sessions
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

pub(super) async fn run(args: &List, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database {
        engine,
        caller,
        now,
    } = &database;
    let sessions = engine.list_sessions(caller, args.limit).await?;
    if cx.output.json {
        cx.output.print_json(&Sessions::new(&sessions, *now))?;
    } else if !sessions.is_empty() {
        let head = ["STATE", "SINCE", "SESSION", "WHERE", "PROMPT", "PLAN"];
        let mut table = Table::new(&head).with_flexible(&[3, 4]);
        for line in &sessions {
            let (status, since) = session::status(line, *now);
            let session = &line.session;
            let directory = session.directory.as_deref().unwrap_or_default();
            let plan = match &line.plan {
                Some((plan, _)) => database.short_plan(*plan).await?,
                None => String::new(),
            };
            table.row([
                Cell::toned(session_label(status), Some(session_tone(status))),
                format::age(now.since(since)).into(),
                format::short_id(format::sanitize_line(&session.id)).into(),
                location::display(Path::new(directory)).into(),
                prompt(line),
                plan.into(),
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

/// The beginning of the last prompt, marked if loop control is off.
fn prompt(line: &SessionLine) -> Cell {
    let prompt = line.session.prompt.as_deref().unwrap_or_default();
    if line.session.switched_off {
        Cell::summary(format!("(loop control off) {prompt}"))
    } else {
        Cell::summary(prompt)
    }
}
