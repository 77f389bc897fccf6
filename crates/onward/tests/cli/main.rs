//! The real binary, run as people and scripts run it: what it prints, where, and how it ends.
//!
//! `scripts/*.txt` are transcripts: commands with what they answer. Each is run again, on plans that
//! `scene.rs` makes, and must answer the same; the ones that say nothing about files on PostgreSQL
//! too. `ONWARD_BLESS=1 cargo test -p onward --test cli` writes them anew; read the difference.
//!
//! Both streams are pipes here, and must stay plain.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot run the binary must fail"
)]

mod basics;
mod damage;
mod json;
mod redact;
mod scene;
mod script;
mod watch;
