//! The ledger of agents' tool calls: recorded before their effect, followed to their result, given up
//! where none will come.
//!
//! What may become of a call the core says ([`CallState::after`](onward_core::call::CallState::after)),
//! and so which calls are given up; here they are loaded, asked and kept, in one transaction that holds
//! the session. Nothing is ever run again by itself. A result that comes after its call was given up is
//! kept and shown, and is no second answer: what the model was told stays beside it.
//!
//! Whoever runs an agent tells through [`Engine::record_call`] and [`Engine::change_call`]; hooks through
//! `ledger/heard.rs`, with what else they tell in the same transaction. Giving up is `ledger/recover.rs`.

mod health;
pub(crate) mod heard;
mod recover;

use onward_core::Timestamp;
use onward_core::call::{
    Call, CallMove, CallPolicy, CallStatus, IllegalCallMove, Limit, Owner, stale_at,
};
use onward_core::role::Permission;
use onward_core::turn::secret::mask;
use onward_store::{CallKey, CallRecord, Due, Tx};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::session::{Heard, turn_of};
use crate::world::hex;

pub use health::{CallCounts, Health, SessionPlan};
pub use heard::{Asked, Said};
pub use recover::Recovered;
pub(crate) use recover::recover;

/// How long a call may take and be silent.
pub const POLICY: CallPolicy = CallPolicy {
    default_timeout: onward_core::DEFAULT_CALL_TIMEOUT,
    grace: onward_core::STALE_GRACE,
};

/// Characters of a preview.
const SHOWN: usize = 200;
/// How much of a text is looked through for secrets: more than is shown.
const MASKED: usize = 2_000;
/// A longer id or name is cut: it is the model's, and may be anything.
const LONGEST_NAME: usize = 200;

/// A call that somebody is about to make.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCall {
    /// The id that the model gave; it may repeat.
    pub id: Option<String>,
    /// Which tool.
    pub tool: String,
    /// What it is asked.
    pub input: Value,
    /// The timeout that applies to this very call.
    pub limit: Limit,
    /// The process that runs the tool; none where nobody knows, and then only the clock counts.
    pub owner: Option<Owner>,
    /// Which model response it belongs to, by a number; none where it is the only one of its.
    pub batch: Option<u32>,
}

impl NewCall {
    /// A call as hooks and proxies see it: how long it may take is told from its tool and its input.
    pub fn seen(id: Option<String>, tool: String, input: Value, owner: Option<Owner>) -> Self {
        Self {
            limit: Limit::of_call(&tool, &input),
            id,
            tool,
            input,
            owner,
            batch: None,
        }
    }
}

/// How a call stands when it is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Begins {
    /// The model asked for it.
    #[default]
    Requested,
    /// A person is being asked.
    AwaitingApproval,
    /// It runs.
    Running,
}

/// What happens to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It begins, at once or because a person allowed it.
    Start,
    /// A person is asked.
    AskApproval,
    /// A person does not allow it.
    Deny,
    /// A person calls it off.
    Cancel,
    /// A sign of life.
    Progress,
    /// Its own result.
    Complete(String),
    /// Its own error.
    Fail(String),
}

impl Change {
    const fn asked(&self) -> CallMove {
        match self {
            Change::Start => CallMove::Start,
            Change::AskApproval => CallMove::AskApproval,
            Change::Deny => CallMove::Deny,
            Change::Cancel => CallMove::Cancel,
            Change::Progress => CallMove::Progress,
            Change::Complete(_) => CallMove::Complete,
            Change::Fail(_) => CallMove::Fail,
        }
    }
}

impl Engine {
    /// Records a call before its effect. Without a turn it belongs to the one that is going on; a turn
    /// that nobody has heard of begins with it.
    pub async fn record_call(
        &self,
        caller: &Caller,
        heard: Heard,
        turn: Option<u32>,
        call: NewCall,
        begins: Begins,
    ) -> Result<CallRecord, Error> {
        caller.allow(Permission::Record)?;
        let (heard, now) = (heard.cleaned()?, self.now());
        let recorded = self.store.write(&caller.tenant, move |tx| {
            let (heard, call) = (heard.clone(), call.clone());
            Box::pin(async move {
                let turn = turn_of(tx, &heard, turn, now).await?;
                let record = record(tx, &heard, turn, call, begins, now).await?;
                tx.keep_calls_due(&heard.session);
                Ok::<_, Error>(record)
            })
        });
        let record = recorded.await?;
        self.wake_for(&record);
        Ok(record)
    }

    /// Writes down what happened to a call. A result of a call that was given up is kept beside what
    /// stands in for it.
    pub async fn change_call(
        &self,
        caller: &Caller,
        key: CallKey,
        change: Change,
    ) -> Result<CallRecord, Error> {
        caller.allow(Permission::Record)?;
        let (key, now) = (cleaned(key), self.now());
        let changed = self.store.write(&caller.tenant, move |tx| {
            let (key, change) = (key.clone(), change.clone());
            Box::pin(async move {
                let mut record = held(tx, &key).await?;
                apply(&mut record, change, now)?;
                tx.keep_call(&record, POLICY);
                tx.keep_calls_due(&key.session);
                tx.bump_session(&key.session, now);
                Ok::<_, Error>(record)
            })
        });
        let record = changed.await?;
        self.wake_for(&record);
        Ok(record)
    }

    /// The sweep may have meant to sleep for longer than this call may be silent.
    fn wake_for(&self, record: &CallRecord) {
        if let Some(stale_at) = stale_at(&record.call.timestamp(), POLICY) {
            self.alarm.ring(Due::By(stale_at.next()));
        }
    }
}

/// A call, with its session held.
async fn held(tx: &mut Tx, key: &CallKey) -> Result<CallRecord, Error> {
    let session = tx.hold_session(&key.session).await?;
    session.ok_or_else(|| no_session(&key.session))?;
    let found = tx.call(key).await?;
    found.ok_or_else(|| Error::NotFound {
        what: "call",
        name: format!("{}/{}", key.turn, key.position),
    })
}

pub(crate) fn no_session(id: &str) -> Error {
    Error::NotFound {
        what: "session",
        name: id.to_owned(),
    }
}

fn cleaned(mut key: CallKey) -> CallKey {
    clean::text(&mut key.session);
    clean::text(&mut key.agent);
    key
}

/// Adds a call at the end of a turn.
pub(crate) async fn record(
    tx: &mut Tx,
    heard: &Heard,
    turn: u32,
    call: NewCall,
    begins: Begins,
    now: Timestamp,
) -> Result<CallRecord, Error> {
    let (session, agent) = (&heard.session, &heard.subagent);
    let position = tx.last_position(session, agent, turn).await? + 1;
    let mut tool = call.tool;
    let mut id = call.id;
    id.iter_mut().for_each(named);
    named(&mut tool);
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
        input: preview(&line_of(&call.input)),
        call: Call::requested(call.limit, call.owner),
        requested_at: now,
        asked_at: None,
        started_at: None,
        last_progress_at: None,
        synthetic: None,
        result: None,
        told: false,
    };
    match begins {
        Begins::Requested => {}
        Begins::AwaitingApproval => apply(&mut record, Change::AskApproval, now)?,
        Begins::Running => apply(&mut record, Change::Start, now)?,
    }
    tx.add_call(&record, POLICY);
    Ok(record)
}

/// Moves a call on, with its times and what came of it.
fn apply(record: &mut CallRecord, change: Change, now: Timestamp) -> Result<(), Error> {
    record.call.apply(change.asked(), now)?;
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

impl From<IllegalCallMove> for Error {
    fn from(illegal: IllegalCallMove) -> Self {
        Error::IllegalCall(illegal)
    }
}

/// Whether a call waits to be answered, or was given up and would still take its own answer.
fn takes_results(record: &CallRecord) -> bool {
    let status = record.status();
    status.is_open() || status == CallStatus::Interrupted
}

/// What an input is known by.
fn digest(input: &Value) -> String {
    hex(&Sha256::digest(input.to_string().as_bytes()))
}

/// The command, where it is one, and else the whole input.
fn line_of(input: &Value) -> String {
    let command = input.get("command").and_then(Value::as_str);
    match (command, input) {
        (Some(command), _) => command.to_owned(),
        (None, Value::Null) => String::new(),
        (None, _) => input.to_string(),
    }
}

/// The beginning of a text on one line, without secrets. Masked before it is cut: half of a secret is
/// one, too.
pub(crate) fn preview(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() > MASKED {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let mut line = mask(&line);
    clean::text(&mut line);
    if let Some((end, _)) = line.char_indices().nth(SHOWN) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// An id or a tool's name as it can be stored.
fn named(text: &mut String) {
    clean::text(text);
    if let Some((end, _)) = text.char_indices().nth(LONGEST_NAME) {
        text.truncate(end);
    }
}
