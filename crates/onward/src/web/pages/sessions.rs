//! `/sessions` and `/sessions/{id}`: agent sessions reported by hooks, the proxy or the API. The
//! list shows the status of each session; the page of a session shows its turns (`turn.rs`). Open
//! calls can be marked as dead.

mod turn;

use askama::Template;
use axum::extract::Path;
use onward_core::Timestamp;
use onward_core::call::{CallState, CallStatus};
use onward_core::role::Permission;
use onward_core::session::{SessionStatus, SubagentStatus};
use onward_engine::session::{SessionView, Subagent, status};
use onward_engine::{CallKey, CallRecord, SessionLine, Turn};

use super::agent_name::{agent_name, directory, person};
use super::format::{Age, RelativeTime, one_line};
use super::layout::{Layout, Section, render};
use super::tag::Tag;
use super::{FormPost, PageError, PageResult, Visit, redirect, run_to_completion};
use crate::output::budget::session_tokens;
use crate::output::format;
use turn::{CallView, TurnView};

const MAX_SESSIONS: u32 = 100;
const MAX_TURNS: u32 = 20;
const MAX_STEPS_PER_TURN: u32 = 50;
/// Dead calls that are displayed without expanding the list.
const VISIBLE_DEAD: usize = 3;

#[derive(Template)]
#[template(path = "sessions.html")]
struct Sessions {
    layout: Layout,
    filters: Vec<Filter>,
    is_filtered: bool,
    rows: Vec<Row>,
    has_sessions: bool,
    /// Whether there may be more sessions.
    more: bool,
}

/// A status that some session has.
struct Filter {
    link: String,
    label: &'static str,
    count: usize,
    is_selected: bool,
}

struct Row {
    link: String,
    /// The last prompt, or the id.
    name: String,
    is_prompt: bool,
    /// Person, agent and directory.
    who: String,
    tag: Tag,
    since: Age,
    plan: Option<(String, String)>,
    responses: u64,
    dead_calls: usize,
    off: bool,
}

#[derive(Template)]
#[template(path = "session.html")]
struct Session {
    layout: Layout,
    name: String,
    id: String,
    short_id: String,
    tag: Tag,
    since: Age,
    who: String,
    /// "unknown" if no count is known.
    tokens: String,
    host: Option<String>,
    prompt: Option<String>,
    plan: Option<(String, String)>,
    started: RelativeTime,
    seen: RelativeTime,
    ended: Option<RelativeTime>,
    off: bool,
    verdict: Option<String>,
    dead: Vec<CallView>,
    subagents: Vec<SubagentView>,
    turns: Vec<TurnView>,
    close_denied: Option<String>,
}

/// A subagent, with its answer.
struct SubagentView {
    name: String,
    tag: Tag,
    responses: String,
    state: String,
    answer: Option<String>,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    let sessions = engine.list_sessions(&visit.caller, MAX_SESSIONS).await?;
    let now = engine.now();
    let selected = visit.fields.get("status");
    let selected = SessionStatus::ALL
        .into_iter()
        .find(|status| selected == Some(status.as_str()));
    let with_status: Vec<(&SessionLine, SessionStatus)> = sessions
        .iter()
        .map(|line| (line, status(line, now).0))
        .collect();
    let count = |wanted| {
        let same = with_status.iter().filter(|(_, status)| *status == wanted);
        same.count()
    };
    let filters = SessionStatus::ALL.into_iter().map(|status| Filter {
        link: format!("/sessions?status={}", status.as_str()),
        label: Tag::session(status).label,
        count: count(status),
        is_selected: selected == Some(status),
    });
    let filters = filters.filter(|filter| filter.count > 0 || filter.is_selected);
    let mut rows = with_status.clone();
    rows.retain(|(_, status)| selected.is_none_or(|selected| selected == *status));
    // The most urgent status first; the sort is stable.
    rows.sort_by_key(|(_, status)| *status);
    render(&Sessions {
        layout: visit.layout("Sessions", Section::Sessions).await?,
        filters: filters.collect(),
        is_filtered: selected.is_some(),
        has_sessions: !sessions.is_empty(),
        more: sessions.len() >= usize::try_from(MAX_SESSIONS).unwrap_or(usize::MAX),
        rows: rows.iter().map(|(line, _)| Row::new(line, now)).collect(),
    })
}

pub(super) async fn show_one(visit: Visit, Path(id): Path<String>) -> PageResult {
    let engine = &visit.site.engine;
    let view = engine
        .show_session(&visit.caller, &id, MAX_TURNS, MAX_STEPS_PER_TURN)
        .await?;
    let now = engine.now();
    let session = &view.session;
    let (status, since) = view.status(now);
    let place = session.directory.as_deref().map(directory);
    let agent = agent_name(&session.agent);
    let name = match &place {
        Some(place) => format!("{agent} in {place}"),
        None => format!("{agent} session"),
    };
    let who = session.actor.as_deref().map(person);
    let who: Vec<String> = who.into_iter().chain([agent]).collect();
    let calls = |turn: &Turn| -> Vec<&CallRecord> {
        let of_turn = view
            .calls
            .iter()
            .filter(|record| record.key.turn == turn.number && record.key.agent == turn.agent);
        of_turn.collect()
    };
    // Newest turn first. A turn of a subagent without responses is only in the list of subagents.
    let turns = view.turns.iter().rev().filter(|(turn, steps)| {
        turn.agent.is_empty() || !steps.is_empty() || !calls(turn).is_empty()
    });
    let turns = turns.enumerate();
    let turns =
        turns.map(|(index, (turn, steps))| TurnView::new(index, turn, steps, &calls(turn), now));
    let dead = view
        .calls
        .iter()
        .rev()
        .filter(|record| record.status() == CallStatus::Interrupted);
    let owners = view
        .calls
        .iter()
        .rev()
        .filter_map(|record| record.call.owner.as_ref());
    let host = owners.map(|owner| one_line(&owner.host, 60)).next();
    render(&Session {
        layout: visit.layout(&name, Section::Sessions).await?,
        name,
        id: one_line(&session.id, 200),
        short_id: format::session_id(&session.id),
        tag: Tag::session(status),
        since: Age::new(since, now),
        who: who.join(" · "),
        tokens: session_tokens(view.usage.as_ref()),
        host,
        prompt: session
            .prompt
            .as_deref()
            .map(|prompt| one_line(prompt, 100)),
        plan: plan(&visit, &view).await?,
        started: RelativeTime::new(session.started_at, now),
        seen: RelativeTime::new(session.last_seen_at, now),
        ended: session.ended_at.map(|at| RelativeTime::new(at, now)),
        off: session.switched_off,
        verdict: verdict(&view, status, now),
        dead: dead
            .map(|record| CallView::new(record, None, now))
            .collect(),
        subagents: view
            .subagents(now)
            .iter()
            .map(|subagent| SubagentView::new(subagent, now))
            .collect(),
        turns: turns.collect(),
        close_denied: visit.denial(Permission::Intervene),
    })
}

/// The open plan on which the session worked last.
async fn plan(visit: &Visit, view: &SessionView) -> Result<Option<(String, String)>, PageError> {
    let engine = &visit.site.engine;
    let plan = engine
        .plan_of_session(&visit.caller, &view.session.id)
        .await?;
    Ok(plan.map(|(plan, name)| (format!("/plans/{plan}"), one_line(&name, 100))))
}

/// One sentence about a session that needs a person.
fn verdict(view: &SessionView, status: SessionStatus, now: Timestamp) -> Option<String> {
    let mut turns = view.turns.iter().map(|(turn, _)| turn);
    let last = turns.rfind(|turn| turn.agent.is_empty());
    let responses = last.map(|turn| {
        let responses = format::count(turn.standing.idle_steps, "response", "responses");
        format!(
            "{responses} in a row without progress (limit {})",
            turn.threshold
        )
    });
    let responses = responses.unwrap_or_default();
    match status {
        SessionStatus::Looping => Some(format!(
            "{responses}. Onward sent the agent a nudge; see below."
        )),
        SessionStatus::ToolsClosed => Some(format!(
            "{responses}. Onward rejects tool calls until the agent answers in text."
        )),
        SessionStatus::Stopped => Some(format!(
            "Onward stopped this turn: {responses}. The agent waits for your next prompt."
        )),
        SessionStatus::AwaitingApproval => {
            let waiting = view
                .calls
                .iter()
                .find(|record| matches!(record.call.state, CallState::AwaitingApproval { .. }))?;
            Some(format!(
                "The agent asks for your approval in its own window: {} {}",
                one_line(&waiting.tool, 40),
                one_line(&waiting.input, 120)
            ))
        }
        SessionStatus::StaleSubagent => {
            let subagents = view.subagents(now);
            let stale = subagents
                .iter()
                .filter(|subagent| subagent.status == SubagentStatus::Stale);
            Some(format!(
                "{} of {} stale: no recent event, and no end reported. Ask the agent to continue \
                 without it, or interrupt it in its own window.",
                stale.count(),
                format::count(subagents.len() as u64, "subagent is", "subagents are"),
            ))
        }
        SessionStatus::DeadCall
        | SessionStatus::Working
        | SessionStatus::Idle
        | SessionStatus::Ended => None,
    }
}

impl SubagentView {
    fn new(subagent: &Subagent<'_>, now: Timestamp) -> Self {
        let turn = subagent.turn;
        let ago = format::ago(now, subagent.since);
        Self {
            name: one_line(&turn.agent, 60),
            tag: Tag::subagent(subagent.status),
            responses: format::count(turn.standing.steps, "response", "responses"),
            state: match subagent.status {
                SubagentStatus::Stale => format!("last event {ago}"),
                SubagentStatus::Working => format!("began {ago}"),
                SubagentStatus::Ended => ago,
            },
            answer: turn.answer.as_deref().map(|answer| one_line(answer, 200)),
        }
    }
}

/// Marks a call as dead.
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
pub(super) fn session_url(session: &str) -> String {
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
        let (status, since) = status(line, now);
        let prompt = session.prompt.as_deref();
        let who = [
            session.actor.as_deref().map(person),
            Some(agent_name(&session.agent)),
            session.directory.as_deref().map(directory),
        ];
        let who: Vec<String> = who.into_iter().flatten().collect();
        let dead = line
            .calls
            .iter()
            .filter(|record| record.status() == CallStatus::Interrupted);
        Self {
            link: session_url(&session.id),
            name: prompt.map_or_else(|| one_line(&session.id, 40), |text| one_line(text, 80)),
            is_prompt: prompt.is_some(),
            who: who.join(" · "),
            tag: Tag::session(status),
            since: Age::new(since, now),
            plan: line
                .plan
                .as_ref()
                .map(|(plan, name)| (format!("/plans/{plan}"), one_line(name, 60))),
            responses: line.responses,
            dead_calls: dead.count(),
            off: session.switched_off,
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
