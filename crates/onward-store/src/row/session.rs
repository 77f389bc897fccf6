//! Rows of agent sessions, their turns and steps, and the state of the turn detector.

use onward_core::call::Owner;
use onward_core::capture::{Task, TaskStatus};
use onward_core::id::ClaimToken;
use onward_core::turn::escalation::{EscalationState, TextOnlyReason};
use onward_core::turn::{IdleReason, Judgement, State, TurnEnd};
use onward_core::{PlanId, StepId, Timestamp};
use serde::{Deserialize, Serialize};

use super::call::{CallRecord, owner};
use super::mirror;
use crate::codec::{decode_turn, encode_turn, json};
use crate::error::Error;
use crate::value::{Cells, Row, Value, params};

/// An agent session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Id from the agent.
    pub id: String,
    /// Agent name.
    pub agent: String,
    /// Working directory.
    pub directory: Option<String>,
    /// Who runs the agent: the first caller that reported the session.
    pub actor: Option<String>,
    /// The beginning of the last prompt, without secrets.
    pub prompt: Option<String>,
    /// First activity.
    pub started_at: Timestamp,
    /// Last activity.
    pub last_seen_at: Timestamp,
    /// Time of its end, if it was reported.
    pub ended_at: Option<Timestamp>,
    /// Whether a user has switched monitoring off.
    pub switched_off: bool,
    /// Claims in the results of its calls, in order. They may have ended since.
    pub claims: Vec<SeenClaim>,
    /// The last summary of the project that its agent received.
    pub primed: Option<Primed>,
    /// The process whose exit ends it: the agent, or the server of a stdio connection.
    pub owner: Option<Owner>,
}

/// A summary of the project for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Primed {
    /// The event that requested it.
    pub event: String,
    /// When it was requested.
    pub at: Timestamp,
}

/// An agent's own task list, and the plan that mirrors it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The plan.
    pub plan: Option<PlanId>,
    /// Whether the plan began as an approved plan.
    pub is_approved: bool,
    /// Whether the plan mirrors the list.
    pub is_listed: bool,
    /// The turn of the last report.
    pub turn: u32,
    /// The list.
    pub tasks: Vec<Task>,
    /// The plan that the session has resumed with a tool since its last list.
    pub taken_up: Option<PlanId>,
    /// The steps that the session wrote.
    pub own: Vec<StepId>,
}

/// The stored form of [`Captured`].
#[derive(Serialize, Deserialize)]
struct CapturedJson {
    plan: Option<String>,
    approved: bool,
    listed: bool,
    turn: u32,
    tasks: Vec<TaskJson>,
    taken_up: Option<String>,
    own: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct TaskJson {
    key: Option<String>,
    title: String,
    details: Option<String>,
    status: String,
    step: Option<String>,
}

/// Encodes a captured list.
pub(crate) fn of_captured(captured: &Captured) -> Result<String, Error> {
    let task = |task: &Task| TaskJson {
        key: task.key.clone(),
        title: task.title.clone(),
        details: task.details.clone(),
        status: task.status.as_str().to_owned(),
        step: task.step.map(|step| step.to_string()),
    };
    let stored = CapturedJson {
        plan: captured.plan.map(|plan| plan.to_string()),
        approved: captured.is_approved,
        listed: captured.is_listed,
        turn: captured.turn,
        tasks: captured.tasks.iter().map(task).collect(),
        taken_up: captured.taken_up.map(|plan| plan.to_string()),
        own: captured.own.iter().map(ToString::to_string).collect(),
    };
    serde_json::to_string(&stored)
        .map_err(|error| Error::refused(error.to_string()).caused_by(error))
}

/// Reads the captured list of a session. A list that cannot be read counts as empty: the agent
/// reports it again.
pub(crate) fn captured(row: Row) -> Result<Option<Captured>, Error> {
    let stored = row.cells("sessions").maybe_string("captured")?;
    let stored: Option<CapturedJson> = stored.and_then(|text| serde_json::from_str(&text).ok());
    let task = |task: TaskJson| {
        let status = TaskStatus::ALL.into_iter();
        let status = status.into_iter().find(|one| one.as_str() == task.status);
        Task {
            key: task.key,
            title: task.title,
            details: task.details,
            status: status.unwrap_or(TaskStatus::Pending),
            step: task.step.and_then(|step| step.parse().ok()),
        }
    };
    Ok(stored.map(|stored| Captured {
        plan: stored.plan.and_then(|plan| plan.parse().ok()),
        is_approved: stored.approved,
        is_listed: stored.listed,
        turn: stored.turn,
        tasks: stored.tasks.into_iter().map(task).collect(),
        taken_up: stored.taken_up.and_then(|plan| plan.parse().ok()),
        own: (stored.own.iter().filter_map(|step| step.parse().ok())).collect(),
    }))
}

/// A claim that was seen in the result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenClaim {
    /// The step.
    pub step: StepId,
    /// The claim token.
    pub token: ClaimToken,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLine {
    /// The session.
    pub session: Session,
    /// Number of turns.
    pub turns: u64,
    /// Number of turns that were restricted to text.
    pub held: u64,
    /// Number of model responses with tool calls, in all turns.
    pub responses: u64,
    /// The last turn of the agent itself.
    pub last_turn: Option<Turn>,
    /// The last turn of each subagent, if one of them has not ended.
    pub subagents: Vec<Turn>,
    /// Open and interrupted calls, in request order.
    pub calls: Vec<CallRecord>,
    /// The open plan on which the session worked last.
    pub plan: Option<(PlanId, String)>,
}

/// A turn of an agent, or of a subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Turn number, from 1.
    pub number: u32,
    /// Subagent; empty for the agent itself.
    pub agent: String,
    /// Turn id from the agent.
    pub key: Option<String>,
    /// Time of its beginning.
    pub began_at: Timestamp,
    /// Time of the last step with progress.
    pub progressed_at: Option<Timestamp>,
    /// Time and reason of its end.
    pub ended: Option<(Timestamp, TurnEnd)>,
    /// Escalation state.
    pub standing: EscalationState,
    /// Number of consecutive idle steps that count as a stall.
    pub threshold: u32,
    /// Verdict of its last step.
    pub judgement: Option<Judgement>,
    /// The last event of a subagent. The last change of a turn of the agent itself.
    pub seen_at: Timestamp,
    /// The beginning of a subagent's answer, without secrets.
    pub answer: Option<String>,
}

/// A step of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnStep {
    /// Step number, from 1.
    pub number: u32,
    /// Time of the step.
    pub at: Timestamp,
    /// Verdict.
    pub judgement: Judgement,
    /// The reason of the verdict.
    pub why: Option<String>,
    /// Consecutive idle steps, including this one.
    pub idle_steps: u32,
    /// Its tool calls.
    pub calls: Vec<CallLine>,
    /// The text that was sent to the model after it: a nudge or a reminder.
    pub message: Option<String>,
}

/// Summary of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLine {
    /// Tool name.
    pub tool: String,
    /// Beginning of the input.
    pub input: String,
    /// Whether it succeeded, if reported.
    pub ok: Option<bool>,
    /// Beginning of the output.
    pub output: String,
    /// Why it did not count as progress, in an idle step.
    pub idle: Option<IdleReason>,
}

/// Detector state of an agent or subagent, stored between two hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// Subagent; empty for the agent itself.
    pub agent: String,
    /// Turn to which the state belongs.
    pub turn: u32,
    /// State of the detector.
    pub state: State,
    /// Why the stored state could not be decoded; then `state` is a fresh one.
    pub unreadable: Option<String>,
    /// Last known fingerprint of the working tree.
    pub fingerprint: Option<String>,
    /// Recently seen or denied calls.
    pub known_calls: Vec<String>,
    /// Whether the agent reports the end of a batch of calls.
    pub batches: bool,
}

/// Reads a row of `{session}`.
pub(crate) fn session(row: Row) -> Result<Session, Error> {
    read(&mut row.cells("sessions"))
}

/// Reads a row of `{session}` with its counts.
pub(crate) fn line(row: Row) -> Result<SessionLine, Error> {
    let mut cells = row.cells("sessions");
    Ok(SessionLine {
        session: read(&mut cells)?,
        turns: cells.u64("turns")?,
        held: cells.u64("held")?,
        responses: cells.u64("responses")?,
        last_turn: None,
        subagents: Vec::new(),
        calls: Vec::new(),
        plan: None,
    })
}

fn read(cells: &mut Cells) -> Result<Session, Error> {
    Ok(Session {
        id: cells.string("session_id")?,
        agent: cells.string("agent")?,
        directory: cells.maybe_string("directory")?,
        actor: cells.maybe_string("actor")?,
        prompt: cells.maybe_string("prompt")?,
        started_at: cells.at("started_at")?,
        last_seen_at: cells.at("last_seen_at")?,
        ended_at: cells.maybe_at("ended_at")?,
        switched_off: cells.flag("switched_off")?,
        claims: claims(cells)?,
        primed: primed(cells)?,
        owner: owner(cells)?,
    })
}

fn primed(cells: &mut Cells) -> Result<Option<Primed>, Error> {
    let (event, at) = (
        cells.maybe_string("primed_for")?,
        cells.maybe_at("primed_at")?,
    );
    Ok(event.zip(at).map(|(event, at)| Primed { event, at }))
}

fn claims(cells: &mut Cells) -> Result<Vec<SeenClaim>, Error> {
    let stored: Vec<(String, String)> = mirror(cells, "claims")?;
    let claims = stored.into_iter().map(|(step, token)| {
        let step = step.parse();
        let step = step.map_err(|why| {
            cells
                .corrupt("claims", "contains an invalid step id")
                .caused_by(why)
        })?;
        let token = ClaimToken::new(token);
        Ok(SeenClaim { step, token })
    });
    claims.collect()
}

/// The claims of a session as they are stored.
pub(crate) fn of_claims(claims: &[SeenClaim]) -> String {
    let claims = claims.iter();
    let pairs = claims.map(|claim| (claim.step.to_string(), claim.token.as_str()));
    json::write(&pairs.collect::<Vec<_>>())
}

/// Reads a row of `{turn}` after the id of its session.
pub(crate) fn turn_of_session(row: Row) -> Result<(String, Turn), Error> {
    let mut cells = row.cells("turns");
    Ok((cells.string("session_id")?, read_turn(&mut cells)?))
}

/// Reads a row of `{turn}`.
pub(crate) fn turn(row: Row) -> Result<Turn, Error> {
    read_turn(&mut row.cells("turns"))
}

fn read_turn(cells: &mut Cells) -> Result<Turn, Error> {
    let number = cells.u32("turn")?;
    let agent = cells.string("agent_id")?;
    let key = cells.maybe_string("turn_key")?;
    let began_at = cells.at("began_at")?;
    let progressed_at = cells.maybe_at("progressed_at")?;
    let ended_at = cells.maybe_at("ended_at")?;
    let why: Option<TurnEnd> = maybe_word(cells, "why_ended")?;
    let ended = match (ended_at, why) {
        (Some(at), Some(why)) => Some((at, why)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(cells.corrupt("why_ended", "is inconsistent with `ended_at`"));
        }
    };
    let steps = cells.u32("steps")?;
    let idle_steps = cells.u32("idle_steps")?;
    let threshold = cells.u32("threshold")?;
    let judgement = maybe_word(cells, "verdict")?;
    let text_only: Option<TextOnlyReason> = maybe_word(cells, "held")?;
    let nudged = cells.flag("nudged")?;
    let rejections = cells.u32("refusals")?;
    let seen_at = cells.at("seen_at")?;
    let answer = cells.maybe_string("answer")?;
    Ok(Turn {
        number,
        agent,
        key,
        began_at,
        progressed_at,
        ended,
        standing: EscalationState {
            steps,
            idle_steps,
            text_only,
            nudged,
            rejections,
        },
        threshold,
        judgement,
        seen_at,
        answer,
    })
}

fn maybe_word<T: std::str::FromStr>(
    cells: &mut Cells,
    column: &'static str,
) -> Result<Option<T>, Error>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let Some(word) = cells.maybe_text(column)? else {
        return Ok(None);
    };
    let word = word.parse().map(Some);
    word.map_err(|why| cells.undecodable(column, why))
}

/// Parameters of `turn_write` after the session.
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
        standing.text_only.map(TextOnlyReason::as_str),
        standing.nudged,
        standing.rejections,
        turn.seen_at,
        turn.answer.as_deref(),
    ]
}

/// Reads the detector state. A state that cannot be decoded is replaced by a fresh one, with the
/// reason.
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
        known_calls: mirror(&mut cells, "known_calls")?,
        batches: cells.flag("batches")?,
    })
}

/// Parameters of `session_agent_write` after the session.
pub(crate) fn of_watched(watched: &Watched) -> Vec<Value> {
    params![
        &watched.agent,
        watched.turn,
        encode_turn(&watched.state),
        watched.fingerprint.as_deref(),
        json::write(&watched.known_calls),
        watched.batches,
    ]
}

/// Reads a step of a turn.
pub(crate) fn step(row: Row) -> Result<TurnStep, Error> {
    let mut cells = row.cells("turn_steps");
    let number = cells.u32("step")?;
    let at = cells.at("at")?;
    let judgement = cells.word("verdict")?;
    let why = cells.maybe_string("why")?;
    let idle_steps = cells.u32("idle_steps")?;
    let calls: Vec<CallLineJson<String>> = mirror(&mut cells, "calls")?;
    let message = cells.maybe_string("message")?;
    Ok(TurnStep {
        number,
        at,
        judgement,
        why,
        idle_steps,
        calls: calls.into_iter().map(CallLine::from).collect(),
        message,
    })
}

/// Mirror of a call. Keys are in alphabetical order.
#[derive(Serialize, Deserialize)]
struct CallLineJson<T> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle: Option<T>,
    input: T,
    ok: Option<bool>,
    output: T,
    tool: T,
}

impl From<CallLineJson<String>> for CallLine {
    fn from(json: CallLineJson<String>) -> Self {
        Self {
            tool: json.tool,
            input: json.input,
            ok: json.ok,
            output: json.output,
            // A reason of another version is dropped.
            idle: json.idle.and_then(|reason| reason.parse().ok()),
        }
    }
}

/// The calls of a step as they are stored.
pub(crate) fn of_calls(calls: &[CallLine]) -> String {
    let lines = calls.iter().map(|call| CallLineJson {
        idle: call.idle.map(IdleReason::as_str),
        input: call.input.as_str(),
        ok: call.ok,
        output: &call.output,
        tool: &call.tool,
    });
    json::write(&lines.collect::<Vec<_>>())
}
