//! `onward move`: copies the whole database to another one, and verifies the copy.

use std::io::IsTerminal as _;

use clap::Args;
use onward_core::Code;
use onward_engine::relocate::{Phase, Progress, Relocated, relocate};
use onward_engine::{Address, Error, store};
use serde::Serialize;

use super::Context;
use super::database::{must_exist, settings};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, format, print_stderr};

/// Width of the progress bar, in characters.
const BAR: u64 = 30;

/// Move all data to another database: from SQLite to PostgreSQL, or back
///
/// Copies every tenant with its plans, audit trails, claims, reviews, idempotency keys, sessions,
/// texts, tokens, notifications and logs. Compares all rows at the end, and replays every audit trail
/// in both databases. The target must be empty. The source does not change; writes to it fail until
/// the command ends. To continue an interrupted move, run the same command again.
#[derive(Args)]
pub(crate) struct Move {
    /// The target: `postgres://…`, or the path of a new SQLite file
    #[arg(long, value_name = "DATABASE")]
    to: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Moved {
    from: String,
    to: String,
    tenants: u64,
    rows: u64,
    plans: u64,
    events: u64,
}

pub(super) async fn run(args: &Move, cx: &Context) -> Result {
    must_exist(cx)?;
    let source = &cx.config.database;
    let target = Address::parse(&args.to).map_err(Error::Store)?;
    cx.output.note(&format!("moving {source} to {target}"));
    let mut progress = ProgressLine::new(cx.output);
    let moved = relocate(source, &target, settings(cx), &mut |step| {
        progress.show(step)
    })
    .await;
    progress.end();
    if let Err(Error::Store(store::Error::Unavailable { .. })) = &moved
        && progress.has_begun()
    {
        cx.output
            .note("the move is incomplete: run the same command again to continue it");
    }
    let moved = moved?;
    if let Some(phase) = moved.failed {
        return Err(inconsistent(phase, &moved, &target));
    }
    cx.output
        .note("the source is unchanged; to use the target, set `database` in the configuration");
    let Relocated {
        tenants,
        rows,
        plans,
        events,
        ..
    } = moved;
    if cx.output.json {
        cx.output.print_json(&Moved {
            from: source.to_string(),
            to: target.to_string(),
            tenants,
            rows,
            plans,
            events,
        })?;
        return Ok(Exit::Done);
    }
    cx.output.print(&format!(
        "{} of {} moved and compared; {} replayed for {} in both databases\n",
        format::count(rows, "row", "rows"),
        format::count(tenants, "tenant", "tenants"),
        format::count(events, "event", "events"),
        format::count(plans, "plan", "plans"),
    ))?;
    Ok(Exit::Done)
}

fn inconsistent(phase: Phase, moved: &Relocated, target: &Address) -> Failure {
    let number = moved.inconsistencies.len();
    let number = format::count(
        u64::try_from(number).unwrap_or(u64::MAX),
        "inconsistency",
        "inconsistencies",
    );
    let first = moved.inconsistencies.first();
    let first = first
        .map(|first| first.message.as_str())
        .unwrap_or_default();
    let (which, hint) = match phase {
        Phase::VerifySource => (
            "source".to_owned(),
            "nothing was moved; run `onward doctor` on the source to list the inconsistencies",
        ),
        Phase::Copy | Phase::Compare | Phase::VerifyTarget => (
            format!("target `{target}`"),
            "do not use the target; run `onward doctor` on it to list the inconsistencies, and report them",
        ),
    };
    Failure::new(
        Exit::ProblemsFound,
        Code::Conflict,
        format!("the {which} has {number}: {first}"),
        hint,
    )
}

/// Progress on standard error: a bar on a terminal, otherwise one line per phase.
struct ProgressLine {
    output: Output,
    is_terminal: bool,
    last: Option<(Phase, u64)>,
}

impl ProgressLine {
    fn new(output: Output) -> Self {
        Self {
            output,
            is_terminal: std::io::stderr().is_terminal() && !output.is_quiet(),
            last: None,
        }
    }

    fn show(&mut self, progress: Progress) {
        let Progress { phase, done, total } = progress;
        let share = |of: u64| {
            done.saturating_mul(of)
                .checked_div(total)
                .unwrap_or(of)
                .min(of)
        };
        let percent = share(100);
        if self.last == Some((phase, percent)) {
            return;
        }
        let (action, one, many) = match phase {
            Phase::VerifySource => (
                "replaying the audit trails of the source",
                "tenant",
                "tenants",
            ),
            Phase::Copy => ("copying", "row", "rows"),
            Phase::Compare => ("comparing", "row", "rows"),
            Phase::VerifyTarget => (
                "replaying the audit trails of the target",
                "tenant",
                "tenants",
            ),
        };
        let total = format::count(total, one, many);
        let is_new = self.last.is_none_or(|(last, _)| last != phase);
        self.last = Some((phase, percent));
        if self.is_terminal {
            let full = usize::try_from(share(BAR)).unwrap_or_default();
            let empty = usize::try_from(BAR)
                .unwrap_or_default()
                .saturating_sub(full);
            let bar = format!("{}{}", "#".repeat(full), ".".repeat(empty));
            print_stderr(&format!(
                "\r\x1b[K[{bar}] {percent:>3} %  {action}: {done} of {total}"
            ));
        } else if is_new {
            self.output.note(&format!("{action}: {total}"));
        }
    }

    /// Whether rows may have been copied.
    fn has_begun(&self) -> bool {
        self.last
            .is_some_and(|(phase, _)| phase != Phase::VerifySource)
    }

    fn end(&self) {
        if self.is_terminal && self.last.is_some() {
            print_stderr("\r\x1b[K");
        }
    }
}
