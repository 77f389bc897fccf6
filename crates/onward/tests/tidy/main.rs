//! Repository checks that no lint covers.
//!
//! Each rule is a function from files to violations, with two tests: the repository has no
//! violation, and a violation is detected. Rules split the strings they search for, so that they do
//! not match themselves. Checks that the compiler, rustfmt or clippy can do are not repeated here.
//! For dependencies between crates, see `dependencies.rs`.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot read the repository must fail"
)]

mod docs;
mod hygiene;
mod imports;
mod packaging;
mod scripts;
mod sources;
mod tree;
mod wording;
