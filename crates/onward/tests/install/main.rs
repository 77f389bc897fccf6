//! `onward install` on real files, in homes of their own: what people wrote stays as it is, twice is
//! once, and what was put in comes out again.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot run the binary must fail"
)]

mod doctor;
mod files;
mod formats;
mod home;
mod plugin;
