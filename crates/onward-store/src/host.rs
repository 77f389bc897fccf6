//! The state of the hosts of a PostgreSQL address.

use crate::error::Error;

/// The hosts of an address.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// The hosts, in the order of the address.
    pub states: Vec<HostState>,
    /// Whether different servers accept writes: each of them may contain changes that the others do
    /// not have.
    pub several_primaries: bool,
}

/// A host of an address.
#[derive(Debug, Clone)]
pub struct HostState {
    /// Its name or address, and its port.
    pub host: String,
    /// Its role.
    pub role: HostRole,
}

/// The role of a host.
#[derive(Debug, Clone)]
pub enum HostRole {
    /// It accepts writes.
    Primary {
        /// Its timeline, which increases with every promotion; `None` if the server does not report
        /// it.
        timeline: Option<u32>,
    },
    /// It follows a primary.
    Standby,
    /// It is not a standby, but rejects writes.
    ReadOnly,
    /// It did not respond, or rejected the login.
    Unavailable(Error),
}
