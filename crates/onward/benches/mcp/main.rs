//! How fast steps advance through MCP: the real binary, over its standard input and output and over
//! HTTP, beside a call that does nothing (`ping`), the engine's own figures and the bare file.
//!
//! A step is `get_next_step` and `submit_step_result`, or one call with `claimNext`, each answered only
//! when it is on disk. The clients here are threads that write a line and wait for the answer: nothing
//! of the SDK is on their side. Then eight `onward mcp` on one file, how long a start takes, and how
//! much memory stays. `bench/mcp` runs it; `bench/README.md` says what was seen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a bench that cannot run must say so"
)]

mod agent;
mod drive;
mod floor;
mod http;
mod memory;
mod processes;
mod report;
mod start;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What the command line asks for.
struct Asked {
    seconds: f64,
    only: Option<String>,
}

fn asked() -> Asked {
    let mut asked = Asked {
        seconds: 2.0,
        only: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the flag");
        match word.as_str() {
            "--seconds" => asked.seconds = value().parse().expect("a number of seconds"),
            "--only" => asked.only = Some(value()),
            // What `cargo bench` says to every bench.
            "--bench" => {}
            other => panic!("`{other}` is no flag of this bench"),
        }
    }
    asked
}

/// The binary that is measured, with a file of its own.
fn onward(file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
    command.arg("--database").arg(file);
    command
}

fn main() {
    let asked = asked();
    let folder = std::env::temp_dir().join(format!("onward-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let here = Here(folder);
    let wants = |what: &str| asked.only.as_deref().is_none_or(|only| only == what);
    let span = Duration::from_secs_f64(asked.seconds);
    println!("{}", floor::sync_time(&here.0));
    report::heading();
    let bare = match wants("calls") {
        true => floor::beside(asked.seconds),
        false => None,
    };
    if wants("calls") {
        drive::stdio(&here.0, span, bare);
        drive::http(&here.0, span, bare);
    }
    if wants("processes") {
        processes::measure(&here.0, span);
    }
    if wants("start") {
        start::measure(&here.0);
    }
    if wants("memory") {
        memory::measure(&here.0);
    }
}

/// The folder of this run, gone when it ends, however it ends.
struct Here(PathBuf);

impl Drop for Here {
    fn drop(&mut self) {
        // What cannot be removed lies where the system keeps what is temporary.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
