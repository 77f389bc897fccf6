//! Dashboard tests against the real binary, as a browser without JavaScript: all pages, roles and
//! forms, tenant isolation, and hostile text. `script/browser` tests the script in a real browser.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails if its setup fails"
)]

mod access;
mod browser;
mod forms;
mod long_lists;
mod markdown;
#[path = "../mcp/fake_model.rs"]
mod model;
mod rendering;
mod reorder;
mod search;
mod sessions;
mod skills;
#[path = "../serve/test_server.rs"]
#[allow(dead_code, reason = "shared with the API tests")]
mod test_server;
