//! Loads the stored state of a turn for a caller that judges steps in memory.
//!
//! The proxy handles every request, so it judges a step first and records the judged step
//! afterwards. It loads this snapshot once per conversation, when it first sees it, and continues
//! from the recorded steps, for example after a restart. Read-only; takes no locks.

use onward_core::role::Permission;
use onward_core::turn::State;
use onward_core::turn::escalation::EscalationState;
use onward_store::{CONNECTION, Session, Sessions};

use super::recorder::UNJUDGED;
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// Stored state of an agent in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSnapshot {
    /// The reported agent name.
    pub agent: String,
    /// Whether monitoring of the session is turned off.
    pub off: bool,
    /// The agent's id of the last turn, if it had one.
    pub turn: Option<String>,
    /// Escalation state of the current turn; the default if the last turn has ended.
    pub escalation: EscalationState,
    /// Detector state of the current turn.
    pub state: State,
    /// Ids of the most recent calls.
    pub known_calls: Vec<String>,
}

/// The ids of judged calls, without the numbers of their turns.
fn call_ids(known: &[String]) -> Vec<String> {
    let judged = known.iter().filter(|id| !id.starts_with(UNJUDGED));
    judged
        .map(|id| {
            id.split_once(':')
                .map_or(id.as_str(), |(_, id)| id)
                .to_owned()
        })
        .collect()
}

impl Engine {
    /// Loads the stored state of an agent or subagent. `None` if the session is not recorded, or
    /// only by a connection that names it.
    pub async fn session_snapshot(
        &self,
        caller: &Caller,
        session: &str,
        subagent: &str,
    ) -> Result<Option<SessionSnapshot>, Error> {
        caller.allow(Permission::Record)?;
        let (id, name) = (session.to_owned(), subagent.to_owned());
        let found = self.store.read(&caller.tenant, move |tx| {
            let (id, name) = (id.clone(), name.clone());
            Box::pin(async move { Sessions(tx).session_state(&id, &name).await })
        });
        let is_observed = |session: &Session| session.agent != CONNECTION || session.switched_off;
        let found = found.await?.filter(|(session, ..)| is_observed(session));
        Ok(found.map(|(session, watched, turn)| {
            let watched = watched.unwrap_or_default();
            let current = turn.as_ref().filter(|turn| turn.ended.is_none());
            let is_same_turn = current.is_some_and(|turn| turn.number == watched.turn);
            SessionSnapshot {
                agent: session.agent,
                off: session.switched_off,
                escalation: current.map(|turn| turn.standing).unwrap_or_default(),
                state: if is_same_turn {
                    watched.state
                } else {
                    State::default()
                },
                turn: turn.and_then(|turn| turn.key),
                known_calls: call_ids(&watched.known_calls),
            }
        }))
    }
}
