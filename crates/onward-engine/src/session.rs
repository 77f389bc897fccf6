//! Agents' sessions, as their hooks tell of them: turns, steps, and where each stands on the ladder.
//!
//! What a step is worth the core's detector says, and what is done about it the core's ladder; here
//! the state is loaded, asked and kept, in one transaction that holds the session, so that hooks that
//! run at once take turns. One state per agent and subagent; it lives outside of the model's context,
//! which compaction erases.
//!
//! How steps are taken in stands in `session/watch.rs`, how somebody goes on with a turn in
//! `session/recall.rs`; here is what is shown.

mod gate;
mod recall;
mod watch;

pub(crate) use gate::{gate, turn_of};

use onward_core::role::Permission;
use onward_core::turn::ladder::Gate;
use onward_core::{PlanId, Timestamp};
use onward_store::{CallRecord, Session, SessionLine, Sheet, Turn, TurnStep};
use serde_json::Value;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

pub use recall::Recalled;
/// How many calls of a session are shown.
const CALLS: u32 = 500;

/// Who tells of something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// The session's id, which the agent gives.
    pub session: String,
    /// Which agent.
    pub agent: String,
    /// Where it works.
    pub directory: Option<String>,
    /// Which subagent; the agent itself where it is empty.
    pub subagent: String,
    /// What the agent calls the turn, where it does.
    pub turn: Option<String>,
}

/// What the world outside looks like, as far as somebody looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fingerprint {
    /// There is no such signal.
    None,
    /// Looking took too long.
    Late,
    /// It looks like this.
    Of(String),
}

/// A step, as a hook saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenStep {
    /// The calls of it.
    pub calls: Vec<SeenCall>,
    /// Whether they are all the calls of one model response; else the agent tells of each alone.
    pub whole: bool,
    /// What the world outside looks like after it.
    pub fingerprint: Fingerprint,
    /// Plans that the calls were about.
    pub plans: Vec<PlanId>,
}

/// A call with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenCall {
    /// The id that the agent gives.
    pub id: Option<String>,
    /// Which tool.
    pub tool: String,
    /// What it was asked.
    pub input: Value,
    /// Whether it succeeded, where somebody said.
    pub ok: Option<bool>,
    /// The raw result.
    pub output: String,
}

/// What is to be said after a step, or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// To the agent.
    pub to_agent: Option<String>,
    /// To the person.
    pub to_person: Option<String>,
    /// Why what was remembered of the turn could not be read, and was begun anew.
    pub unreadable: Option<String>,
}

/// Whether a call may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gated {
    /// Whether.
    pub gate: Gate,
    /// Why not, for the agent.
    pub to_agent: String,
    /// Why not, for the person.
    pub to_person: String,
}

/// What a session that begins has to know.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Begun {
    /// The open plan that was worked on last from its directory.
    pub plan: Option<Sheet>,
    /// Calls of it that were given up without its agent knowing.
    pub interrupted: Vec<CallRecord>,
}

/// A session with its turns, each with its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// The session.
    pub session: Session,
    /// Its last turns, in the order in which they began.
    pub turns: Vec<(Turn, Vec<TurnStep>)>,
    /// Its last calls, in the order in which they were asked for.
    pub calls: Vec<CallRecord>,
}

impl Engine {
    /// The sessions that were heard of last.
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

    /// The session whose id is this, or begins with it.
    pub async fn find_session(&self, caller: &Caller, id: &str) -> Result<Session, Error> {
        caller.allow(Permission::Read)?;
        let name = id.to_owned();
        let found = self.store.read(&caller.tenant, move |tx| {
            let name = name.clone();
            Box::pin(async move { tx.sessions_beginning(&name).await })
        });
        let mut found = found.await?;
        // An id that is the beginning of another one still names its own session.
        match found.iter().position(|session| session.id == id) {
            Some(exact) => Ok(found.swap_remove(exact)),
            None if found.len() > 1 => Err(Error::Ambiguous(id.to_owned())),
            None => found.pop().ok_or_else(|| Error::NotFound {
                what: "session",
                name: id.to_owned(),
            }),
        }
    }

    /// A session with its last turns, each with its last steps.
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
                let calls = tx.calls_of_session(&session.id, CALLS).await?;
                Ok::<_, onward_store::Error>(SessionView {
                    session,
                    turns: all,
                    calls,
                })
            })
        });
        Ok(view.await?)
    }

    /// The sessions that have changed since an instant, each with how often it has ever changed.
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

    /// Has a session left alone, or watched again.
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
