//! Simulation: seeded agents send random requests to the engine on a simulated clock. Each response
//! and the stored state must equal those of a naive model of the rules.
//!
//! | module | content |
//! |---|---|
//! | `agents` | random requests |
//! | `model` | expected responses and state |
//! | `rows`, `reads`, `invariants` | checks of rows, read operations and audit trails |
//! | `scenario`, `coverage` | the run of one seed; cases that the seeds must reach |
//! | `faults`, `races` | store faults; concurrent requests on two engines |
//! | `environment`, `rng`, `harness` | clock, random numbers, database |
//!
//! A failure prints its seed and the command that repeats it. `ONWARD_SEEDS=1000` runs the first
//! 1000 seeds in each test, `ONWARD_SEED=7` runs one, and `ONWARD_SEED=1001..2000` a range. A seed
//! does not determine the timing of a race.

#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests report failures by panicking, and the model handles only some of the variants"
)]

mod agents;
mod conditions;
mod coverage;
mod environment;
mod faults;
mod harness;
mod invariants;
mod model;
mod races;
mod reads;
mod request;
mod response;
mod rows;
mod scenario;

use coverage::Coverage;
use harness::Harness;
use onward_testbed::Backend;
use scenario::Scenario;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// One request at a time.
    Sequential,
    /// One request at a time, with store faults.
    Faults,
    /// Concurrent requests on two engines.
    Races,
}

async fn run(backend: Backend, mode: Mode, test: &str, default_seeds: u64) {
    let seeds = seeds(default_seeds);
    let engines = match mode {
        Mode::Sequential | Mode::Faults => 1,
        Mode::Races => 2,
    };
    let harness = Harness::open(backend, test, engines).await;
    let mut coverage = Coverage::default();
    // Only the default seeds are known to reach every required case.
    let is_default = seeds == (1..=default_seeds) && backend == Backend::Sqlite;
    for seed in seeds {
        let mut scenario = match Scenario::open(&harness, seed).await {
            Ok(scenario) => scenario,
            Err(error) => panic!("seed {seed} does not start: {error}"),
        };
        if let Err(error) = run_seed(&mut scenario, mode).await {
            panic!(
                "seed {seed}: {error}\n\nLast requests:\n{}\n\nRepeat with: \
                 ONWARD_SEED={seed} cargo test -p onward-engine --test simulation -- --exact {test}\n",
                scenario.recent_log()
            );
        }
        coverage.add(&scenario.coverage);
    }
    if is_default && mode == Mode::Sequential {
        let missing = coverage.missing();
        assert!(
            missing.is_empty(),
            "not reached: {missing:?}; reached: {coverage:?}"
        );
    }
}

/// The seeds from the environment variables, or the default ones.
fn seeds(default_seeds: u64) -> std::ops::RangeInclusive<u64> {
    let set = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    match (set("ONWARD_SEED"), set("ONWARD_SEEDS")) {
        (Some(range), _) => {
            let (first, last) = range.split_once("..").unwrap_or((&range, &range));
            number(first)..=number(last)
        }
        (None, Some(count)) => 1..=number(&count),
        (None, None) => 1..=default_seeds,
    }
}

fn number(text: &str) -> u64 {
    let parsed = text.parse();
    parsed.unwrap_or_else(|_| panic!("`{text}` is not a seed or a number of seeds"))
}

async fn run_seed(scenario: &mut Scenario<'_>, mode: Mode) -> Result<(), String> {
    let requests = scenario.rng.between(20, 90);
    let check_interval = scenario.rng.between(1, 9);
    for number in 0..requests {
        scenario.advance_clock();
        match mode {
            Mode::Sequential => {
                let (agent, request) = scenario.agents.next_request(&scenario.model);
                scenario.execute(agent, &request).await?;
            }
            Mode::Faults => scenario.execute_with_fault().await?,
            Mode::Races => scenario.race().await?,
        }
        if number % check_interval == 0 {
            scenario.check_state().await?;
        }
    }
    scenario.finish().await
}

macro_rules! simulations {
    ($($test:ident: $mode:ident on $backend:ident, $seeds:literal;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                run(Backend::$backend, Mode::$mode, stringify!($test), $seeds).await;
            }
        )*
    };
}

simulations! {
    responses_and_rows_equal_the_model_on_sqlite: Sequential on Sqlite, 100;
    responses_and_rows_equal_the_model_on_postgres: Sequential on Postgres, 2;
    a_failed_request_is_stored_completely_or_not_at_all_on_sqlite: Faults on Sqlite, 12;
    a_failed_request_is_stored_completely_or_not_at_all_on_postgres: Faults on Postgres, 2;
    concurrent_requests_are_linearizable_on_sqlite: Races on Sqlite, 8;
    concurrent_requests_are_linearizable_on_postgres: Races on Postgres, 2;
}
