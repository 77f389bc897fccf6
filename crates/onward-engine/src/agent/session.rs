//! Agent sessions reported by hooks: turns, steps, and the escalation state of each turn.
//!
//! The core judges steps and decides on escalation. This module loads and stores the state in one
//! transaction that locks the session, so concurrent hooks run one after another. There is one
//! state per agent and subagent; compaction of the model's context does not affect it.
//!
//! Hook events are in `turns.rs`, checks before a tool call in `admission.rs`, and the state for
//! the proxy in `snapshot.rs`. This file contains the queries.

mod admission;
mod capture;
mod primer;
mod recorder;
mod snapshot;
mod stop;
mod turns;

use onward_core::call::{CallState, CallStatus};
use onward_core::role::Permission;
use onward_core::session::{DeadCall, SessionFacts, SessionStatus, SubagentStatus, TurnFacts};
use onward_core::{PlanId, Timestamp};
use onward_store::{
    CallRecord, Plans, Session, SessionLine, SessionUsage, Sessions, ToolCalls, Turn, TurnStep,
    Usages,
};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::{Error, MATCHES, ObjectKind, match_entry};
use crate::subagent::{MAX_SUBAGENTS, subagent_facts};

pub use crate::agent::observed::{Fingerprint, HookSource, ObservedCall, ObservedStep, StepReport};
pub use admission::Admission;
pub use primer::{OpenPlan, OwnStep, ProjectState};
pub use snapshot::SessionSnapshot;
pub use stop::HeldClaim;
pub use turns::{BegunTurn, SessionStart, StepMessages};

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
    /// The last turn of each subagent, in the order in which they began.
    pub subagents: Vec<Turn>,
    /// The tokens, if a count is known.
    pub usage: Option<SessionUsage>,
}

/// A subagent of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subagent<'a> {
    /// Its last turn.
    pub turn: &'a Turn,
    /// Its status.
    pub status: SubagentStatus,
    /// Start of that status: of a stale subagent, its last event.
    pub since: Timestamp,
}

/// A session in [`Error::Ambiguous`], with its directory.
fn describe_match(session: &Session) -> String {
    match_entry(&session.id, session.directory.as_deref())
}

/// The status of a session for people, and since when.
pub fn status(line: &SessionLine, now: Timestamp) -> (SessionStatus, Timestamp) {
    let mut facts = facts(&line.session, line.last_turn.as_ref(), &line.calls);
    facts.stale_subagent_at = stale_subagent_at(&line.subagents, &line.calls, now);
    facts.status(now)
}

/// The subagents of a session in a list, stale ones first.
pub fn subagents(line: &SessionLine, now: Timestamp) -> Vec<Subagent<'_>> {
    judged(&line.subagents, &line.calls, now)
}

impl SessionView {
    /// The status of the session for people, and since when.
    pub fn status(&self, now: Timestamp) -> (SessionStatus, Timestamp) {
        let mut turns = self.turns.iter().map(|(turn, _)| turn);
        let last = turns.rfind(|turn| turn.agent.is_empty());
        let mut facts = facts(&self.session, last, &self.calls);
        facts.stale_subagent_at = stale_subagent_at(&self.subagents, &self.calls, now);
        facts.status(now)
    }

    /// The subagents, stale ones first.
    pub fn subagents(&self, now: Timestamp) -> Vec<Subagent<'_>> {
        judged(&self.subagents, &self.calls, now)
    }
}

fn judged<'a>(turns: &'a [Turn], calls: &[CallRecord], now: Timestamp) -> Vec<Subagent<'a>> {
    let subagents = turns.iter().map(|turn| {
        let (status, since) = subagent_facts(turn, calls).status(now);
        Subagent {
            turn,
            status,
            since,
        }
    });
    let mut subagents: Vec<Subagent<'_>> = subagents.collect();
    subagents.sort_by_key(|subagent| subagent.status);
    subagents
}

/// When a subagent became stale last.
fn stale_subagent_at(turns: &[Turn], calls: &[CallRecord], now: Timestamp) -> Option<Timestamp> {
    let stale_at = turns.iter().filter_map(|turn| {
        let stale_at = subagent_facts(turn, calls).stale_at()?;
        (now > stale_at).then_some(stale_at)
    });
    stale_at.max()
}

fn facts(session: &Session, turn: Option<&Turn>, calls: &[CallRecord]) -> SessionFacts {
    let approvals = calls.iter().filter_map(|record| match record.call.state {
        CallState::AwaitingApproval { requested_at, .. } => Some(requested_at),
        CallState::Requested
        | CallState::Running(_)
        | CallState::Completed(_)
        | CallState::Failed(_)
        | CallState::Denied { .. }
        | CallState::Cancelled { .. }
        | CallState::Interrupted(_) => None,
    });
    let dead = calls.iter().filter_map(|record| match record.call.state {
        CallState::Interrupted(interruption) => Some(DeadCall {
            interrupted_at: interruption.interrupted_at,
            active_at: (record.last_progress_at)
                .max(record.started_at)
                .max(record.asked_at)
                .unwrap_or(record.requested_at),
        }),
        CallState::Requested
        | CallState::AwaitingApproval { .. }
        | CallState::Running(_)
        | CallState::Completed(_)
        | CallState::Failed(_)
        | CallState::Denied { .. }
        | CallState::Cancelled { .. } => None,
    });
    SessionFacts {
        last_seen_at: session.last_seen_at,
        ended_at: session.ended_at,
        turn: turn.map(|turn| TurnFacts {
            began_at: turn.began_at,
            progressed_at: turn.progressed_at,
            ended: turn.ended,
            escalation: turn.standing,
        }),
        approval_requested_at: approvals.min(),
        dead_call: dead.max_by_key(|dead| dead.interrupted_at),
        stale_subagent_at: None,
        has_running_call: calls
            .iter()
            .any(|record| record.status() == CallStatus::Running),
        closes_tools: !session.switched_off,
    }
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

    /// The agents that reported sessions, each with its last activity.
    pub async fn agents_seen(&self, caller: &Caller) -> Result<Vec<(String, Timestamp)>, Error> {
        caller.allow(Permission::Read)?;
        let agents = self.store.read(&caller.tenant, |tx| {
            Box::pin(async { Sessions(tx).agents_seen().await })
        });
        Ok(agents.await?)
    }

    /// The open plan on which a session worked last, with its name.
    pub async fn plan_of_session(
        &self,
        caller: &Caller,
        session: &str,
    ) -> Result<Option<(PlanId, String)>, Error> {
        caller.allow(Permission::Read)?;
        let session = session.to_owned();
        let plan = self.store.read(&caller.tenant, move |tx| {
            let session = session.clone();
            Box::pin(async move {
                let plans = Sessions(tx).plans_of_session(&session, 1).await?;
                let Some(plan) = plans.first() else {
                    return Ok(None);
                };
                let sheet = Plans(tx).sheet(*plan).await?;
                Ok::<_, onward_store::Error>(sheet.map(|sheet| (*plan, sheet.brief.name)))
            })
        });
        Ok(plan.await?)
    }

    /// Finds a session by id or id prefix.
    pub async fn find_session(&self, caller: &Caller, id: &str) -> Result<Session, Error> {
        caller.allow(Permission::Read)?;
        let name = id.to_owned();
        let found = self.store.read(&caller.tenant, move |tx| {
            let name = name.clone();
            Box::pin(async move { Sessions(tx).sessions_beginning(&name, MATCHES).await })
        });
        let mut found = found.await?;
        // An exact match wins, even if it is also the prefix of another id.
        match found.iter().position(|session| session.id == id) {
            Some(exact) => Ok(found.swap_remove(exact)),
            None if found.len() > 1 => Err(Error::Ambiguous {
                text: id.to_owned(),
                kind: "sessions",
                matches: found.iter().map(describe_match).collect(),
            }),
            None => found.pop().ok_or_else(|| Error::NotFound {
                kind: ObjectKind::Session,
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
                let subagents = Sessions(tx).subagents(&session.id, MAX_SUBAGENTS).await?;
                let usage = Usages(tx).of_session(&session.id).await?;
                Ok::<_, onward_store::Error>(SessionView {
                    usage,
                    session,
                    turns: all,
                    calls,
                    subagents,
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
