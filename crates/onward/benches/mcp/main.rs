//! Throughput of steps through MCP: the real binary over stdio and over HTTP, compared with `ping`,
//! with the in-process engine and with the SQLite floor.
//!
//! One step is `get_next_step` plus `submit_step_result`, or one call with `claimNext`; each
//! response is sent after the commit is on disk. The clients are minimal and do not use the SDK.
//! Also measures eight `onward mcp` processes on one file, startup time and memory. Run it with
//! `bench/mcp`; results are in `bench/README.md`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot run must fail"
)]

mod drive;
mod floor;
mod http;
mod memory;
mod processes;
mod report;
mod samples;
mod start;
mod stdio;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Command-line arguments.
struct Args {
    seconds: f64,
    only: Option<String>,
}

fn parse_args() -> Args {
    let mut args = Args {
        seconds: 2.0,
        only: None,
    };
    let mut flags = std::env::args().skip(1);
    while let Some(flag) = flags.next() {
        let mut value = || flags.next().expect("the flag has a value");
        match flag.as_str() {
            "--seconds" => args.seconds = value().parse().expect("`--seconds` is a number"),
            "--only" => args.only = Some(value()),
            // Passed by `cargo bench`.
            "--bench" => {}
            other => panic!("unknown flag `{other}`"),
        }
    }
    args
}

/// A command for the measured binary with this database file.
fn onward(file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
    command.arg("--database").arg(file);
    command
}

fn main() {
    let args = parse_args();
    let folder = std::env::temp_dir().join(format!("onward-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("directory created");
    let dir = TempDir(folder);
    let selected = |what: &str| args.only.as_deref().is_none_or(|only| only == what);
    let duration = Duration::from_secs_f64(args.seconds);
    println!("{}", floor::sync_time(&dir.0));
    report::print_heading();
    let floor = if selected("calls") {
        floor::measure(args.seconds)
    } else {
        None
    };
    if selected("calls") {
        drive::stdio(&dir.0, duration, floor);
        drive::http(&dir.0, duration, floor);
    }
    if selected("processes") {
        processes::measure(&dir.0, duration);
    }
    if selected("start") {
        start::measure(&dir.0);
    }
    if selected("memory") {
        memory::measure(&dir.0);
    }
}

/// The temporary directory of this run, deleted on drop.
struct TempDir(PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        // Errors are ignored: everything is in the system's temporary directory.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
