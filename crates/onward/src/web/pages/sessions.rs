//! `/sessions` and `/sessions/{id}`: agent sessions reported by hooks, the proxy or the API, with
//! turns, steps and tool calls. Open calls can be marked as interrupted.

use askama::Template;
use axum::extract::Path;
use onward_core::Timestamp;
use onward_core::call::CallStatus;
use onward_core::role::Permission;
use onward_core::turn::{Judgement, TurnEnd};
use onward_engine::{CallKey, CallRecord, SessionLine, Turn, TurnStep};

use super::format::{Badge, RelativeTime, multiline, one_line, status_label};
use super::layout::{Layout, Section, render};
use super::{FormPost, PageError, PageResult, Visit, redirect, run_to_completion};
use crate::output::call;

const MAX_SESSIONS: u32 = 100;
const MAX_TURNS: u32 = 20;
const MAX_STEPS_PER_TURN: u32 = 50;
/// Interrupted calls that are displayed without expanding the list.
const VISIBLE_INTERRUPTED: usize = 3;

#[derive(Template)]
#[template(path = "sessions.html")]
struct Sessions {
    layout: Layout,
    rows: Vec<Row>,
    /// Whether there may be more sessions.
    more: bool,
}

struct Row {
    link: String,
    name: String,
    agent: String,
    directory: String,
    turns: u64,
    stuck: u64,
    off: bool,
    ended: bool,
    seen: RelativeTime,
}

#[derive(Template)]
#[template(path = "session.html")]
struct Session {
    layout: Layout,
    id: String,
    agent: String,
    directory: Option<String>,
    started: RelativeTime,
    seen: RelativeTime,
    ended: Option<RelativeTime>,
    off: bool,
    interrupted: Vec<CallView>,
    turns: Vec<TurnView>,
    close_denied: Option<String>,
}

struct TurnView {
    /// Index on the page. Turn numbers are not unique, because subagents have their own.
    index: usize,
    number: u32,
    subagent: Option<String>,
    started: RelativeTime,
    state: String,
    is_stuck: bool,
    steps: u32,
    idle: u32,
    threshold: u32,
    rejections: u32,
    last_steps: Vec<StepView>,
    /// Number of earlier steps that are not displayed.
    more: u32,
    calls: Vec<CallView>,
}

/// A step of a turn: one model response and its calls.
struct StepView {
    number: u32,
    judgement: &'static str,
    reason: String,
    calls: Vec<(String, String)>,
}

/// A tool call.
struct CallView {
    id: String,
    badge: Badge,
    tool: String,
    input: String,
    state: String,
    is_open: bool,
    is_interrupted: bool,
    /// URL of the form that marks the call as dead.
    close_url: String,
    subagent: String,
    /// Why Onward interrupted the call.
    reason: Option<String>,
    /// The result that the model received instead of a real one.
    synthetic_result: Option<String>,
    result: Option<String>,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    let sessions = engine.list_sessions(&visit.caller, MAX_SESSIONS).await?;
    let now = engine.now();
    render(&Sessions {
        layout: visit.layout("Sessions", Section::Sessions).await?,
        more: sessions.len() >= usize::try_from(MAX_SESSIONS).unwrap_or(usize::MAX),
        rows: sessions.iter().map(|line| Row::new(line, now)).collect(),
    })
}

pub(super) async fn show_one(visit: Visit, Path(id): Path<String>) -> PageResult {
    let engine = &visit.site.engine;
    let view = engine
        .show_session(&visit.caller, &id, MAX_TURNS, MAX_STEPS_PER_TURN)
        .await?;
    let now = engine.now();
    let session = &view.session;
    let calls = |turn: &Turn| {
        let of_turn = view
            .calls
            .iter()
            .filter(|record| record.key.turn == turn.number && record.key.agent == turn.agent);
        of_turn.map(|record| CallView::new(record, now)).collect()
    };
    // Newest turn first.
    let turns = view.turns.iter().rev().enumerate();
    let turns =
        turns.map(|(index, (turn, steps))| TurnView::new(index, turn, steps, calls(turn), now));
    let interrupted = view
        .calls
        .iter()
        .rev()
        .filter(|record| record.status() == CallStatus::Interrupted);
    render(&Session {
        layout: visit
            .layout(&format!("Session {}", session.id), Section::Sessions)
            .await?,
        id: one_line(&session.id, 200),
        agent: one_line(&session.agent, 60),
        directory: session.directory.as_deref().map(|path| one_line(path, 300)),
        started: RelativeTime::new(session.started_at, now),
        seen: RelativeTime::new(session.last_seen_at, now),
        ended: session.ended_at.map(|at| RelativeTime::new(at, now)),
        off: session.switched_off,
        interrupted: interrupted
            .map(|record| CallView::new(record, now))
            .collect(),
        turns: turns.collect(),
        close_denied: visit.denial(Permission::Intervene),
    })
}

/// Marks a call as interrupted.
pub(super) async fn close(
    Path((id, turn, position)): Path<(String, u32, u32)>,
    post: FormPost,
) -> PageResult {
    let FormPost { visit, fields } = post;
    let session = find_session(&visit, &id).await?;
    let key = CallKey {
        session: session.clone(),
        agent: fields.get("subagent").unwrap_or_default().to_owned(),
        turn,
        position,
    };
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.interrupt_call(&caller, key).await }).await?;
    Ok(redirect(&format!("{}?done=closed", session_url(&session))))
}

async fn find_session(visit: &Visit, id: &str) -> Result<String, PageError> {
    let found = visit.site.engine.find_session(&visit.caller, id).await?;
    Ok(found.id)
}

/// The URL of a session page. Agents choose session ids, so all special characters are escaped.
fn session_url(session: &str) -> String {
    let mut path = String::from("/sessions/");
    for byte in session.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                path.push(char::from(byte));
            }
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

impl Row {
    fn new(line: &SessionLine, now: Timestamp) -> Self {
        let session = &line.session;
        Self {
            link: session_url(&session.id),
            name: one_line(&session.id, 40),
            agent: one_line(&session.agent, 60),
            directory: one_line(session.directory.as_deref().unwrap_or_default(), 100),
            turns: line.turns,
            stuck: line.held,
            off: session.switched_off,
            ended: session.ended_at.is_some(),
            seen: RelativeTime::new(session.last_seen_at, now),
        }
    }
}

impl TurnView {
    fn new(
        index: usize,
        turn: &Turn,
        steps: &[TurnStep],
        calls: Vec<CallView>,
        now: Timestamp,
    ) -> Self {
        let held = turn
            .standing
            .text_only
            .map(|held| status_label(held.as_str()));
        let is_stuck = held.is_some();
        let end = turn.ended.map(|(_, end)| end_label(end).to_owned());
        let state: Vec<String> = held.into_iter().chain(end).collect();
        let state = if state.is_empty() {
            "in progress".to_owned()
        } else {
            state.join(", ")
        };
        let displayed = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        Self {
            index,
            number: turn.number,
            subagent: (!turn.agent.is_empty()).then(|| one_line(&turn.agent, 60)),
            started: RelativeTime::new(turn.began_at, now),
            state,
            is_stuck,
            steps: turn.standing.steps,
            idle: turn.standing.idle_steps,
            threshold: turn.threshold,
            rejections: turn.standing.rejections,
            last_steps: steps.iter().map(StepView::new).collect(),
            more: turn.standing.steps.saturating_sub(displayed),
            calls,
        }
    }
}

fn end_label(end: TurnEnd) -> &'static str {
    match end {
        TurnEnd::Answered => "answered",
        TurnEnd::NextPrompt => "ended by the next prompt",
        TurnEnd::Stopped => "stopped",
        TurnEnd::SessionEnded => "ended with the session",
    }
}

impl StepView {
    fn new(step: &TurnStep) -> Self {
        let reason = match (step.judgement, &step.why) {
            (Judgement::Progress, Some(reason)) => one_line(reason, 100),
            (Judgement::Idle | Judgement::Stalled, Some(reason)) => {
                format!("{} in a row: {}", step.idle_steps, one_line(reason, 200))
            }
            (Judgement::Idle | Judgement::Stalled, None) => {
                format!("{} in a row", step.idle_steps)
            }
            (Judgement::Progress | Judgement::Unjudged, _) => String::new(),
        };
        let call =
            |call: &onward_engine::CallLine| (one_line(&call.tool, 60), one_line(&call.input, 120));
        Self {
            number: step.number,
            judgement: match step.judgement {
                Judgement::Progress => "progress",
                Judgement::Idle => "no progress",
                Judgement::Stalled => "stuck",
                Judgement::Unjudged => "not judged",
            },
            reason,
            calls: step.calls.iter().map(call).collect(),
        }
    }
}

impl CallView {
    fn new(record: &CallRecord, now: Timestamp) -> Self {
        let CallKey {
            session,
            agent,
            turn,
            position,
        } = &record.key;
        let synthetic = record.synthetic.as_ref();
        Self {
            id: format!("{turn}-{position}"),
            badge: Badge::call(record.status()),
            tool: one_line(&record.tool, 60),
            input: one_line(&record.input, 200),
            state: call::describe(record, now),
            is_open: record.status().is_open(),
            is_interrupted: record.status() == CallStatus::Interrupted,
            close_url: format!("{}/calls/{turn}/{position}/close", session_url(session)),
            subagent: agent.clone(),
            reason: synthetic
                .map(|synthetic| multiline(&synthetic.to_operator, 1_000).replace('`', "")),
            synthetic_result: synthetic.map(|synthetic| multiline(&synthetic.to_model, 1_000)),
            result: record
                .result
                .as_deref()
                .map(|result| multiline(result, 1_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_escaped_in_urls() {
        assert_eq!(session_url("7d0c-1f"), "/sessions/7d0c-1f");
        assert_eq!(session_url("a/../b?c"), "/sessions/a%2F..%2Fb%3Fc");
        assert_eq!(session_url("ü"), "/sessions/%C3%BC");
    }
}
