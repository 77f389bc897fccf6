//! The detector for turns, sentence by sentence: the plain rule, each part of the default rule on and
//! off, and what holds for every turn there can be.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what it does not expect should stop there"
)]

mod desk;
mod doing;
mod ladder;
mod learning;
mod masking;
mod plain;
mod polling;
mod properties;
mod state;
mod tasks;
