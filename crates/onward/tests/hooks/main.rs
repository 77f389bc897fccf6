//! The hooks of every agent, through the real binary: payloads in, the agent's own format out.
//!
//! `scripts/AGENT.txt` are transcripts: `$ NAME` sends `tests/fixtures/hooks/AGENT/NAME.json`, and what
//! follows is the answer, as in `tests/cli`. `ONWARD_BLESS=1 cargo test -p onward --test hooks` writes
//! them anew; read the difference. Where the payloads come from stands beside them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot run the binary must fail"
)]

mod at_once;
mod calls;
mod captured;
mod desk;
mod killed;
mod ladder;
mod offers;
mod outside;
mod sessions;
mod transcripts;
mod wrong;
