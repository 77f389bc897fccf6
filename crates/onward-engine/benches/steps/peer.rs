//! DBOS for Rust beside the engine, on the same server in the same run, by turns: machines are shared, and
//! what one does now cannot be compared with what the other did half a minute ago. `bench/peers/dbos`.

use std::process::Command;
use std::time::Duration;

use onward_engine::{Address, Engine};
use tokio::runtime::Runtime;

use crate::drive::Course;
use crate::report::median;

/// How often each has its turn.
const TURNS: usize = 7;

/// Lets both work by turns with so many callers, and says what they did.
pub(crate) fn by_turns(runtime: &Runtime, url: &str, callers: usize, span: Duration) {
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let peer = match dbos(url, callers, span) {
            Ok(steps) => steps,
            Err(why) => return println!("DBOS for Rust could not be run: {why}"),
        };
        turns.push((peer, ours(runtime, url, callers, span)));
    }
    let row = |what: &str, steps: Vec<f64>| {
        println!("{what:<30} {callers:>7} {:>9.0}", median(steps));
    };
    row(
        "PostgreSQL, DBOS, by turns",
        turns.iter().map(|(peer, _)| *peer).collect(),
    );
    row(
        "PostgreSQL, engine, by turns",
        turns.iter().map(|(_, ours)| *ours).collect(),
    );
    let mut ratios: Vec<f64> = turns.iter().map(|(peer, ours)| ours / peer).collect();
    ratios.sort_by(f64::total_cmp);
    let words: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    println!(
        "  the engine with claimNext to DBOS, turn by turn: median {:.2}, all {}",
        median(ratios),
        words.join(" ")
    );
}

/// The steps per second of the engine, with `claimNext`.
fn ours(runtime: &Runtime, url: &str, callers: usize, span: Duration) -> f64 {
    runtime.block_on(async {
        let address = Address::parse(url).expect("an address");
        let engine = Engine::open(&address, Default::default());
        let engine = engine.await.expect("an engine");
        let course = Course::prepare(&engine, callers, 10, true, span).await;
        let driven = course.run(&engine).await;
        f64::from(driven.steps) / driven.all.as_secs_f64()
    })
}

/// The steps per second of DBOS.
fn dbos(url: &str, callers: usize, span: Duration) -> Result<f64, String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/peers/dbos");
    let output = Command::new(script)
        .args([url, &span.as_secs_f64().to_string(), &callers.to_string()])
        .output()
        .expect("the script that runs it");
    let said = String::from_utf8_lossy(&output.stdout);
    let steps = said
        .split_whitespace()
        .nth(1)
        .and_then(|it| it.parse().ok());
    steps.ok_or_else(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
