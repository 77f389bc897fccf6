//! Tests of the binary: output, streams and exit codes.
//!
//! `scripts/*.txt` are golden transcripts of commands and their output, run on the plans of
//! `fixture.rs`; most run on PostgreSQL, too. `help.txt` is the help of every command. Update both
//! with `ONWARD_BLESS=1 cargo test -p onward --test cli`, and review the diff.
//!
//! Both streams are pipes, so the output must have no colour; `terminal.rs` uses a pseudoterminal.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot run the binary must fail"
)]

mod basics;
mod damaged_databases;
mod environment;
mod export_files;
mod fixture;
mod help;
mod json;
mod plan_files;
mod project_trust;
mod redact;
mod restore;
mod script;
mod terminal;
mod watch;
