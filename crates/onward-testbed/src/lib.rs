//! The harness of all tests and benchmarks: databases, temporary directories, seeded randomness and
//! golden files.
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
pub mod golden;
mod random;

pub use cluster::{Cluster, OLD_PGVECTOR, PGVECTOR, URL_VARIABLE, psql};
pub use database::{Backend, Database};
pub use dir::TestDir;
pub use random::{Rng, seed};
