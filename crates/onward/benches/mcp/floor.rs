//! What the disk and the database do without us: a sync, and the bench of the engine, which measures
//! the bare file and itself in this very run.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::report::Timed;

/// The program of the engine's bench; `bench/mcp` builds and names it.
const STEPS: &str = "ONWARD_BENCH_STEPS";

/// How many transactions a second the bare file does for one writer.
#[derive(Clone, Copy)]
pub(crate) struct Bare {
    /// The rows that the engine writes, in its own tables, and nothing read or decided.
    pub(crate) rows: f64,
}

/// How long a sync of this disk takes, in words.
pub(crate) fn sync_time(folder: &Path) -> String {
    let mut file = std::fs::File::create(folder.join("sync")).expect("a file");
    let mut timed = Timed::default();
    for _ in 0..200 {
        file.write_all(&[0; 4096]).expect("a write");
        let began = Instant::now();
        file.sync_data().expect("a sync");
        timed.each.push(began.elapsed());
    }
    format!(
        "a sync of this disk: p50 {} µs, p99 {} µs",
        timed.quantile(0.5).as_micros(),
        timed.quantile(0.99).as_micros()
    )
}

/// Runs the engine's bench with one caller, shows its lines, and takes the floor out of them. None
/// where nobody named it.
pub(crate) fn beside(seconds: f64) -> Option<Bare> {
    let program = std::env::var_os(STEPS)?;
    let output = Command::new(program)
        .args(["--only", "sqlite", "--callers", "1", "--seconds"])
        .arg(seconds.to_string())
        .output()
        .expect("the engine's bench runs");
    assert!(output.status.success(), "the engine's bench failed");
    let said = String::from_utf8(output.stdout).expect("its lines are text");
    let lines = said.lines().filter(|line| line.starts_with("SQLite"));
    let mut rows = None;
    for line in lines {
        let mut words = line.split_whitespace().rev();
        let numbers: Vec<f64> = words.by_ref().map_while(|word| word.parse().ok()).collect();
        if line.starts_with("SQLite, the same rows") {
            // From the end: cpu, p99, p50, transactions a second.
            rows = numbers.get(3).copied();
        }
        println!("  in process: {line}");
    }
    rows.map(|rows| Bare { rows })
}
