//! The rules of the plans, sentence by sentence. Each file is a chapter; each test is a sentence.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that meets what it does not expect should stop there"
)]

mod bounds;
mod branches;
mod claims;
mod creation;
mod dependencies;
mod desk;
mod modification;
mod progress;
mod refusals;
mod resume;
mod reviews;
mod roles;
mod signs;
mod skills;
mod stalls;
mod state_machine;
mod trail;
mod words;
