//! Rows of the ledger: agents' tool calls, each with its state, its times and what was said of it.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::{
    Call, CallPolicy, CallState, CallStatus, Cause, End, Interruption, Limit, Owner, Run, stale_at,
};

use crate::error::Error;
use crate::value::{Cells, Row, Value, params};

/// Which call: ids may repeat, so it is known by its turn and its place in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// The session.
    pub session: String,
    /// Which subagent's; the agent's own where it is empty.
    pub agent: String,
    /// The turn, from 1.
    pub turn: u32,
    /// The place in the turn, from 1.
    pub position: u32,
}

/// A call in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// Which one.
    pub key: CallKey,
    /// The id that the model gave.
    pub id: Option<String>,
    /// Calls of one model response share a batch.
    pub batch: u32,
    /// Which tool.
    pub tool: String,
    /// A digest of the whole input.
    pub input_digest: String,
    /// How the input begins, without secrets.
    pub input: String,
    /// Where it stands, how long it may take, who runs it.
    pub call: Call,
    /// When the model asked for it.
    pub requested_at: Timestamp,
    /// When a person was last asked.
    pub asked_at: Option<Timestamp>,
    /// When it last began.
    pub started_at: Option<Timestamp>,
    /// Its last sign of life.
    pub last_progress_at: Option<Timestamp>,
    /// What stands in for a result that did not come.
    pub synthetic: Option<Synthetic>,
    /// How its own result begins, without secrets.
    pub result: Option<String>,
    /// Whether the agent was told that it was given up.
    pub told: bool,
}

/// What is said where a result never came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synthetic {
    /// To the model: the synthetic result.
    pub to_model: String,
    /// To whoever runs all this: on what grounds.
    pub to_operator: String,
}

impl CallRecord {
    /// Where it stands.
    pub fn status(&self) -> CallStatus {
        self.call.state.status()
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
    let missing =
        |column| cells.corrupt(column, format!("is missing of a call that is `{status}`"));
    let ended = || ended_at.ok_or_else(|| missing("ended_at"));
    let end = || {
        Ok::<End, Error>(End {
            ended_at: ended()?,
            instead_of: interruption,
        })
    };
    let state = match status {
        CallStatus::Requested => CallState::Requested,
        CallStatus::AwaitingApproval => CallState::AwaitingApproval {
            asked_at: asked_at.ok_or_else(|| missing("asked_at"))?,
            had_begun,
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
        return Err(cells.corrupt("to_model", "does not go with `cause`"));
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
            owner,
        },
        requested_at,
        asked_at,
        started_at,
        last_progress_at,
        synthetic,
        result: cells.maybe_string("result")?,
        told: cells.flag("told")?,
    })
}

fn limit(cells: &mut Cells) -> Result<Limit, Error> {
    let timeout = cells.maybe_span("timeout_ms")?;
    match (timeout, cells.flag("untimed")?) {
        (None, false) => Ok(Limit::Unsaid),
        (Some(timeout), false) => Ok(Limit::After(timeout)),
        (None, true) => Ok(Limit::Never),
        (Some(_), true) => Err(cells.corrupt("untimed", "does not go with `timeout_ms`")),
    }
}

fn owner(cells: &mut Cells) -> Result<Option<Owner>, Error> {
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
            Err(cells.corrupt("owner_process", "does not go with `owner_host`"))
        }
    }
}

fn interruption(cells: &mut Cells) -> Result<Option<Interruption>, Error> {
    let cause = cells.maybe_text("cause")?;
    let cause = cause.map(|word| word.parse::<Cause>()).transpose();
    let cause = cause.map_err(|why| cells.corrupt("cause", why.to_string()))?;
    match (cause, cells.maybe_at("interrupted_at")?) {
        (Some(cause), Some(interrupted_at)) => Ok(Some(Interruption {
            cause,
            interrupted_at,
        })),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => {
            Err(cells.corrupt("interrupted_at", "does not go with `cause`"))
        }
    }
}

/// What `call` is asked by.
pub(crate) fn of_key(key: &CallKey) -> Vec<Value> {
    params![&key.session, &key.agent, key.turn, key.position]
}

/// What `call_insert` takes.
pub(crate) fn of_call(record: &CallRecord, policy: CallPolicy) -> Vec<Value> {
    let call = &record.call;
    let (timeout, untimed): (Option<Duration>, bool) = match call.limit {
        Limit::Unsaid | Limit::After(Duration::ZERO) => (None, false),
        Limit::After(timeout) => (Some(timeout.max(Duration::from_millis(1))), false),
        Limit::Never => (None, true),
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
        untimed,
        owner.map(|owner| owner.host.as_str()),
        owner.and_then(|owner| owner.boot.as_deref()),
        owner.map(|owner| owner.process),
        owner.and_then(|owner| owner.process_started),
        record.requested_at,
    ]);
    row.extend(of_state(record, policy));
    row
}

/// What `call_update` takes behind the key and the status, and `call_insert` at its end.
pub(crate) fn of_state(record: &CallRecord, policy: CallPolicy) -> Vec<Value> {
    let state = record.call.state;
    let had_begun = matches!(
        state,
        CallState::AwaitingApproval {
            had_begun: true,
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
        record.told,
        stale_at(&record.call.timestamp(), policy),
    ]
}
