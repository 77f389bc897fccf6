//! Rows of sessions, their turns and steps, and what the detector remembers.

use onward_core::Timestamp;
use onward_core::turn::ladder::{Held, Standing};
use onward_core::turn::{Judgement, State, TurnEnd};
use serde_json::{Value as Json, json};

use crate::codec::{decode_turn, encode_turn};
use crate::error::Error;
use crate::value::{Cells, Row, Value, params};

/// One run of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The id that the agent gives.
    pub id: String,
    /// Which agent.
    pub agent: String,
    /// Where it works.
    pub directory: Option<String>,
    /// When it was first heard of.
    pub started_at: Timestamp,
    /// When it was last heard of.
    pub last_seen_at: Timestamp,
    /// When it ended, as far as somebody said so.
    pub ended_at: Option<Timestamp>,
    /// Whether a person wants it left alone.
    pub switched_off: bool,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLine {
    /// The session.
    pub session: Session,
    /// How many turns it had.
    pub turns: u64,
    /// How many of them had to end in text.
    pub held: u64,
}

/// A turn of an agent, or of a subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Which one, from 1.
    pub number: u32,
    /// Which subagent's; the agent's own where it is empty.
    pub agent: String,
    /// What the agent calls it.
    pub key: Option<String>,
    /// When it began.
    pub began_at: Timestamp,
    /// When a step of it last got somewhere.
    pub progressed_at: Option<Timestamp>,
    /// When it ended, and why.
    pub ended: Option<(Timestamp, TurnEnd)>,
    /// Where it stands.
    pub standing: Standing,
    /// How many idle steps in a row are a stall.
    pub threshold: u32,
    /// How its last step was judged.
    pub judgement: Option<Judgement>,
}

/// A step of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnStep {
    /// Which one, from 1.
    pub number: u32,
    /// When it was seen.
    pub at: Timestamp,
    /// How it was judged.
    pub judgement: Judgement,
    /// What made it count, where it did.
    pub why: Option<String>,
    /// Idle steps in a row, this one included.
    pub idle_steps: u32,
    /// What it called.
    pub calls: Vec<CallLine>,
}

/// A call of a step, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLine {
    /// Which tool.
    pub tool: String,
    /// How its input begins.
    pub input: String,
    /// Whether it succeeded, where somebody said.
    pub ok: Option<bool>,
    /// How its output begins.
    pub output: String,
}

/// What is remembered of an agent, or of a subagent, between two hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// Which subagent; the agent itself where it is empty.
    pub agent: String,
    /// Which turn the state belongs to.
    pub turn: u32,
    /// What the detector remembers.
    pub state: State,
    /// Why the state could not be read, and is a fresh one.
    pub unreadable: Option<String>,
    /// What the working tree looked like when last seen.
    pub fingerprint: Option<String>,
    /// The calls that were seen or refused last.
    pub known_calls: Vec<String>,
    /// Whether the agent says when a whole batch is done.
    pub batches: bool,
}

/// Reads a row of `{session}`.
pub(crate) fn session(row: Row) -> Result<Session, Error> {
    read(&mut row.cells("sessions"))
}

/// The same with its counts.
pub(crate) fn line(row: Row) -> Result<SessionLine, Error> {
    let mut cells = row.cells("sessions");
    Ok(SessionLine {
        session: read(&mut cells)?,
        turns: cells.u64("turns")?,
        held: cells.u64("held")?,
    })
}

fn read(cells: &mut Cells) -> Result<Session, Error> {
    Ok(Session {
        id: cells.string("session_id")?,
        agent: cells.string("agent")?,
        directory: cells.maybe_string("directory")?,
        started_at: cells.at("started_at")?,
        last_seen_at: cells.at("last_seen_at")?,
        ended_at: cells.maybe_at("ended_at")?,
        switched_off: cells.flag("switched_off")?,
    })
}

/// Reads a row of `{turn}`.
pub(crate) fn turn(row: Row) -> Result<Turn, Error> {
    let mut cells = row.cells("turns");
    let number = cells.u32("turn")?;
    let agent = cells.string("agent_id")?;
    let key = cells.maybe_string("turn_key")?;
    let began_at = cells.at("began_at")?;
    let progressed_at = cells.maybe_at("progressed_at")?;
    let ended_at = cells.maybe_at("ended_at")?;
    let why: Option<TurnEnd> = maybe_word(&mut cells, "why_ended")?;
    let ended = match (ended_at, why) {
        (Some(at), Some(why)) => Some((at, why)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(cells.corrupt("why_ended", "does not go with `ended_at`"));
        }
    };
    let steps = cells.u32("steps")?;
    let idle_steps = cells.u32("idle_steps")?;
    let threshold = cells.u32("threshold")?;
    let judgement = maybe_word(&mut cells, "verdict")?;
    let held: Option<Held> = maybe_word(&mut cells, "held")?;
    let nudged = cells.flag("nudged")?;
    let refusals = cells.u32("refusals")?;
    Ok(Turn {
        number,
        agent,
        key,
        began_at,
        progressed_at,
        ended,
        standing: Standing {
            steps,
            idle_steps,
            held,
            nudged,
            refusals,
        },
        threshold,
        judgement,
    })
}

fn maybe_word<T: std::str::FromStr>(
    cells: &mut Cells,
    column: &'static str,
) -> Result<Option<T>, Error>
where
    T::Err: std::fmt::Display,
{
    let Some(word) = cells.maybe_text(column)? else {
        return Ok(None);
    };
    let word = word.parse().map(Some);
    word.map_err(|why: T::Err| cells.corrupt(column, why.to_string()))
}

/// What `turn_write` takes behind the session.
pub(crate) fn of_turn(turn: &Turn) -> Vec<Value> {
    let standing = &turn.standing;
    params![
        &turn.agent,
        turn.number,
        turn.key.as_deref(),
        turn.began_at,
        turn.progressed_at,
        turn.ended.map(|(at, _)| at),
        turn.ended.map(|(_, why)| why.as_str()),
        standing.steps,
        standing.idle_steps,
        turn.threshold,
        turn.judgement.map(Judgement::as_str),
        standing.held.map(Held::as_str),
        standing.nudged,
        standing.refusals,
    ]
}

/// Reads what is remembered. A state that cannot be read is a fresh one, and says so.
pub(crate) fn watched(row: Row) -> Result<Watched, Error> {
    let mut cells = row.cells("session_agents");
    let agent = cells.string("agent_id")?;
    let turn = cells.u32("turn")?;
    let (state, unreadable) = match decode_turn(&cells.text("state")?) {
        Ok(state) => (state, None),
        Err(why) => (State::default(), Some(why.to_string())),
    };
    Ok(Watched {
        agent,
        turn,
        state,
        unreadable,
        fingerprint: cells.maybe_string("fingerprint")?,
        known_calls: texts(cells.json("known_calls")?),
        batches: cells.flag("batches")?,
    })
}

fn texts(json: Json) -> Vec<String> {
    let all = json.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter()
        .filter_map(Json::as_str)
        .map(str::to_owned)
        .collect()
}

/// What `session_agent_write` takes behind the session.
pub(crate) fn of_watched(watched: &Watched) -> Vec<Value> {
    params![
        &watched.agent,
        watched.turn,
        encode_turn(&watched.state),
        watched.fingerprint.as_deref(),
        &json!(watched.known_calls),
        watched.batches,
    ]
}

/// Reads a step.
pub(crate) fn step(row: Row) -> Result<TurnStep, Error> {
    let mut cells = row.cells("turn_steps");
    let number = cells.u32("step")?;
    let at = cells.at("at")?;
    let judgement = cells.word("verdict")?;
    let why = cells.maybe_string("why")?;
    let idle_steps = cells.u32("idle_steps")?;
    let calls = cells.json("calls")?;
    let calls = calls.as_array().and_then(|calls| {
        let lines = calls.iter().map(call);
        lines.collect::<Option<Vec<CallLine>>>()
    });
    let calls = calls.ok_or_else(|| cells.corrupt("calls", "holds no list of calls"))?;
    Ok(TurnStep {
        number,
        at,
        judgement,
        why,
        idle_steps,
        calls,
    })
}

fn call(json: &Json) -> Option<CallLine> {
    let text = |key: &str| json.get(key)?.as_str().map(str::to_owned);
    Some(CallLine {
        tool: text("tool")?,
        input: text("input")?,
        ok: json.get("ok").and_then(Json::as_bool),
        output: text("output")?,
    })
}

/// The calls of a step as they are stored.
pub(crate) fn of_calls(calls: &[CallLine]) -> Json {
    let line = |call: &CallLine| json!({ "tool": call.tool, "input": call.input, "ok": call.ok, "output": call.output });
    calls.iter().map(line).collect()
}
