//! Dashboard tests against the real binary, as a browser without JavaScript: all pages, roles and
//! forms, tenant isolation, and hostile text. `script/browser` tests the script in a real browser.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails if its setup fails"
)]

mod access;
mod approval;
mod browser;
mod forms;
mod history;
mod inbox;
mod long_lists;
mod markdown;
mod new_plan;
mod plan_page;
mod rendering;
mod reorder;
mod search;
mod sessions;
mod skills;
mod unfinished_lists;

use onward_testbed::Program;

fn program(test: &str) -> Program {
    Program::new(env!("CARGO_BIN_EXE_onward"), test)
}
