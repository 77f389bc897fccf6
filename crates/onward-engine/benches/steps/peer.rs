//! Compares the engine with DBOS for Rust on the same server in the same run. The two alternate,
//! because on a shared machine measurements taken half a minute apart are not comparable. Uses
//! `bench/peers/dbos`.

use std::process::Command;
use std::time::Duration;

use onward_engine::{Address, Engine};
use tokio::runtime::Runtime;

use crate::drive::Workload;
use onward_testbed::bench::median;

/// Number of alternating measurements of each.
const ROUNDS: usize = 7;

/// Measures both alternately with this many callers and prints the results.
pub(crate) fn compare(runtime: &Runtime, url: &str, callers: usize, duration: Duration) {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let peer = match dbos(url, callers, duration) {
            Ok(steps) => steps,
            Err(error) => return println!("cannot run DBOS for Rust: {error}"),
        };
        rounds.push((peer, engine_rate(runtime, url, callers, duration)));
    }
    let row = |name: &str, steps: Vec<f64>| {
        println!("{name:<30} {callers:>7} {:>9.0}", median(steps));
    };
    row(
        "PostgreSQL, DBOS, alternating",
        rounds.iter().map(|(peer, _)| *peer).collect(),
    );
    row(
        "PostgreSQL, engine, alternating",
        rounds.iter().map(|(_, engine_rate)| *engine_rate).collect(),
    );
    let mut ratios: Vec<f64> = rounds
        .iter()
        .map(|(peer, engine_rate)| engine_rate / peer)
        .collect();
    ratios.sort_by(f64::total_cmp);
    let formatted: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    println!(
        "  ratio of the engine with claimNext to DBOS: median {:.2}, all {}",
        median(ratios),
        formatted.join(" ")
    );
}

/// Steps per second of the engine, with `claimNext`.
fn engine_rate(runtime: &Runtime, url: &str, callers: usize, duration: Duration) -> f64 {
    runtime.block_on(async {
        let address = Address::parse(url).expect("valid database URL");
        let engine = Engine::open(&address, Default::default());
        let engine = engine.await.expect("engine opened");
        let workload = Workload::prepare(&engine, callers, 10, true, duration).await;
        let samples = workload.run(&engine).await;
        f64::from(samples.steps) / samples.elapsed.as_secs_f64()
    })
}

/// Steps per second of DBOS.
fn dbos(url: &str, callers: usize, duration: Duration) -> Result<f64, String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/peers/dbos");
    let output = Command::new(script)
        .args([
            url,
            &duration.as_secs_f64().to_string(),
            &callers.to_string(),
        ])
        .output()
        .expect("script started");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let steps = stdout
        .split_whitespace()
        .nth(1)
        .and_then(|field| field.parse().ok());
    steps.ok_or_else(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
