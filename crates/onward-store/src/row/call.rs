//! Rows of the tool call log: each call with its state, its times and its result.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::{
    Call, CallEnd, CallPolicy, CallState, CallStatus, Cause, Interruption, Limit, Owner, Run,
    stale_at,
};

use crate::error::Error;
use crate::value::{Cells, Row, Value, params};

/// Key of a call: its turn and position, because the ids from models may repeat.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// Session id.
    pub session: String,
    /// Subagent; empty for the agent itself.
    pub agent: String,
    /// Turn number, from 1.
    pub turn: u32,
    /// Position in the turn, from 1.
    pub position: u32,
}

/// An entry of the tool call log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// Key.
    pub key: CallKey,
    /// Id from the model.
    pub id: Option<String>,
    /// Number of the model response; its calls share it.
    pub batch: u32,
    /// Tool name.
    pub tool: String,
    /// Digest of the complete input.
    pub input_digest: String,
    /// Beginning of the input, without secrets.
    pub input: String,
    /// State, time limit and owner.
    pub call: Call,
    /// When the model requested it.
    pub requested_at: Timestamp,
    /// When approval was last requested.
    pub asked_at: Option<Timestamp>,
    /// When it last started.
    pub started_at: Option<Timestamp>,
    /// Last activity.
    pub last_progress_at: Option<Timestamp>,
    /// Substitute for a missing result.
    pub synthetic: Option<Synthetic>,
    /// Beginning of the call's own result, without secrets. A completed call has none if it
    /// continued in the background.
    pub result: Option<String>,
    /// Whether the agent was notified of its interruption.
    pub reported_to_agent: bool,
}

/// Substitute for a result that never arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synthetic {
    /// The synthetic result for the model.
    pub to_model: String,
    /// The reason, for the operator.
    pub to_operator: String,
}

impl CallRecord {
    /// Status of the call.
    pub fn status(&self) -> CallStatus {
        self.call.state.status()
    }

    /// Start or last activity.
    pub fn last_activity_at(&self) -> Option<Timestamp> {
        self.last_progress_at.max(self.started_at)
    }

    /// Whether the agent answered the model while the command continued. Its end is unknown.
    pub fn is_in_background(&self) -> bool {
        self.status() == CallStatus::Completed && self.result.is_none()
    }
}

/// Reads a row of `{call}`.
pub(crate) fn call(row: Row) -> Result<CallRecord, Error> {
    let mut cells = row.cells("session_calls");
    let key = CallKey {
        session: cells.string("session_id")?,
        agent: cells.string("agent_id")?,
        turn: cells.u32("turn")?,
        position: cells.u32("position")?,
    };
    let id = cells.maybe_string("call_id")?;
    let batch = cells.u32("batch")?;
    let tool = cells.string("tool")?;
    let input_digest = cells.string("input_digest")?;
    let input = cells.string("input")?;
    let status: CallStatus = cells.word("status")?;
    let limit = limit(&mut cells)?;
    let grace = cells.maybe_span("grace_ms")?;
    let owner = owner(&mut cells)?;
    let requested_at = cells.at("requested_at")?;
    let asked_at = cells.maybe_at("asked_at")?;
    let had_begun = cells.flag("had_begun")?;
    let started_at = cells.maybe_at("started_at")?;
    let last_progress_at = cells.maybe_at("last_progress_at")?;
    let ended_at = cells.maybe_at("ended_at")?;
    let interruption = interruption(&mut cells)?;
    let to_model = cells.maybe_string("to_model")?;
    let to_operator = cells.maybe_string("to_operator")?;
    let missing = |column| cells.corrupt(column, format!("is empty on a call that is `{status}`"));
    let ended = || ended_at.ok_or_else(|| missing("ended_at"));
    let end = || {
        Ok::<CallEnd, Error>(CallEnd {
            ended_at: ended()?,
            interruption,
        })
    };
    let state = match status {
        CallStatus::Requested => CallState::Requested,
        CallStatus::AwaitingApproval => CallState::AwaitingApproval {
            requested_at: asked_at.ok_or_else(|| missing("asked_at"))?,
            had_started: had_begun,
        },
        CallStatus::Running => CallState::Running(Run {
            started_at: started_at.ok_or_else(|| missing("started_at"))?,
            last_progress_at,
        }),
        CallStatus::Completed => CallState::Completed(end()?),
        CallStatus::Failed => CallState::Failed(end()?),
        CallStatus::Denied => CallState::Denied { ended_at: ended()? },
        CallStatus::Cancelled => CallState::Cancelled { ended_at: ended()? },
        CallStatus::Interrupted => {
            CallState::Interrupted(interruption.ok_or_else(|| missing("cause"))?)
        }
    };
    let synthetic = to_model
        .zip(to_operator)
        .map(|(to_model, to_operator)| Synthetic {
            to_model,
            to_operator,
        });
    if synthetic.is_some() != state.interruption().is_some() {
        return Err(cells.corrupt("to_model", "is inconsistent with `cause`"));
    }
    Ok(CallRecord {
        key,
        id,
        batch,
        tool,
        input_digest,
        input,
        call: Call {
            state,
            limit,
            grace,
            owner,
        },
        requested_at,
        asked_at,
        started_at,
        last_progress_at,
        synthetic,
        result: cells.maybe_string("result")?,
        reported_to_agent: cells.flag("reported")?,
    })
}

fn limit(cells: &mut Cells) -> Result<Limit, Error> {
    let timeout = cells.maybe_span("timeout_ms")?;
    let untimed = cells.flag("untimed")?;
    match (timeout, untimed, cells.flag("yields")?) {
        (None, false, false) => Ok(Limit::Unspecified),
        (Some(timeout), false, false) => Ok(Limit::After(timeout)),
        (Some(timeout), false, true) => Ok(Limit::Yields(timeout)),
        (None, true, false) => Ok(Limit::Never),
        (Some(_), true, _) => Err(cells.corrupt("untimed", "is inconsistent with `timeout_ms`")),
        (None, _, true) => Err(cells.corrupt("yields", "is inconsistent with `timeout_ms`")),
    }
}

pub(crate) fn owner(cells: &mut Cells) -> Result<Option<Owner>, Error> {
    let host = cells.maybe_string("owner_host")?;
    let boot = cells.maybe_string("owner_boot")?;
    let process = cells.maybe_u32("owner_process")?;
    let process_started = cells.maybe_u64("owner_started")?;
    match (host, process) {
        (Some(host), Some(process)) => Ok(Some(Owner {
            host,
            boot,
            process,
            process_started,
        })),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => {
            Err(cells.corrupt("owner_process", "is inconsistent with `owner_host`"))
        }
    }
}

fn interruption(cells: &mut Cells) -> Result<Option<Interruption>, Error> {
    let cause = cells.maybe_text("cause")?;
    let cause = cause.map(|word| word.parse::<Cause>()).transpose();
    let cause = cause.map_err(|why| cells.undecodable("cause", why))?;
    match (cause, cells.maybe_at("interrupted_at")?) {
        (Some(cause), Some(interrupted_at)) => Ok(Some(Interruption {
            cause,
            interrupted_at,
        })),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => {
            Err(cells.corrupt("interrupted_at", "is inconsistent with `cause`"))
        }
    }
}

/// Parameters of `call`.
pub(crate) fn of_key(key: &CallKey) -> Vec<Value> {
    params![&key.session, &key.agent, key.turn, key.position]
}

/// Parameters of `call_insert`.
pub(crate) fn of_call(record: &CallRecord, policy: CallPolicy) -> Vec<Value> {
    let call = &record.call;
    let timeout = match call.limit {
        Limit::Unspecified | Limit::After(Duration::ZERO) | Limit::Never => None,
        Limit::After(timeout) | Limit::Yields(timeout) => {
            Some(timeout.max(Duration::from_millis(1)))
        }
    };
    let owner = call.owner.as_ref();
    let mut row = of_key(&record.key);
    row.extend(params![
        record.id.as_deref(),
        record.batch,
        &record.tool,
        &record.input_digest,
        &record.input,
        record.status().as_str(),
        timeout,
        call.limit == Limit::Never,
        matches!(call.limit, Limit::Yields(_)),
        call.grace,
        owner.map(|owner| owner.host.as_str()),
        owner.and_then(|owner| owner.boot.as_deref()),
        owner.map(|owner| owner.process),
        owner.and_then(|owner| owner.process_started),
        record.requested_at,
    ]);
    row.extend(of_state(record, policy));
    row
}

/// Parameters of `call_update` after the key and the status, and the last ones of `call_insert`.
pub(crate) fn of_state(record: &CallRecord, policy: CallPolicy) -> Vec<Value> {
    let state = record.call.state;
    let had_begun = matches!(
        state,
        CallState::AwaitingApproval {
            had_started: true,
            ..
        }
    );
    let ended_at = match state {
        CallState::Completed(end) | CallState::Failed(end) => Some(end.ended_at),
        CallState::Denied { ended_at } | CallState::Cancelled { ended_at } => Some(ended_at),
        CallState::Requested
        | CallState::AwaitingApproval { .. }
        | CallState::Running(_)
        | CallState::Interrupted(_) => None,
    };
    let interruption = state.interruption();
    let synthetic = record.synthetic.as_ref();
    params![
        record.asked_at,
        had_begun,
        record.started_at,
        record.last_progress_at,
        ended_at,
        interruption.map(|interruption| interruption.cause.as_str()),
        interruption.map(|interruption| interruption.interrupted_at),
        synthetic.map(|synthetic| synthetic.to_model.as_str()),
        synthetic.map(|synthetic| synthetic.to_operator.as_str()),
        record.result.as_deref(),
        record.reported_to_agent,
        stale_at(&record.call.timestamp(), policy),
    ]
}
