//! `/sessions` and `/sessions/{id}`: agents' sessions, as their hooks or a harness tell of them. Each turn
//! with its idle steps against the threshold, its steps, and its calls as chips; what will not answer any
//! more can be closed by hand.

use askama::Template;
use axum::extract::Path;
use onward_core::Timestamp;
use onward_core::call::CallStatus;
use onward_core::role::Permission;
use onward_core::turn::Judgement;
use onward_engine::{CallKey, CallRecord, SessionLine, Turn, TurnStep};

use super::frame::{Frame, Section, render};
use super::show::{Badge, When, gist, text};
use super::{Failed, Page, Posted, Visit, done, to};
use crate::output::call;

/// How many sessions are listed.
const LISTED: u32 = 100;
/// How many turns of a session are shown.
const TURNS: u32 = 20;
/// How many steps of each.
const STEPS: u32 = 50;
/// How many interrupted calls are told of before one asks for the rest.
const LOST: usize = 3;

#[derive(Template)]
#[template(path = "sessions.html")]
struct Sessions {
    frame: Frame,
    rows: Vec<Row>,
    /// Whether there may be more than are shown.
    more: bool,
}

struct Row {
    link: String,
    name: String,
    agent: String,
    directory: String,
    turns: u64,
    held: u64,
    off: bool,
    ended: bool,
    seen: When,
}

#[derive(Template)]
#[template(path = "session.html")]
struct Session {
    frame: Frame,
    id: String,
    agent: String,
    directory: Option<String>,
    started: When,
    seen: When,
    ended: Option<When>,
    off: bool,
    lost: Vec<Chip>,
    turns: Vec<Shown>,
    why_not_close: Option<String>,
}

/// A turn.
struct Shown {
    /// Its place on the page: turns of subagents have numbers of their own.
    place: usize,
    number: u32,
    subagent: Option<String>,
    began: When,
    word: String,
    is_stuck: bool,
    steps: u32,
    idle: u32,
    threshold: u32,
    refusals: u32,
    last: Vec<Step>,
    more: u32,
    chips: Vec<Chip>,
}

/// A step of a turn.
struct Step {
    number: u32,
    verdict: &'static str,
    why: String,
    calls: Vec<(String, String)>,
}

/// A call.
struct Chip {
    id: String,
    badge: Badge,
    tool: String,
    input: String,
    standing: String,
    is_open: bool,
    is_lost: bool,
    close: String,
    subagent: String,
    grounds: Option<String>,
    told: Option<String>,
    result: Option<String>,
}

pub(super) async fn show(visit: Visit) -> Page {
    let engine = &visit.site.engine;
    let sessions = engine.list_sessions(&visit.caller, LISTED).await?;
    let now = engine.now();
    render(&Sessions {
        frame: visit.frame("Sessions", Section::Sessions).await?,
        more: sessions.len() >= usize::try_from(LISTED).unwrap_or(usize::MAX),
        rows: sessions.iter().map(|line| Row::of(line, now)).collect(),
    })
}

pub(super) async fn show_one(visit: Visit, Path(id): Path<String>) -> Page {
    let engine = &visit.site.engine;
    let view = engine
        .show_session(&visit.caller, &id, TURNS, STEPS)
        .await?;
    let now = engine.now();
    let session = &view.session;
    let chips = |turn: &Turn| {
        let of_turn = view
            .calls
            .iter()
            .filter(|record| record.key.turn == turn.number && record.key.agent == turn.agent);
        of_turn.map(|record| Chip::of(record, now)).collect()
    };
    // What is going on stands on top.
    let turns = view.turns.iter().rev();
    let turns = turns.enumerate();
    let turns = turns.map(|(place, (turn, steps))| Shown {
        place,
        ..Shown::of(turn, steps, chips(turn), now)
    });
    let lost = view
        .calls
        .iter()
        .rev()
        .filter(|record| record.status() == CallStatus::Interrupted);
    render(&Session {
        frame: visit
            .frame(&format!("Session {}", session.id), Section::Sessions)
            .await?,
        id: gist(&session.id, 200),
        agent: gist(&session.agent, 60),
        directory: session.directory.as_deref().map(|path| gist(path, 300)),
        started: When::new(session.started_at, now),
        seen: When::new(session.last_seen_at, now),
        ended: session.ended_at.map(|at| When::new(at, now)),
        off: session.switched_off,
        lost: lost.map(|record| Chip::of(record, now)).collect(),
        turns: turns.collect(),
        why_not_close: visit.why_not(Permission::Intervene),
    })
}

/// Gives up a call by hand.
pub(super) async fn close(
    Path((id, turn, position)): Path<(String, u32, u32)>,
    posted: Posted,
) -> Page {
    let (visit, fields) = (posted.visit, posted.fields);
    let session = named(&visit, &id).await?;
    let key = CallKey {
        session: session.clone(),
        agent: fields.get("subagent").unwrap_or_default().to_owned(),
        turn,
        position,
    };
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    done(async move { engine.close_call(&caller, key).await }).await?;
    Ok(to(&format!("{}?done=closed", address(&session))))
}

async fn named(visit: &Visit, id: &str) -> Result<String, Failed> {
    let found = visit.site.engine.find_session(&visit.caller, id).await?;
    Ok(found.id)
}

/// Where a session is shown. Its id is the agent's, and may hold anything.
fn address(session: &str) -> String {
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
    fn of(line: &SessionLine, now: Timestamp) -> Self {
        let session = &line.session;
        Self {
            link: address(&session.id),
            name: gist(&session.id, 40),
            agent: gist(&session.agent, 60),
            directory: gist(session.directory.as_deref().unwrap_or_default(), 100),
            turns: line.turns,
            held: line.held,
            off: session.switched_off,
            ended: session.ended_at.is_some(),
            seen: When::new(session.last_seen_at, now),
        }
    }
}

impl Shown {
    fn of(turn: &Turn, steps: &[TurnStep], chips: Vec<Chip>, now: Timestamp) -> Self {
        let held = turn.standing.held.map(|held| held.as_str());
        let word = match (turn.ended, held) {
            (None, None) => "under way".to_owned(),
            (None, Some(held)) => held.to_owned(),
            (Some((_, why)), None) => why.as_str().to_owned(),
            (Some((_, why)), Some(held)) => format!("{held}, {why}"),
        };
        let shown = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        Self {
            place: 0,
            number: turn.number,
            subagent: (!turn.agent.is_empty()).then(|| gist(&turn.agent, 60)),
            began: When::new(turn.began_at, now),
            word: word.replace('_', " "),
            is_stuck: held.is_some(),
            steps: turn.standing.steps,
            idle: turn.standing.idle_steps,
            threshold: turn.threshold,
            refusals: turn.standing.refusals,
            last: steps.iter().map(Step::of).collect(),
            more: turn.standing.steps.saturating_sub(shown),
            chips,
        }
    }
}

impl Step {
    fn of(step: &TurnStep) -> Self {
        let why = match (step.judgement, &step.why) {
            (Judgement::Progress, Some(why)) => gist(why, 100),
            (Judgement::Idle | Judgement::Stalled, _) => format!("idle {}", step.idle_steps),
            (Judgement::Progress | Judgement::Unjudged, _) => String::new(),
        };
        let call = |call: &onward_engine::CallLine| (gist(&call.tool, 60), gist(&call.input, 120));
        Self {
            number: step.number,
            verdict: step.judgement.as_str(),
            why,
            calls: step.calls.iter().map(call).collect(),
        }
    }
}

impl Chip {
    fn of(record: &CallRecord, now: Timestamp) -> Self {
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
            tool: gist(&record.tool, 60),
            input: gist(&record.input, 200),
            standing: call::standing(record, now),
            is_open: record.status().is_open(),
            is_lost: record.status() == CallStatus::Interrupted,
            close: format!("{}/calls/{turn}/{position}/close", address(session)),
            subagent: agent.clone(),
            grounds: synthetic.map(|said| text(&said.to_operator, 1_000).replace('`', "")),
            told: synthetic.map(|said| text(&said.to_model, 1_000)),
            result: record.result.as_deref().map(|result| text(result, 1_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_holds_anything_stays_one_part_of_an_address() {
        assert_eq!(address("7d0c-1f"), "/sessions/7d0c-1f");
        assert_eq!(address("a/../b?c"), "/sessions/a%2F..%2Fb%3Fc");
        assert_eq!(address("ü"), "/sessions/%C3%BC");
    }
}
