//! What is remembered of a turn, for somebody who goes on judging it in memory.
//!
//! The proxy stands in the way of every request, so it judges first and tells afterwards. It asks once
//! for each conversation, the first time that it sees it, and is then as far as whoever told the steps
//! before: itself, before it was started anew. Nothing is noted or held here.

use onward_core::role::Permission;
use onward_core::turn::State;
use onward_core::turn::ladder::Standing;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// What is remembered of an agent of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalled {
    /// Which agent, as it was told.
    pub agent: String,
    /// Whether a person wants the session left alone.
    pub off: bool,
    /// What its last turn was called, where it had one.
    pub turn: Option<String>,
    /// Where that turn stands; at its beginning where it is over.
    pub standing: Standing,
    /// What the detector remembers of it.
    pub state: State,
    /// The calls that were seen last.
    pub known_calls: Vec<String>,
}

impl Engine {
    /// What is remembered of an agent of a session, or of its subagent; nothing where nobody heard of
    /// the session.
    pub async fn recall(
        &self,
        caller: &Caller,
        session: &str,
        subagent: &str,
    ) -> Result<Option<Recalled>, Error> {
        caller.allow(Permission::Record)?;
        let (id, name) = (session.to_owned(), subagent.to_owned());
        let found = self.store.read(&caller.tenant, move |tx| {
            let (id, name) = (id.clone(), name.clone());
            Box::pin(async move { tx.remembered_session(&id, &name).await })
        });
        Ok(found.await?.map(|(session, watched, turn)| {
            let watched = watched.unwrap_or_default();
            let going = turn.as_ref().filter(|turn| turn.ended.is_none());
            let of_it = going.is_some_and(|turn| turn.number == watched.turn);
            Recalled {
                agent: session.agent,
                off: session.switched_off,
                standing: going.map(|turn| turn.standing).unwrap_or_default(),
                state: match of_it {
                    true => watched.state,
                    false => State::default(),
                },
                turn: turn.and_then(|turn| turn.key),
                known_calls: watched.known_calls,
            }
        }))
    }
}
