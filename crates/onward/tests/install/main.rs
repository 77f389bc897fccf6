//! `onward install` on real files, with a temporary home directory per test: user content is
//! preserved, repeated installation changes nothing, and uninstalling removes all entries.

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
mod opencode_plugin;
mod plugins;
mod texts;
