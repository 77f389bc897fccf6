//! Records calls and their state changes, each with timestamps, a preview of its texts and the sweep's
//! next check.

use std::sync::Arc;
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::{
    Call, CallPolicy, CallStatus, CallTimeouts, CallTransition, Limit, Owner, stale_at,
};
use onward_core::next_check::Due;
use onward_core::role::Permission;
use onward_core::secret;
use onward_store::{CallKey, CallRecord, Session, Sessions, ToolCalls, Tx};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::agent::activity;
use crate::agent::observed::HookSource;
use crate::caller::Caller;
use crate::engine::Engine;
use crate::environment::hex;
use crate::error::{Error, ObjectKind};
use crate::sanitize;

/// Timeouts for tool calls.
pub const POLICY: CallPolicy = CallPolicy {
    default_timeout: onward_core::DEFAULT_CALL_TIMEOUT,
    grace: onward_core::STALE_GRACE,
};

/// Maximum length of a preview, in characters.
const PREVIEW_CHARS: usize = 200;
/// Maximum length of an id or tool name. Models may produce arbitrary values.
const MAX_NAME_CHARS: usize = 200;

/// Identifies a call in an approval event or a result.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRef {
    /// The id assigned by the agent.
    pub id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
}

impl CallRef {
    /// Makes the names storable.
    pub(super) fn sanitized(mut self) -> Self {
        self.id.iter_mut().for_each(sanitize_name);
        sanitize_name(&mut self.tool);
        self
    }
}

/// A tool call that is about to run.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCall {
    /// The id assigned by the model; not necessarily unique.
    pub id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
    /// The timeout of this call.
    pub limit: Limit,
    /// The grace period after the timeout, if it is not the default.
    pub grace: Option<Duration>,
    /// The process that runs the tool. If unknown, only the timeout applies.
    pub owner: Option<Owner>,
    /// Number of the model response that contains the call. `None` if the response has no other
    /// calls.
    pub batch: Option<u32>,
}

impl NewCall {
    /// A call of an unknown agent; its timeout is derived from the tool and its input.
    pub fn from_hook(id: Option<String>, tool: String, input: Value, owner: Option<Owner>) -> Self {
        let call = CallRef { id, tool, input };
        Self::new(&CallTimeouts::default(), "", call, owner)
    }

    fn new(timeouts: &CallTimeouts, agent: &str, call: CallRef, owner: Option<Owner>) -> Self {
        let CallRef { id, tool, input } = call;
        Self {
            limit: timeouts.limit(agent, &tool, &input),
            grace: timeouts.grace,
            id,
            tool,
            input,
            owner,
            batch: None,
        }
    }
}

/// The state in which a call is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InitialState {
    /// The model requested it.
    #[default]
    Requested,
    /// A user's approval is pending.
    AwaitingApproval,
    /// It is running.
    Running,
}

/// A state change of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The call starts, with or without approval.
    Start,
    /// The user is asked for approval.
    AskApproval,
    /// The user denies the call.
    Deny,
    /// The user cancels the call.
    Cancel,
    /// The call reports activity.
    Progress,
    /// The call's result.
    Complete(String),
    /// The call's error.
    Fail(String),
}

impl Change {
    const fn as_transition(&self) -> CallTransition {
        match self {
            Change::Start => CallTransition::Start,
            Change::AskApproval => CallTransition::RequestApproval,
            Change::Deny => CallTransition::Deny,
            Change::Cancel => CallTransition::Cancel,
            Change::Progress => CallTransition::Progress,
            Change::Complete(_) => CallTransition::Complete,
            Change::Fail(_) => CallTransition::Fail,
        }
    }
}

impl Engine {
    /// Sets the configured timeouts of tool calls.
    pub fn with_call_timeouts(mut self, timeouts: CallTimeouts) -> Self {
        self.call_timeouts = Arc::new(timeouts);
        self
    }

    /// A call of an agent, with the timeout that applies to it.
    pub fn new_call(&self, agent: &str, call: CallRef, owner: Option<Owner>) -> NewCall {
        NewCall::new(&self.call_timeouts, agent, call, owner)
    }

    /// Records a state change of a call. The result of an interrupted call is stored next to its
    /// synthetic result.
    pub async fn change_call(
        &self,
        caller: &Caller,
        key: CallKey,
        change: Change,
    ) -> Result<CallRecord, Error> {
        caller.allow(Permission::Record)?;
        let key = sanitized_key(key);
        let ctx = self.session_context(caller, &key.session);
        let changed = self.store.write(&caller.tenant, move |tx| {
            let (key, change, ctx) = (key.clone(), change.clone(), ctx.clone());
            Box::pin(async move {
                let now = ctx.now;
                let (session, mut record) = load_call(tx, &key).await?;
                activity::record(tx, &key.session, &session.claims, &ctx).await?;
                apply(&mut record, change, now)?;
                ToolCalls(tx).keep_call(&record, POLICY);
                ToolCalls(tx).keep_calls_due(&key.session);
                Sessions(tx).bump_session(&key.session, now);
                Ok::<_, Error>(record)
            })
        });
        let record = changed.await?;
        self.wake_sweep_for(&record);
        Ok(record)
    }

    /// Wakes the sweep if its planned wake-up is later than this call's timeout.
    pub(crate) fn wake_sweep_for(&self, record: &CallRecord) {
        if let Some(stale_at) = stale_at(&record.call.timestamp(), POLICY) {
            self.sweep_waker.wake_by(Due::By(stale_at.next()));
        }
    }
}

/// Loads a call and its session, and locks the session.
pub(super) async fn load_call(tx: &mut Tx, key: &CallKey) -> Result<(Session, CallRecord), Error> {
    let session = Sessions(tx).hold_session(&key.session).await?;
    let session = session.ok_or_else(|| session_not_found(&key.session))?;
    let found = ToolCalls(tx).call(key).await?;
    let call = found.ok_or_else(|| Error::NotFound {
        kind: ObjectKind::Call,
        name: format!("{}/{}", key.turn, key.position),
    })?;
    Ok((session, call))
}

pub(super) fn session_not_found(id: &str) -> Error {
    Error::NotFound {
        kind: ObjectKind::Session,
        name: id.to_owned(),
    }
}

pub(super) fn sanitized_key(mut key: CallKey) -> CallKey {
    sanitize::text(&mut key.session);
    sanitize::text(&mut key.agent);
    key
}

/// Adds a call at the end of a turn.
pub(crate) async fn record(
    tx: &mut Tx,
    source: &HookSource,
    turn: u32,
    call: NewCall,
    begins: InitialState,
    now: Timestamp,
) -> Result<CallRecord, Error> {
    let (session, agent) = (&source.session, &source.subagent);
    let position = ToolCalls(tx).last_position(session, agent, turn).await? + 1;
    let mut tool = call.tool;
    let mut id = call.id;
    id.iter_mut().for_each(sanitize_name);
    sanitize_name(&mut tool);
    let mut record = CallRecord {
        key: CallKey {
            session: session.clone(),
            agent: agent.clone(),
            turn,
            position,
        },
        id,
        batch: call.batch.unwrap_or(position),
        tool,
        input_digest: digest(&call.input),
        input: preview(&input_line(&call.input)),
        call: Call {
            grace: call.grace,
            ..Call::requested(call.limit, call.owner)
        },
        requested_at: now,
        asked_at: None,
        started_at: None,
        last_progress_at: None,
        synthetic: None,
        result: None,
        reported_to_agent: false,
    };
    match begins {
        InitialState::Requested => {}
        InitialState::AwaitingApproval => apply(&mut record, Change::AskApproval, now)?,
        InitialState::Running => apply(&mut record, Change::Start, now)?,
    }
    ToolCalls(tx).add_call(&record, POLICY);
    Ok(record)
}

/// Applies a state change, with its timestamps and result.
pub(super) fn apply(record: &mut CallRecord, change: Change, now: Timestamp) -> Result<(), Error> {
    record.call.apply(change.as_transition(), now)?;
    match change {
        Change::AskApproval => record.asked_at = Some(now),
        Change::Complete(result) | Change::Fail(result) => record.result = Some(preview(&result)),
        Change::Start | Change::Progress | Change::Deny | Change::Cancel => {}
    }
    if let Some(run) = record.call.state.run() {
        record.started_at = Some(run.started_at);
        record.last_progress_at = run.last_progress_at;
    }
    Ok(())
}

/// Completes a call that the agent has answered while its tool continues in the background. It has no
/// result.
pub(super) fn complete_in_background(record: &mut CallRecord, now: Timestamp) -> Result<(), Error> {
    record.call.apply(CallTransition::Complete, now)?;
    Ok(())
}

/// Whether a call accepts a result: it is open or interrupted.
pub(super) fn accepts_result(record: &CallRecord) -> bool {
    let status = record.status();
    status.is_open() || status == CallStatus::Interrupted
}

/// Hash that identifies an input.
pub(super) fn digest(input: &Value) -> String {
    hex(&Sha256::digest(input.to_string().as_bytes()))
}

/// The command if the input has one, otherwise the whole input.
fn input_line(input: &Value) -> String {
    let command = input.get("command").and_then(Value::as_str);
    match (command, input) {
        (Some(command), _) => command.to_owned(),
        (None, Value::Null) => String::new(),
        (None, _) => input.to_string(),
    }
}

/// The beginning of a text on one line, with secrets masked.
fn preview(text: &str) -> String {
    let mut line = secret::preview(text, PREVIEW_CHARS);
    sanitize::text(&mut line);
    line
}

/// Makes an id or tool name storable.
pub(super) fn sanitize_name(text: &mut String) {
    sanitize::text(text);
    if let Some((end, _)) = text.char_indices().nth(MAX_NAME_CHARS) {
        text.truncate(end);
    }
}
