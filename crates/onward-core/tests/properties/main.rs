//! What holds for every sequence of commands, on random walks through the life of a plan.
//!
//! A walk is a plan and a list of turns; [`walk`] plays it, [`plans`], [`commands`] and [`nonsense`]
//! make the commands, and every other file holds properties. The commands lean towards what means
//! something where the plan stands, and [`coverage`] fails when they stop reaching any part of the
//! core. The tables of moves and the order in which steps are handed out are written here a second
//! time, from the law and naively, and not taken from the code under test.
//!
//! `PROPTEST_CASES` scales all of it: 256 is the ordinary run, 2560 ten times as much. A failure
//! prints the shortest walk that was found, each command of it with its answer, and the seed, which
//! proptest also keeps under `tests/proptest-regressions` and tries first from then on.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a property that does not hold is a panic, in whichever function it is found"
)]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a property is about a few kinds of events; only the list in `coverage` names all"
)]

mod branches;
mod claims;
mod commands;
mod coverage;
mod dependencies;
mod detectors;
mod dice;
mod ends;
mod hostile;
mod list;
mod nonsense;
mod plans;
mod replay;
mod stalls;
mod status;
mod walk;
