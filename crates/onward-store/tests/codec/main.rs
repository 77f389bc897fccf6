//! The codec of events: every event comes back as it was, the JSON is what it is promised to be, and
//! whatever else stands in a row is answered with an error that says where.
//!
//! [`events`] makes events with hostile [`content`], and [`kinds`] sees to it that none is left out;
//! [`round_trip`] holds the way there and back, [`wire`] shows the JSON in full, so that a change of
//! it is seen, and [`hostile`] feeds the decoder with what nobody wrote. [`turns`] is the same for
//! what a detector remembers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a property that does not hold is a panic, in whichever function it is found"
)]

mod content;
mod events;
mod hostile;
mod kinds;
mod round_trip;
mod turns;
mod wire;

use proptest::test_runner::Config;

/// How often a property is tried. `PROPTEST_CASES` scales it: 256 is the ordinary run.
fn cases(ordinary: u32) -> Config {
    let config = Config::default();
    Config {
        cases: ordinary.saturating_mul(config.cases) / 256,
        failure_persistence: None,
        ..config
    }
}
