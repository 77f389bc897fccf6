//! PostgreSQL backend: a connection pool, with one transaction at a time per connection.
//!
//! A transaction costs one round trip per batch of queries and one for its commit; concurrent
//! transitions share the commit (`batcher`). Every connection assumes a role that is subject to row
//! security, so a superuser login does not bypass it.
//!
//! Every wait has a limit. The address may name several hosts (`hosts`), and a connection pooler may
//! be in between (`pooler`). Any number of servers may share one database: they notify each other of
//! changes (`listen`), and elect a leader (`leader`). The database may be distributed over several
//! nodes by tenant (`distribute`).

mod address;
mod batch_queue;
mod batcher;
mod catalog;
mod connecting;
mod connection;
mod distribute;
mod error;
mod exec;
mod generation;
mod hosts;
mod leader;
mod listen;
mod merge;
mod message;
mod migrate;
mod near_index;
mod node_probe;
mod node_state;
mod nodes;
mod options;
mod pipeline;
mod pool;
mod pooler;
mod primaries;
mod relocation;
mod server;
mod session;
mod shards;
mod shared;
mod statistics;
mod tls;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use address::displayed;
pub(crate) use connecting::{Attempt, Connecting};
pub(crate) use connection::Mode;
pub(crate) use relocation::{open_source, open_target};
pub(crate) use server::Postgres;
pub(crate) use shared::Shared;
