//! Agent sessions with their turns and steps.

use onward_core::Timestamp;
use onward_engine::session::{self, SessionView, Subagent as JudgedSubagent};
use onward_engine::{
    CallLine, Session as StoredSession, SessionLine, SessionUsage, Turn as StoredTurn, TurnStep,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::call::Call as Recorded;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sessions {
    sessions: Vec<SessionRow>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionRow {
    #[serde(flatten)]
    session: SessionHeader,
    /// Number of turns
    turns: u64,
    /// Turns in which tools were disabled
    held_turns: u64,
    /// What the session does or needs
    status: &'static str,
    /// Start of that state
    since: String,
    /// The beginning of the last prompt
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// The open plan on which the session worked last
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionHeader {
    session_id: String,
    /// The agent program, such as `claude-code`
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    started_at: String,
    last_seen_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    /// Whether loop detection is off for this session
    switched_off: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Session {
    #[serde(flatten)]
    session: SessionHeader,
    turns: Vec<Turn>,
    /// The latest calls, in request order
    calls: Vec<Recorded>,
    /// The latest subagents, stale ones first
    subagents: Vec<Subagent>,
    /// Omitted: unknown
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Tokens>,
}

/// The tokens of all responses that were counted.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    total: u64,
    /// Without the cached input
    input: u64,
    cache_creation: u64,
    cache_read: u64,
    output: u64,
    /// `proxy` or `transcript`
    source: &'static str,
}

impl Tokens {
    fn new(usage: &SessionUsage) -> Self {
        let tokens = &usage.tokens;
        Self {
            total: tokens.total(),
            input: tokens.input,
            cache_creation: tokens.cache_creation,
            cache_read: tokens.cache_read,
            output: tokens.output,
            source: usage.source.as_str(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Subagent {
    /// Id of the subagent
    subagent: String,
    /// `stale`: no recent event and no end
    status: &'static str,
    /// Start of that status; of a stale subagent, its last event
    since: String,
    began_at: String,
    last_seen_at: String,
    /// Number of model responses with tool calls
    step_count: u32,
    /// The beginning of its answer
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Turn {
    turn: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
    began_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_ended: Option<&'static str>,
    /// Number of model responses with tool calls
    step_count: u32,
    /// Consecutive responses without progress
    idle_steps: u32,
    /// Consecutive responses without progress that count as a loop
    threshold: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_progress_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<&'static str>,
    /// Number of rejected tool calls
    refusals: u32,
    steps: Vec<Step>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Step {
    /// Number of the response in its turn, from 1
    step: u32,
    at: String,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Consecutive responses without progress
    idle_steps: u32,
    calls: Vec<Call>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Call {
    tool: String,
    input: String,
    ok: Option<bool>,
    output: String,
    /// Why the call did not count as progress, in an idle step
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_reason: Option<&'static str>,
}

impl Sessions {
    pub(crate) fn new(sessions: &[SessionLine], now: Timestamp) -> Self {
        let sessions = sessions.iter().map(|session| {
            let (status, since) = session::status(session, now);
            SessionRow {
                session: SessionHeader::new(&session.session),
                turns: session.turns,
                held_turns: session.held,
                status: status.as_str(),
                since: super::at(since),
                prompt: session.session.prompt.clone(),
                plan_id: session.plan.as_ref().map(|(plan, _)| plan.to_string()),
            }
        });
        Self {
            sessions: sessions.collect(),
        }
    }
}

impl Session {
    pub(crate) fn new(view: &SessionView, now: Timestamp) -> Self {
        let calls = view.calls.iter().map(|call| Recorded::new(call, now));
        let turns = view
            .turns
            .iter()
            .map(|(turn, steps)| Turn::new(turn, steps));
        Self {
            session: SessionHeader::new(&view.session),
            turns: turns.collect(),
            calls: calls.collect(),
            subagents: view.subagents(now).iter().map(Subagent::new).collect(),
            tokens: view.usage.as_ref().map(Tokens::new),
        }
    }
}

impl Subagent {
    fn new(subagent: &JudgedSubagent<'_>) -> Self {
        let turn = subagent.turn;
        Self {
            subagent: turn.agent.clone(),
            status: subagent.status.as_str(),
            since: super::at(subagent.since),
            began_at: super::at(turn.began_at),
            last_seen_at: super::at(turn.seen_at),
            step_count: turn.standing.steps,
            answer: turn.answer.clone(),
        }
    }
}

impl SessionHeader {
    fn new(session: &StoredSession) -> Self {
        Self {
            session_id: session.id.clone(),
            agent: session.agent.clone(),
            directory: session.directory.clone(),
            started_at: super::at(session.started_at),
            last_seen_at: super::at(session.last_seen_at),
            ended_at: session.ended_at.map(super::at),
            switched_off: session.switched_off,
        }
    }
}

impl Turn {
    fn new(turn: &StoredTurn, steps: &[TurnStep]) -> Self {
        let standing = &turn.standing;
        Self {
            turn: turn.number,
            subagent: (!turn.agent.is_empty()).then(|| turn.agent.clone()),
            began_at: super::at(turn.began_at),
            ended_at: turn.ended.map(|(at, _)| super::at(at)),
            why_ended: turn.ended.map(|(_, why)| why.as_str()),
            step_count: standing.steps,
            idle_steps: standing.idle_steps,
            threshold: turn.threshold,
            verdict: turn.judgement.map(|judgement| judgement.as_str()),
            last_progress_at: turn.progressed_at.map(super::at),
            held: standing.text_only.map(|held| held.as_str()),
            refusals: standing.rejections,
            steps: steps.iter().map(Step::new).collect(),
        }
    }
}

impl Step {
    fn new(step: &TurnStep) -> Self {
        Self {
            step: step.number,
            at: super::at(step.at),
            verdict: step.judgement.as_str(),
            why: step.why.clone(),
            idle_steps: step.idle_steps,
            calls: step.calls.iter().map(Call::new).collect(),
        }
    }
}

impl Call {
    fn new(call: &CallLine) -> Self {
        Self {
            tool: call.tool.clone(),
            input: call.input.clone(),
            ok: call.ok,
            output: call.output.clone(),
            idle_reason: call.idle.map(onward_core::turn::IdleReason::as_str),
        }
    }
}
