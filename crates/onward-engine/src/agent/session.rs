//! Agent sessions reported by hooks: turns, steps, and the escalation state of each turn.
//!
//! The core judges steps and decides on escalation. This module loads and stores the state in one
//! transaction that locks the session, so concurrent hooks run one after another. There is one
//! state per agent and subagent; compaction of the model's context does not affect it.
//!
//! Hook events are in `turns.rs`, checks before a tool call in `admission.rs`, and the state for
//! the proxy in `snapshot.rs`. This file contains the queries.

mod admission;
mod recorder;
mod snapshot;
mod turns;

use onward_core::Timestamp;
use onward_core::role::Permission;
use onward_store::{CallRecord, Session, SessionLine, Sessions, ToolCalls, Turn, TurnStep};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

pub use crate::agent::observed::{Fingerprint, HookSource, ObservedCall, ObservedStep, StepReport};
pub use admission::Admission;
pub use snapshot::SessionSnapshot;
pub use turns::{SessionStart, StepMessages};

/// Maximum number of a session's calls in a response.
const MAX_CALLS: u32 = 500;

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
            Box::pin(async move { Sessions(tx).sessions(limit).await })
        });
        Ok(sessions.await?)
    }

    /// Finds a session by id or id prefix.
    pub async fn find_session(&self, caller: &Caller, id: &str) -> Result<Session, Error> {
        caller.allow(Permission::Read)?;
        let name = id.to_owned();
        let found = self.store.read(&caller.tenant, move |tx| {
            let name = name.clone();
            Box::pin(async move { Sessions(tx).sessions_beginning(&name).await })
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
                for turn in Sessions(tx).turns(&session.id, turns).await? {
                    let steps = Sessions(tx).turn_steps(&session.id, &turn, steps).await?;
                    all.push((turn, steps));
                }
                let calls = ToolCalls(tx)
                    .calls_of_session(&session.id, MAX_CALLS)
                    .await?;
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
            Box::pin(async move { Sessions(tx).sessions_changed(since, limit).await })
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
                Sessions(tx).switch_session(&id, off, now);
                Ok::<(), onward_store::Error>(())
            })
        });
        switched.await?;
        session.switched_off = off;
        Ok(session)
    }
}
