//! Codec of events: round trips, the exact JSON, and errors with their path.
//!
//! [`events`] generates events with hostile [`content`], and [`kinds`] checks that none is missing.
//! [`round_trip`] encodes and decodes them, [`wire`] contains the exact JSON, so that a change is
//! noticed, and [`hostile`] passes invalid records to the decoder. [`turns`] does the same for the
//! state of the turn detector.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in helper functions too"
)]

mod content;
mod events;
mod hostile;
mod kinds;
mod round_trip;
mod turns;
mod wire;

use proptest::test_runner::Config;

/// Number of cases of a property, scaled by `PROPTEST_CASES`; its default is 256.
fn cases(ordinary: u32) -> Config {
    let config = Config::default();
    Config {
        cases: ordinary.saturating_mul(config.cases) / 256,
        failure_persistence: None,
        ..config
    }
}
