//! Hooks of all agents, tested with the real binary: payload in, reply in the agent's format out.
//!
//! `scripts/AGENT.txt` is a golden transcript: `$ NAME` sends
//! `tests/fixtures/hooks/AGENT/NAME.json`, and the output follows, as in `tests/cli`.
//! `scripts/faults/*.txt` are golden error messages. Update all of them with `ONWARD_BLESS=1 cargo
//! test -p onward --test hooks` and review the diff. The README of the fixtures states where the
//! payloads come from.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot run the binary must fail"
)]

mod activity;
mod calls;
mod capture;
mod captured_lists;
mod captured_payloads;
mod concurrency;
mod escalation;
mod external_changes;
mod faults;
mod harness;
mod hostile_repositories;
mod killed;
mod plan_offers;
mod prime;
mod session_words;
mod sessions;
mod subagents;
mod transcripts;
mod untrusted_projects;
mod usage;
