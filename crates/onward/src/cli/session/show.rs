//! `onward session show`: the turns of a session, the steps of those that got stuck, and its calls: those
//! that are open or were given up, or all of them.

use std::fmt::Write;

use clap::Args;
use onward_core::Timestamp;
use onward_core::call::CallStatus;
use onward_core::turn::Judgement;
use onward_engine::session::SessionView;
use onward_engine::{CallRecord, Session, Turn, TurnStep};

use super::standing;
use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::{Tone, call, words};

/// How many steps of a turn are read.
const STEPS: u32 = 500;
/// How many steps of a turn that got stuck are shown.
const SHOWN: usize = 12;

/// Show the turns of a session, the steps of those that got stuck, and its calls
#[derive(Args)]
pub(crate) struct Show {
    /// The session: its id, or the beginning of it
    #[arg(value_name = "SESSION")]
    id: String,
    /// How many turns at most, from the last one back
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    turns: u32,
    /// The steps of every turn, all of them
    #[arg(long)]
    steps: bool,
    /// Every call, also those that were answered
    #[arg(long)]
    calls: bool,
}

pub(super) async fn run(args: &Show, cx: &Context) -> Result {
    let Database {
        engine,
        caller,
        now,
    } = Database::open(cx).await?;
    let steps = if args.steps { u32::MAX } else { STEPS };
    let view = engine
        .show_session(&caller, &args.id, args.turns, steps)
        .await?;
    if cx.output.json {
        let session = crate::wire::session::Session::of(&view, now);
        cx.output.print_json(&session)?;
        return Ok(Exit::Done);
    }
    cx.output.print(&text(&view, args, cx, now))?;
    Ok(Exit::Done)
}

fn text(view: &SessionView, args: &Show, cx: &Context, now: Timestamp) -> String {
    let mut text = head(&view.session, now);
    for (turn, steps) in &view.turns {
        text.push('\n');
        text.push_str(&line(turn, cx, now));
        let shown = match (args.steps, turn.standing.held) {
            (true, _) => steps.as_slice(),
            (false, Some(_)) => &steps[steps.len().saturating_sub(SHOWN)..],
            (false, None) => &[],
        };
        for step in shown {
            for call in calls(step) {
                let width = cx.output.width().unwrap_or(usize::MAX);
                let _ = writeln!(text, "{}", words::cut(&call, width));
            }
        }
        let of_turn =
            |record: &&CallRecord| record.key.turn == turn.number && record.key.agent == turn.agent;
        for record in view.calls.iter().filter(of_turn) {
            if args.calls || is_open_or_lost(record) {
                text.push_str(&ledger_line(record, cx, now));
            }
        }
    }
    text
}

/// What is worth a line without being asked for: what is not over, or never really ended.
fn is_open_or_lost(record: &CallRecord) -> bool {
    record.status().is_open() || record.call.state.interruption().is_some()
}

fn ledger_line(record: &CallRecord, cx: &Context, now: Timestamp) -> String {
    let tone = match record.status() {
        CallStatus::Interrupted | CallStatus::Failed => Some(Tone::Bad),
        CallStatus::Requested
        | CallStatus::AwaitingApproval
        | CallStatus::Running
        | CallStatus::Completed
        | CallStatus::Denied
        | CallStatus::Cancelled => None,
    };
    let (tool, input) = (words::line(&record.tool), words::line(&record.input));
    let line = format!("  call {:>3}  {tool} `{input}`", record.key.position);
    let width = cx.output.width().unwrap_or(usize::MAX);
    let standing = call::standing(record, now);
    format!(
        "{}\n            {}\n",
        words::cut(&line, width),
        cx.output.paint(tone, &standing)
    )
}

fn head(session: &Session, now: Timestamp) -> String {
    let mut text = format!("{} session\n", words::line(&session.agent));
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    field("session", &words::line(&session.id));
    if let Some(directory) = &session.directory {
        field("directory", &words::line(directory));
    }
    field("started", &words::ago(now, session.started_at));
    match session.ended_at {
        Some(ended) => field("ended", &words::ago(now, ended)),
        None => field("seen", &words::ago(now, session.last_seen_at)),
    }
    if session.switched_off {
        field("off", "nothing is done about its turns");
    }
    text
}

fn line(turn: &Turn, cx: &Context, now: Timestamp) -> String {
    let (word, tone) = standing(turn);
    let mut line = format!("turn {}", turn.number);
    if !turn.agent.is_empty() {
        let _ = write!(line, " of `{}`", words::line(&turn.agent));
    }
    let steps = words::count(turn.standing.steps, "step", "steps");
    let _ = write!(
        line,
        ", {}: {}, {steps}, {} idle of {}",
        words::ago(now, turn.began_at),
        cx.output.paint(tone, &word),
        turn.standing.idle_steps,
        turn.threshold
    );
    if turn.standing.refusals > 0 {
        let refused = words::count(turn.standing.refusals, "call refused", "calls refused");
        let _ = write!(line, ", {refused}");
    }
    line.push('\n');
    line
}

/// The calls of a step, each on a line, with what became of the step.
fn calls(step: &TurnStep) -> Vec<String> {
    let became = match (step.judgement, &step.why) {
        (Judgement::Progress, Some(why)) => why.clone(),
        (Judgement::Idle | Judgement::Stalled, _) => format!("idle {}", step.idle_steps),
        (Judgement::Progress | Judgement::Unjudged, _) => step.judgement.as_str().to_owned(),
    };
    let call = |call: &onward_engine::CallLine| {
        let failed = if call.ok == Some(false) {
            ", failed"
        } else {
            ""
        };
        format!(
            "  {:>4}  {became:<28}  {}: {}{failed}",
            step.number,
            words::line(&call.tool),
            words::line(&call.input)
        )
    };
    step.calls.iter().map(call).collect()
}
