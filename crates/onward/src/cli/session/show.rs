//! `onward session show`: the turns of a session, the steps of stuck turns, and its tool calls.

use std::fmt::Write;

use clap::Args;
use onward_core::Timestamp;
use onward_core::call::CallStatus;
use onward_core::turn::Judgement;
use onward_engine::session::SessionView;
use onward_engine::{CallRecord, Session, Turn, TurnStep};

use super::describe_turn;
use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::{Tone, call, format};

/// Steps per turn that are read without `--steps`.
const MAX_STEPS: u32 = 500;
/// Steps that are printed of a stuck turn without `--steps`.
const STUCK_STEPS: usize = 12;

/// Show the turns of a session, the steps of stuck turns, and its open or interrupted tool calls
#[derive(Args)]
pub(crate) struct Show {
    /// Session id, or a unique prefix of it
    #[arg(value_name = "SESSION")]
    id: String,
    /// Maximum number of turns, counted from the last one
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    turns: u32,
    /// Print all steps of all turns
    #[arg(long)]
    steps: bool,
    /// Print all calls, including those with a result
    #[arg(long)]
    calls: bool,
}

pub(super) async fn run(args: &Show, cx: &Context) -> Result {
    let Database {
        engine,
        caller,
        now,
    } = Database::open(cx).await?;
    let steps = if args.steps { u32::MAX } else { MAX_STEPS };
    let view = engine
        .show_session(&caller, &args.id, args.turns, steps)
        .await?;
    if cx.output.json {
        let session = crate::wire::session::Session::new(&view, now);
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
        text.push_str(&turn_line(turn, cx, now));
        let printed = match (args.steps, turn.standing.text_only) {
            (true, _) => steps.as_slice(),
            (false, Some(_)) => &steps[steps.len().saturating_sub(STUCK_STEPS)..],
            (false, None) => &[],
        };
        for step in printed {
            for call in step_lines(step) {
                let width = cx.output.width().unwrap_or(usize::MAX);
                let _ = writeln!(text, "{}", format::truncate(&call, width));
            }
        }
        let is_of_turn =
            |record: &&CallRecord| record.key.turn == turn.number && record.key.agent == turn.agent;
        for record in view.calls.iter().filter(is_of_turn) {
            if args.calls || is_open_or_interrupted(record) {
                text.push_str(&call_lines(record, cx, now));
            }
        }
    }
    text
}

/// Whether a call is printed without `--calls`.
fn is_open_or_interrupted(record: &CallRecord) -> bool {
    record.status().is_open() || record.call.state.interruption().is_some()
}

fn call_lines(record: &CallRecord, cx: &Context, now: Timestamp) -> String {
    let tone = match record.status() {
        CallStatus::Interrupted | CallStatus::Failed => Some(Tone::Bad),
        CallStatus::Requested
        | CallStatus::AwaitingApproval
        | CallStatus::Running
        | CallStatus::Completed
        | CallStatus::Denied
        | CallStatus::Cancelled => None,
    };
    let (tool, input) = (
        format::sanitize_line(&record.tool),
        format::sanitize_line(&record.input),
    );
    let line = format!("  call {:>3}  {tool} `{input}`", record.key.position);
    let width = cx.output.width().unwrap_or(usize::MAX);
    let state = call::describe(record, now);
    format!(
        "{}\n            {}\n",
        format::truncate(&line, width),
        cx.output.paint(tone, &state)
    )
}

fn head(session: &Session, now: Timestamp) -> String {
    let mut text = format!("{} session\n", format::sanitize_line(&session.agent));
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    field("session", &format::sanitize_line(&session.id));
    if let Some(directory) = &session.directory {
        field("directory", &format::sanitize_line(directory));
    }
    field("started", &format::ago(now, session.started_at));
    match session.ended_at {
        Some(ended) => field("ended", &format::ago(now, ended)),
        None => field("activity", &format::ago(now, session.last_seen_at)),
    }
    if session.switched_off {
        field("control", "loop control is off (still recording)");
    }
    text
}

fn turn_line(turn: &Turn, cx: &Context, now: Timestamp) -> String {
    let (state, tone) = describe_turn(turn);
    let mut line = format!("turn {}", turn.number);
    if !turn.agent.is_empty() {
        let _ = write!(line, " of `{}`", format::sanitize_line(&turn.agent));
    }
    let steps = format::count(turn.standing.steps, "step", "steps");
    let _ = write!(
        line,
        ", {}: {}, {steps}, {} in a row without progress (limit {})",
        format::ago(now, turn.began_at),
        cx.output.paint(tone, &state),
        turn.standing.idle_steps,
        turn.threshold
    );
    if turn.standing.rejections > 0 {
        let rejected = format::count(turn.standing.rejections, "call rejected", "calls rejected");
        let _ = write!(line, ", {rejected}");
    }
    line.push('\n');
    line
}

/// The calls of a step, one per line, with the verdict of the step.
fn step_lines(step: &TurnStep) -> Vec<String> {
    let verdict = match (step.judgement, &step.why) {
        (Judgement::Progress, Some(why)) => why.clone(),
        (Judgement::Idle | Judgement::Stalled, _) => {
            format!("no progress, {} in a row", step.idle_steps)
        }
        (Judgement::Progress, None) => "progress".to_owned(),
        (Judgement::Unjudged, _) => "not judged".to_owned(),
    };
    let call = |call: &onward_engine::CallLine| {
        let failed = if call.ok == Some(false) {
            ", failed"
        } else {
            ""
        };
        let reason = call.idle.map(|reason| format!(" ({reason})"));
        format!(
            "  {:>4}  {verdict:<28}  {}: {}{failed}{}",
            step.number,
            format::sanitize_line(&call.tool),
            format::sanitize_line(&call.input),
            reason.unwrap_or_default()
        )
    };
    step.calls.iter().map(call).collect()
}
