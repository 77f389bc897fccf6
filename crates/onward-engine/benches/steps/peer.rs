//! DBOS for Rust beside the engine, on the same server in the same run: `bench/peers/dbos`.

use std::process::Command;
use std::time::Duration;

/// Runs it with so many callers, and says what it did.
pub(crate) fn dbos(url: &str, callers: usize, span: Duration) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/peers/dbos");
    let output = Command::new(script)
        .args([url, &span.as_secs_f64().to_string(), &callers.to_string()])
        .output()
        .expect("the script that runs it");
    let said = String::from_utf8_lossy(&output.stdout);
    match said.split_whitespace().nth(1) {
        Some(steps) => println!(
            "{:<30} {callers:>7} {steps:>9}",
            "PostgreSQL, DBOS for Rust"
        ),
        None => println!(
            "DBOS for Rust could not be run: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ),
    }
}
