//! `onward session show`: the turns of a session, the responses of looping turns, and its tool
//! calls.

use std::fmt::Write;
use std::path::Path;

use clap::Args;
use onward_core::Timestamp;
use onward_core::call::CallStatus;
use onward_core::session::SubagentStatus;
use onward_core::turn::Judgement;
use onward_engine::session::{SessionView, Subagent};
use onward_engine::{CallLine, CallRecord, Turn, TurnStep};

use super::describe_turn;
use crate::cli::Context;
use crate::cli::database::Database;
use crate::config::location;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::status::{session_label, session_tone};
use crate::output::table::{Cell, Table};
use crate::output::{Tone, budget, call, format, heading};

/// Responses per turn that are read without `--steps`.
const MAX_STEPS: u32 = 500;
/// Responses that are printed of a looping turn without `--steps`.
const LOOP_STEPS: usize = 12;

/// Show the turns of a session, looping responses, and open or dead tool calls
#[derive(Args)]
pub(crate) struct Show {
    /// Session id, or a unique prefix of it
    #[arg(value_name = "SESSION")]
    id: String,
    /// Maximum number of turns, counted from the last one
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    turns: u32,
    /// Print all responses of all turns
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
    let mut text = head(view, cx, now);
    text.push_str(&subagents(view, cx, now));
    for (turn, steps) in &view.turns {
        text.push('\n');
        text.push_str(&turn_lines(turn, cx, now));
        let printed = match (args.steps, turn.standing.text_only) {
            (true, _) => steps.as_slice(),
            (false, Some(_)) => &steps[steps.len().saturating_sub(LOOP_STEPS)..],
            (false, None) => &[],
        };
        text.push_str(&responses(printed, cx));
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

/// The subagents with their answers, stale ones first.
fn subagents(view: &SessionView, cx: &Context, now: Timestamp) -> String {
    let subagents = view.subagents(now);
    if subagents.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", cx.output.paint(Some(Tone::Heading), "Subagents"));
    for subagent in &subagents {
        let (state, tone) = describe_subagent(subagent, now);
        let name = format::sanitize_line(&subagent.turn.agent);
        let _ = writeln!(text, "  `{name}`: {}", cx.output.paint(Some(tone), &state));
        if let Some(answer) = &subagent.turn.answer {
            let width = cx.output.text_width().saturating_sub(4);
            for line in format::wrapped(&format::sanitize_line(answer), width) {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    text
}

fn describe_subagent(subagent: &Subagent<'_>, now: Timestamp) -> (String, Tone) {
    let responses = format::count(subagent.turn.standing.steps, "response", "responses");
    let ago = format::ago(now, subagent.since);
    match subagent.status {
        SubagentStatus::Stale => (format!("stale, last event {ago}, {responses}"), Tone::Alert),
        SubagentStatus::Working => (format!("working, began {ago}, {responses}"), Tone::Active),
        SubagentStatus::Ended => (format!("ended {ago}, {responses}"), Tone::Good),
    }
}

/// Whether a call is printed without `--calls`.
fn is_open_or_interrupted(record: &CallRecord) -> bool {
    record.status().is_open() || record.call.state.interruption().is_some()
}

fn call_lines(record: &CallRecord, cx: &Context, now: Timestamp) -> String {
    let tone = match record.status() {
        CallStatus::Interrupted | CallStatus::Failed => Tone::Alert,
        CallStatus::AwaitingApproval => Tone::Attention,
        CallStatus::Running => Tone::Active,
        CallStatus::Completed => Tone::Good,
        CallStatus::Requested | CallStatus::Denied | CallStatus::Cancelled => Tone::Faint,
    };
    let (tool, input) = (
        format::sanitize_line(&record.tool),
        format::sanitize_line(&record.input),
    );
    let line = format!("  call {:>3}  {tool} `{input}`", record.key.position);
    let width = cx.output.width().unwrap_or(usize::MAX);
    let mut text = format!("{}\n", format::truncate(&line, width));
    let state = call::describe(record, now).text(now);
    for line in format::wrapped(&state, width.saturating_sub(12)) {
        let _ = writeln!(text, "            {}", cx.output.paint(Some(tone), &line));
    }
    text
}

fn head(view: &SessionView, cx: &Context, now: Timestamp) -> String {
    let session = &view.session;
    let (status, since) = view.status(now);
    let agent = format::sanitize_line(&session.agent);
    let title = match &session.directory {
        Some(directory) => {
            let directory = location::display(Path::new(directory));
            format!("{agent} in {}", format::sanitize_line(&directory))
        }
        None => format!("{agent} session"),
    };
    let label = session_label(status);
    let mut text = heading(cx.output, &title, label, Some(session_tone(status)));
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<13}  {value}");
    };
    let zone = cx.output.zone();
    let at = |at| format!("{} ({})", zone.time(at, now), format::ago(now, at));
    field("session", &format::sanitize_line(&session.id));
    if let Some(actor) = &session.actor {
        field("started by", &format::person(actor));
    }
    field("started", &at(session.started_at));
    match session.ended_at {
        Some(ended) => field("ended", &at(ended)),
        None => field("last activity", &at(session.last_seen_at)),
    }
    if status.is_trouble() {
        field(label, &format!("since {}", at(since)));
    }
    if let Some(prompt) = &session.prompt {
        let width = cx.output.text_width().saturating_sub(17);
        let prompt = format::sanitize_line(prompt);
        field("last prompt", &format::truncate(&prompt, width));
    }
    field("tokens", &budget::session_tokens(view.usage.as_ref()));
    if session.switched_off {
        field("loop control", "off (still recording)");
    }
    text
}

fn turn_lines(turn: &Turn, cx: &Context, now: Timestamp) -> String {
    let (state, tone) = describe_turn(turn);
    let mut name = format!("Turn {}", turn.number);
    if !turn.agent.is_empty() {
        let _ = write!(name, " of `{}`", format::sanitize_line(&turn.agent));
    }
    let mut parts = vec![
        format::ago(now, turn.began_at),
        format::count(turn.standing.steps, "response", "responses"),
    ];
    if turn.standing.idle_steps > 0 {
        parts.push(format!(
            "{} in a row without progress (limit {})",
            turn.standing.idle_steps, turn.threshold
        ));
    }
    if turn.standing.rejections > 0 {
        let rejected = format::count(turn.standing.rejections, "call rejected", "calls rejected");
        parts.push(rejected);
    }
    let name = cx.output.paint(Some(Tone::Heading), &name);
    let state = cx.output.paint(tone, &state);
    format!("{name}: {state}\n  {}\n", parts.join(" · "))
}

/// The calls of each response with its verdict, and the texts that were sent to the model.
fn responses(steps: &[TurnStep], cx: &Context) -> String {
    let mut text = String::new();
    let mut table = Table::new(&["", "", ""]).with_flexible(&[1]);
    for step in steps {
        let (verdict, tone) = verdict(step);
        for (index, call) in step.calls.iter().enumerate() {
            let is_first = index == 0;
            table.row([
                if is_first {
                    Cell::number(step.number)
                } else {
                    "".into()
                },
                Cell::summary(describe_call(call)),
                Cell::toned(if is_first { &verdict } else { "" }, Some(tone)),
            ]);
        }
        if let Some(message) = &step.message {
            let table =
                std::mem::replace(&mut table, Table::new(&["", "", ""]).with_flexible(&[1]));
            text.push_str(&table.render(cx.output, "  "));
            let width = cx.output.text_width().saturating_sub(6);
            let message = format!("sent to the model: {}", format::sanitize_line(message));
            for line in format::wrapped(&message, width) {
                let line = cx.output.paint(Some(Tone::Attention), &format!("> {line}"));
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    text.push_str(&table.render(cx.output, "  "));
    text
}

fn describe_call(call: &CallLine) -> String {
    let failed = if call.ok == Some(false) {
        ", failed"
    } else {
        ""
    };
    format!("{}: {}{failed}", call.tool, call.input)
}

/// The verdict on a response: the reason, and the number of responses in a row without progress.
fn verdict(step: &TurnStep) -> (String, Tone) {
    match (step.judgement, &step.why) {
        (Judgement::Idle | Judgement::Stalled, why) => {
            let reason = step.calls.iter().rev().find_map(|call| call.idle);
            let reason = reason.map(|reason| reason.to_string());
            let reason = reason.or_else(|| why.clone());
            let reason = reason.unwrap_or_else(|| "no progress".to_owned());
            let text = match step.idle_steps {
                0 | 1 => reason,
                row => format!("{reason} ({row} in a row)"),
            };
            (text, Tone::Attention)
        }
        (Judgement::Progress, Some(why)) => (why.clone(), Tone::Faint),
        (Judgement::Progress, None) => ("progress".to_owned(), Tone::Faint),
        (Judgement::Unjudged, _) => ("not judged".to_owned(), Tone::Faint),
    }
}
