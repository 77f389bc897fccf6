//! A connection of an agent over the standard input and output of a server that the agent started.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_core::call::Owner;
use onward_core::id::SessionId;

use crate::machine;

/// A connection between an agent and a server that the agent started.
#[derive(Debug, Clone)]
pub struct Connection(Arc<State>);

#[derive(Debug)]
struct State {
    id: SessionId,
    server: Option<Owner>,
    agent: Option<Owner>,
    recorded: Mutex<BTreeSet<SessionId>>,
}

impl Connection {
    /// The connection of this process, with a random id.
    pub fn of_this_process(random: [u8; 8]) -> Self {
        let server = machine::owner(std::process::id());
        Self::new(random, server, machine::launcher())
    }

    /// A connection between these processes.
    pub fn new(random: [u8; 8], server: Option<Owner>, agent: Option<Owner>) -> Self {
        let id = format!("stdio-{:016x}", u64::from_be_bytes(random));
        Self(Arc::new(State {
            id: SessionId::new(id),
            server,
            agent,
            recorded: Mutex::default(),
        }))
    }

    /// The connection as a session.
    pub(crate) fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// The process of this server.
    pub(crate) fn server(&self) -> Option<&Owner> {
        self.0.server.as_ref()
    }

    /// The process that started it.
    pub(crate) fn agent(&self) -> Option<&Owner> {
        self.0.agent.as_ref()
    }

    /// The sessions that this connection has recorded.
    pub(crate) fn recorded(&self) -> MutexGuard<'_, BTreeSet<SessionId>> {
        let recorded = self.0.recorded.lock();
        recorded.unwrap_or_else(PoisonError::into_inner)
    }
}
