//! The dashboard of the real binary, asked as a browser without a script asks it: every page, every
//! role, every form, other tenants, and text that means harm. What the script adds is tried in a real
//! browser by `script/browser`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot reach the server must fail"
)]

mod access;
mod arrange;
mod browser;
mod forms;
#[path = "../serve/house.rs"]
#[allow(dead_code, reason = "shared with the tests of the API")]
mod house;
mod looks;
#[path = "../mcp/model.rs"]
mod model;
mod overfull;
mod prose;
mod search;
mod sessions;
mod skills;
