//! The owners of MCP sessions and their fair shares.
//!
//! A caller who has used up the share of its token or tenant gets a new session in place of its
//! oldest idle one. A session is idle while it has no request and no stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_engine::Caller;

use crate::web::shares::{Exhausted, Shares};

/// The owner of a session.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Owner {
    tenant: Arc<str>,
    name: String,
}

impl From<&Caller> for Owner {
    fn from(caller: &Caller) -> Self {
        Self {
            tenant: Arc::clone(&caller.tenant),
            name: caller.name.clone(),
        }
    }
}

/// All sessions by their id.
#[derive(Default)]
pub(super) struct Sessions(Mutex<State>);

#[derive(Default)]
struct State {
    sessions: HashMap<String, Session>,
    /// Number of uses so far, which orders them.
    uses: u64,
}

struct Session {
    owner: Owner,
    last_use: u64,
    /// Requests and streams.
    active: usize,
}

/// A request or stream of a session, until this is dropped.
pub(super) struct Use {
    sessions: Arc<Sessions>,
    id: String,
}

impl Sessions {
    /// Starts to use a session, unless it does not exist or has another owner.
    pub(super) fn start_use(self: &Arc<Self>, id: &str, owner: &Owner) -> Option<Use> {
        let mut state = self.lock();
        state.uses += 1;
        let uses = state.uses;
        let session = state.sessions.get_mut(id)?;
        if session.owner != *owner {
            return None;
        }
        session.active += 1;
        session.last_use = uses;
        Some(Use {
            sessions: Arc::clone(self),
            id: id.to_owned(),
        })
    }

    /// Makes room for a session of this owner. Returns the session to close, if any. `is_open`:
    /// whether a session still exists.
    pub(super) fn make_room(
        &self,
        owner: &Owner,
        shares: Shares,
        is_open: impl Fn(&str) -> bool,
    ) -> Result<Option<String>, Exhausted> {
        let mut state = self.lock();
        state.sessions.retain(|id, _| is_open(id));
        let all = state.sessions.values();
        let of_tenant = all
            .clone()
            .filter(|session| session.owner.tenant == owner.tenant);
        let of_caller = of_tenant.clone().filter(|session| session.owner == *owner);
        let exhausted = if of_caller.count() >= shares.caller {
            Exhausted::Caller
        } else if of_tenant.count() >= shares.tenant {
            Exhausted::Tenant
        } else if all.count() >= shares.all {
            Exhausted::All
        } else {
            return Ok(None);
        };
        let idle = state.sessions.iter();
        let idle = idle.filter(|(_, session)| session.owner == *owner && session.active == 0);
        let oldest = idle.min_by_key(|(_, session)| session.last_use);
        let oldest = oldest.map(|(id, _)| id.clone()).ok_or(exhausted)?;
        state.sessions.remove(&oldest);
        Ok(Some(oldest))
    }

    /// Adds a session.
    pub(super) fn add(&self, id: String, owner: Owner) {
        let mut state = self.lock();
        state.uses += 1;
        let session = Session {
            owner,
            last_use: state.uses,
            active: 0,
        };
        state.sessions.entry(id).or_insert(session);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned map is consistent: every use is one operation.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.lock().sessions.get_mut(&self.id) {
            session.active = session.active.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(tenant: &str, name: &str) -> Owner {
        Owner {
            tenant: Arc::from(tenant),
            name: name.to_owned(),
        }
    }

    #[test]
    fn closes_the_oldest_idle_session_of_the_same_owner() {
        let sessions = Arc::new(Sessions::default());
        let (ann, bob) = (owner("acme", "ann"), owner("acme", "bob"));
        let shares = Shares::new(8);
        let add = |id: &str, owner: &Owner| {
            let closed = sessions.make_room(owner, shares, |_| true);
            if closed.is_ok() {
                sessions.add(id.to_owned(), owner.clone());
            }
            closed
        };
        for (id, owner) in [("b1", &bob), ("a1", &ann), ("a2", &ann)] {
            assert_eq!(add(id, owner), Ok(None));
        }
        let first = sessions.start_use("a1", &ann).expect("a session of ann");
        assert!(sessions.start_use("a1", &bob).is_none());
        assert_eq!(add("a3", &ann), Ok(Some("a2".to_owned())));
        let third = sessions.start_use("a3", &ann).expect("a session of ann");
        assert_eq!(add("a4", &ann), Err(Exhausted::Caller));
        drop((first, third));
        assert_eq!(add("a4", &ann), Ok(Some("a1".to_owned())));
        assert!(sessions.start_use("b1", &bob).is_some());
    }

    #[test]
    fn forgets_closed_sessions() {
        let sessions = Arc::new(Sessions::default());
        let ann = owner("acme", "ann");
        sessions.add("a1".to_owned(), ann.clone());
        let room = sessions.make_room(&ann, Shares::new(1), |_| false);
        assert_eq!(room, Ok(None));
        assert!(sessions.start_use("a1", &ann).is_none());
    }
}
