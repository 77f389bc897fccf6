//! Throughput of steps through MCP: the real binary over stdio and over HTTP, compared with `ping`
//! and with the SQLite floor.
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
mod start;
mod stdio;

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use onward_testbed::bench::sync_time;
use onward_testbed::{Program, TestDir};

/// Command-line arguments.
struct Args {
    seconds: f64,
    only: Option<String>,
}

/// The binary given with `--binary`; by default, that of this build is measured.
static BINARY: OnceLock<String> = OnceLock::new();

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
            "--binary" => BINARY.set(value()).expect("`--binary` is set once"),
            // Passed by `cargo bench`.
            "--bench" => {}
            other => panic!("unknown flag `{other}`"),
        }
    }
    args
}

/// The measured binary with this database file.
fn onward(file: &Path) -> Program {
    let binary = BINARY
        .get()
        .map_or(env!("CARGO_BIN_EXE_onward"), String::as_str);
    let program = Program::new(binary, "bench");
    program.with_database(file.display().to_string())
}

fn main() {
    let args = parse_args();
    let dir = TestDir::new("bench");
    let selected = |what: &str| args.only.as_deref().is_none_or(|only| only == what);
    let duration = Duration::from_secs_f64(args.seconds);
    println!("{}", sync_time(dir.path()));
    report::print_heading();
    if selected("calls") {
        drive::stdio(dir.path(), duration);
        drive::http(dir.path(), duration);
    }
    if selected("processes") {
        processes::measure(dir.path(), duration);
    }
    if selected("start") {
        start::measure(dir.path());
    }
    if selected("memory") {
        memory::measure(dir.path());
    }
}
