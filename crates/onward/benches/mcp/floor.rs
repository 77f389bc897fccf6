//! The floor: the duration of a disk sync, and the engine's own benchmark, run in the same session.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::samples::Samples;

/// Path of the engine's benchmark; set by `bench/mcp`.
const STEPS_BENCH: &str = "ONWARD_BENCH_STEPS";

/// Transactions per second of the bare SQLite file with one writer.
#[derive(Clone, Copy)]
pub(crate) struct Floor {
    /// The same rows as the engine, in its own tables, without reads or decisions.
    pub(crate) transactions: f64,
}

/// Measures and formats the duration of a disk sync.
pub(crate) fn sync_time(folder: &Path) -> String {
    let mut file = std::fs::File::create(folder.join("sync")).expect("file created");
    let mut samples = Samples::default();
    for _ in 0..200 {
        file.write_all(&[0; 4096]).expect("file written");
        let began = Instant::now();
        file.sync_data().expect("file synced");
        samples.latencies.push(began.elapsed());
    }
    format!(
        "disk sync: p50 {} µs, p99 {} µs",
        samples.quantile(0.5).as_micros(),
        samples.quantile(0.99).as_micros()
    )
}

/// Runs the engine's benchmark with one caller, prints its rows, and returns the floor. `None` if
/// the benchmark's path is not set.
pub(crate) fn measure(seconds: f64) -> Option<Floor> {
    let program = std::env::var_os(STEPS_BENCH)?;
    let output = Command::new(program)
        .args(["--only", "sqlite", "--callers", "1", "--seconds"])
        .arg(seconds.to_string())
        .output()
        .expect("engine benchmark started");
    assert!(output.status.success(), "engine benchmark failed");
    let stdout = String::from_utf8(output.stdout).expect("output is UTF-8");
    let lines = stdout.lines().filter(|line| line.starts_with("SQLite"));
    let mut transactions = None;
    for line in lines {
        let mut fields = line.split_whitespace().rev();
        let numbers: Vec<f64> = fields
            .by_ref()
            .map_while(|field| field.parse().ok())
            .collect();
        if line.starts_with("SQLite floor, same rows") {
            // From the end: CPU time, p99, p50, transactions per second.
            transactions = numbers.get(3).copied();
        }
        println!("  in-process: {line}");
    }
    transactions.map(|transactions| Floor { transactions })
}
