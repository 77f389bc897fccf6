//! What programs read: the JSON of every surface, in its own structs.
//!
//! The names are a contract (camelCase; fields may be added, never renamed), so they stand here and
//! not on the types of the core, which change as the core does. Instants are RFC 3339 in UTC with
//! milliseconds, spans are milliseconds in a field that ends in `Ms`.

pub(crate) mod call;
pub(crate) mod context;
pub(crate) mod created;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod feedback;
pub(crate) mod finding;
pub(crate) mod modified;
pub(crate) mod next;
pub(crate) mod notice;
pub(crate) mod plan;
pub(crate) mod pong;
pub(crate) mod profile;
pub(crate) mod research;
pub(crate) mod review;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod skill;
pub(crate) mod step;
pub(crate) mod submitted;
pub(crate) mod token;

use std::time::Duration;

use onward_core::Timestamp;

/// An instant on the wire.
fn at(at: Timestamp) -> String {
    at.to_string()
}

/// A span on the wire.
fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
