//! What no lint can check, held over every file of the repository.
//!
//! Each rule is a small function from files to the sentences that say where it is broken, and
//! stands beside its two tests: the repository keeps it, and a file that breaks it is found.
//! Words that a rule looks for are written in two halves, so that the rules keep themselves.
//!
//! What the compiler, rustfmt or clippy can hold does not belong here; which crate may know
//! which is `walls.rs`.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot read the repository must fail"
)]

mod docs;
mod places;
mod scripts;
mod sources;
mod tree;
