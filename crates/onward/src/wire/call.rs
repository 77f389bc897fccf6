//! Recorded tool calls and the health of an agent session.

use onward_core::Timestamp;
use onward_core::call::{CallState, Limit, is_stale, stale_at};
use onward_engine::CallRecord;
use onward_engine::tool_calls::{POLICY, SessionHealth as EngineHealth, SessionPlan};
use schemars::JsonSchema;
use serde::Serialize;

use crate::output;

/// A recorded call with all details.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Call {
    session_id: String,
    #[serde(flatten)]
    summary: CallSummary,
    batch: u32,
    /// SHA-256 of the whole input
    input_digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Owner>,
    requested_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted_at: Option<String>,
    /// Why it was interrupted, for the operator
    #[serde(skip_serializing_if = "Option::is_none")]
    grounds: Option<String>,
    /// The synthetic result that the model received
    #[serde(rename = "toldModel", skip_serializing_if = "Option::is_none")]
    model_result: Option<String>,
}

/// A recorded call in a list.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallSummary {
    turn: u32,
    position: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    tool: String,
    /// The start of the input, without secrets
    input: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_progress_at: Option<String>,
    /// Timeout; absent if it has none
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    /// How long it has been open, if it is open
    #[serde(skip_serializing_if = "Option::is_none")]
    age_ms: Option<u64>,
    /// When it becomes stale without further activity
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_at: Option<String>,
    /// It is open and will not return a result
    stale: bool,
    /// Its result, or the synthetic result
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// `result` is synthetic: Onward wrote it because the call returned none
    synthetic: bool,
    /// Its own result arrived after it was interrupted
    late: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Owner {
    host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<String>,
    process_id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    process_start: Option<u64>,
}

/// The interrupted calls of a session.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InterruptedCalls {
    interrupted: Vec<Call>,
}

/// The response of `get_session_health`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionHealth {
    session_id: String,
    turn: Turn,
    calls: Calls,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    plans: Vec<Plan>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Turn {
    /// Turn number; omitted before the first turn
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u32>,
    idle_steps: u32,
    threshold: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_progress_at: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Calls {
    running: u64,
    awaiting_approval: u64,
    /// Open calls that will not return a result
    stale: u64,
    interrupted: u64,
    /// Open calls and the most recently interrupted ones
    #[serde(skip_serializing_if = "Vec::is_empty")]
    list: Vec<CallSummary>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Plan {
    plan_id: String,
    name: String,
    status: &'static str,
    progress: u32,
}

impl Call {
    pub(crate) fn new(record: &CallRecord, now: Timestamp) -> Self {
        let state = record.call.state;
        let ended_at = match state {
            CallState::Completed(end) | CallState::Failed(end) => Some(end.ended_at),
            CallState::Denied { ended_at } | CallState::Cancelled { ended_at } => Some(ended_at),
            CallState::Requested
            | CallState::AwaitingApproval { .. }
            | CallState::Running(_)
            | CallState::Interrupted(_) => None,
        };
        let synthetic = record.synthetic.as_ref();
        Self {
            session_id: record.key.session.clone(),
            summary: CallSummary::new(record, now),
            batch: record.batch,
            input_digest: record.input_digest.clone(),
            owner: record.call.owner.as_ref().map(|owner| Owner {
                host: owner.host.clone(),
                boot_id: owner.boot.clone(),
                process_id: owner.process,
                process_start: owner.process_started,
            }),
            requested_at: super::at(record.requested_at),
            asked_at: record.asked_at.map(super::at),
            ended_at: ended_at.map(super::at),
            interrupted_at: state
                .interruption()
                .map(|interruption| super::at(interruption.interrupted_at)),
            grounds: synthetic.map(|result| result.to_operator.clone()),
            model_result: synthetic.map(|result| result.to_model.clone()),
        }
    }
}

impl CallSummary {
    fn new(record: &CallRecord, now: Timestamp) -> Self {
        let (state, times) = (record.call.state, record.call.timestamp());
        let open = state.status().is_open();
        let since = record.started_at.unwrap_or(record.requested_at);
        let synthetic = record.synthetic.as_ref();
        let timeout = match record.call.limit {
            Limit::Never => None,
            limit @ (Limit::Unspecified | Limit::After(_) | Limit::Yields(_)) => {
                POLICY.timeout(limit)
            }
        };
        let result = output::call::result(record).map(str::to_owned);
        Self {
            turn: record.key.turn,
            position: record.key.position,
            subagent: (!record.key.agent.is_empty()).then(|| record.key.agent.clone()),
            call_id: record.id.clone(),
            tool: record.tool.clone(),
            input: record.input.clone(),
            status: state.status().as_str(),
            cause: state
                .interruption()
                .map(|interruption| interruption.cause.as_str()),
            started_at: record.started_at.map(super::at),
            last_progress_at: record.last_progress_at.map(super::at),
            timeout_ms: timeout.map(super::ms),
            age_ms: open.then(|| super::ms(now.since(since))),
            stale_at: stale_at(&times, POLICY).map(super::at),
            stale: is_stale(&times, now, POLICY),
            synthetic: result.is_none() && synthetic.is_some(),
            late: result.is_some() && synthetic.is_some(),
            result: result.or_else(|| synthetic.map(|result| result.to_model.clone())),
        }
    }
}

impl InterruptedCalls {
    pub(crate) fn new(records: &[CallRecord], now: Timestamp) -> Self {
        Self {
            interrupted: records
                .iter()
                .map(|record| Call::new(record, now))
                .collect(),
        }
    }
}

impl SessionHealth {
    pub(crate) fn new(health: &EngineHealth) -> Self {
        let turn = health.turn.as_ref();
        let summary = |(record, stale): &(CallRecord, bool)| CallSummary {
            stale: *stale,
            ..CallSummary::new(record, health.now)
        };
        Self {
            session_id: health.session.clone(),
            turn: Turn {
                number: turn.map(|turn| turn.number),
                idle_steps: turn.map_or(0, |turn| turn.standing.idle_steps),
                threshold: turn.map_or(health.threshold, |turn| turn.threshold),
                verdict: turn.and_then(|turn| turn.judgement.map(|judgement| judgement.as_str())),
                last_progress_at: turn.and_then(|turn| turn.progressed_at.map(super::at)),
            },
            calls: Calls {
                running: health.counts.running,
                awaiting_approval: health.counts.awaiting_approval,
                stale: health.counts.stale,
                interrupted: health.counts.interrupted,
                list: health.calls.iter().map(summary).collect(),
            },
            plans: health.plans.iter().map(Plan::new).collect(),
        }
    }
}

impl Plan {
    fn new(plan: &SessionPlan) -> Self {
        Self {
            plan_id: plan.head.id.to_string(),
            name: super::line(&plan.name),
            status: plan.head.status().as_str(),
            progress: plan.head.counts.progress(),
        }
    }
}
