//! Agent sessions reported by hooks: turns, steps, and the escalation state of each turn.
//!
//! The core judges steps and decides on escalation. This module loads and stores the state in one
//! transaction that locks the session, so concurrent hooks run one after another. There is one
//! state per agent and subagent; compaction of the model's context does not affect it.
//!
//! Hook events are in `turns.rs`, checks before a tool call in `admission.rs`, and the state for
//! the proxy in `snapshot.rs`. This file contains the types and queries.

mod admission;
mod snapshot;
mod turns;

pub(crate) use admission::{admit, resolve_turn};

use onward_core::role::Permission;
use onward_core::turn::escalation::ToolGate;
use onward_core::{PlanId, Timestamp};
use onward_store::{CallRecord, Session, SessionLine, Sheet, Turn, TurnStep};
use serde_json::Value;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

pub use snapshot::SessionSnapshot;
/// Maximum number of a session's calls in a response.
const MAX_CALLS: u32 = 500;

/// The session, agent and turn that a hook event belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookSource {
    /// The session id assigned by the agent.
    pub session: String,
    /// The agent.
    pub agent: String,
    /// The working directory.
    pub directory: Option<String>,
    /// The subagent; empty for the main agent.
    pub subagent: String,
    /// The agent's own id of the turn, if it has one.
    pub turn: Option<String>,
}

/// Fingerprint of the external state (the working tree), if it was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fingerprint {
    /// No fingerprint is available.
    Unavailable,
    /// Taking the fingerprint timed out.
    TimedOut,
    /// The fingerprint.
    Value(String),
}

/// A step reported by a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedStep {
    /// The step's tool calls.
    pub calls: Vec<ObservedCall>,
    /// Whether `calls` are all calls of one model response. If false, the agent reports each call
    /// separately.
    pub is_batch: bool,
    /// Fingerprint of the external state after the step.
    pub fingerprint: Fingerprint,
    /// Plans that the calls refer to.
    pub plans: Vec<PlanId>,
}

/// A tool call with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedCall {
    /// The id assigned by the agent.
    pub id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
    /// Whether the call succeeded, if reported.
    pub ok: Option<bool>,
    /// The raw result.
    pub output: String,
}

/// Messages after a step, if any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepMessages {
    /// For the agent.
    pub to_agent: Option<String>,
    /// For the user.
    pub to_user: Option<String>,
    /// Why the stored state of the turn could not be read; it was reset.
    pub unreadable: Option<String>,
}

/// Whether a tool call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// The decision.
    pub gate: ToolGate,
    /// The reason for a rejection, for the agent.
    pub to_agent: String,
    /// The reason for a rejection, for the user.
    pub to_user: String,
}

/// Information for a session that starts or resumes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionStart {
    /// The open plan that was most recently worked on from the session's directory.
    pub plan: Option<Sheet>,
    /// Interrupted calls of the session that have not been reported to the agent.
    pub interrupted: Vec<CallRecord>,
}

/// A session with its turns and their steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// The session.
    pub session: Session,
    /// The most recent turns, in the order in which they began.
    pub turns: Vec<(Turn, Vec<TurnStep>)>,
    /// The most recent calls, in request order.
    pub calls: Vec<CallRecord>,
}

impl Engine {
    /// Sessions, most recent activity first.
    pub async fn list_sessions(
        &self,
        caller: &Caller,
        limit: u32,
    ) -> Result<Vec<SessionLine>, Error> {
        caller.allow(Permission::Read)?;
        let sessions = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.sessions(limit).await })
        });
        Ok(sessions.await?)
    }

    /// Finds a session by id or id prefix.
    pub async fn find_session(&self, caller: &Caller, id: &str) -> Result<Session, Error> {
        caller.allow(Permission::Read)?;
        let name = id.to_owned();
        let found = self.store.read(&caller.tenant, move |tx| {
            let name = name.clone();
            Box::pin(async move { tx.sessions_beginning(&name).await })
        });
        let mut found = found.await?;
        // An exact match wins, even if it is also the prefix of another id.
        match found.iter().position(|session| session.id == id) {
            Some(exact) => Ok(found.swap_remove(exact)),
            None if found.len() > 1 => Err(Error::Ambiguous(id.to_owned())),
            None => found.pop().ok_or_else(|| Error::NotFound {
                kind: "session",
                name: id.to_owned(),
            }),
        }
    }

    /// A session with its most recent turns and their most recent steps.
    pub async fn show_session(
        &self,
        caller: &Caller,
        id: &str,
        turns: u32,
        steps: u32,
    ) -> Result<SessionView, Error> {
        let session = self.find_session(caller, id).await?;
        let view = self.store.read(&caller.tenant, move |tx| {
            let session = session.clone();
            Box::pin(async move {
                let mut all = Vec::new();
                for turn in tx.turns(&session.id, turns).await? {
                    let steps = tx.turn_steps(&session.id, &turn, steps).await?;
                    all.push((turn, steps));
                }
                let calls = tx.calls_of_session(&session.id, MAX_CALLS).await?;
                Ok::<_, onward_store::Error>(SessionView {
                    session,
                    turns: all,
                    calls,
                })
            })
        });
        Ok(view.await?)
    }

    /// Sessions that have changed since an instant, each with its change counter.
    pub async fn sessions_changed(
        &self,
        caller: &Caller,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(String, u64)>, Error> {
        caller.allow(Permission::Read)?;
        let changed = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.sessions_changed(since, limit).await })
        });
        Ok(changed.await?)
    }

    /// Turns monitoring of a session off or on.
    pub async fn switch_session(
        &self,
        caller: &Caller,
        id: &str,
        off: bool,
    ) -> Result<Session, Error> {
        caller.allow(Permission::Intervene)?;
        let mut session = self.find_session(caller, id).await?;
        let (id, now) = (session.id.clone(), self.now());
        let switched = self.store.write(&caller.tenant, move |tx| {
            let id = id.clone();
            Box::pin(async move {
                tx.switch_session(&id, off, now);
                Ok::<(), onward_store::Error>(())
            })
        });
        switched.await?;
        session.switched_off = off;
        Ok(session)
    }
}
