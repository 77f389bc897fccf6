//! The harness of all tests and benchmarks: databases, temporary directories, seeded randomness,
//! golden files; with the feature `binary`, the processes and servers around the real binary; with
//! `bench`, the shared parts of the benchmarks.
//!
//! All functions panic if something fails, because a test without its setup must fail. The crate
//! does not depend on the crates under test. They use it as a development dependency;
//! `tests/dependencies.rs` in `onward` checks that no release build depends on it. Run `cargo run
//! -p onward-testbed` to get a PostgreSQL server for experiments.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test whose setup fails must fail with the reason"
)]

mod cluster;
mod database;
mod dir;
mod git;
pub mod golden;
mod random;

#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "binary")]
mod connection;
#[cfg(feature = "binary")]
pub mod mcp_client;
#[cfg(feature = "binary")]
pub mod mock_server;
#[cfg(feature = "binary")]
pub mod model_api;
#[cfg(feature = "binary")]
mod process;
#[cfg(feature = "binary")]
mod program;
#[cfg(feature = "binary")]
pub mod sdk_client;
#[cfg(feature = "binary")]
mod server;

pub use cluster::{
    CITUS, Cluster, DISTRIBUTED, OLD_PGVECTOR, PGVECTOR, Pooler, URL_VARIABLE,
    distribute_due_times, psql, psql_each, with_citus_path,
};
pub use database::{Backend, Database};
pub use dir::TestDir;
pub use git::{git, run_git};
pub use random::{Rng, seed};

#[cfg(feature = "binary")]
pub use connection::Connection;
#[cfg(feature = "binary")]
pub use process::ToolProcess;
#[cfg(feature = "binary")]
pub use program::{Program, Run};
#[cfg(feature = "binary")]
pub use server::{Response, Server, client, send};

/// The deadline of every wait in a test.
pub const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
