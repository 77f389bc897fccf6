//! Eight `onward mcp` processes on one SQLite file, as agent hosts start them. Each works through
//! separate plans, concurrently. None may see an error, and all acknowledged steps must be in the
//! file afterwards.

use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

use onward_testbed::bench::Samples;
use serde_json::json;

use crate::drive::{self, Mode};
use crate::stdio::{Client, StdioClient};

const PROCESSES: usize = 8;

pub(crate) fn measure(folder: &Path, duration: Duration) {
    for mode in [Mode::TwoCalls, Mode::ClaimNext] {
        let file = folder.join(format!("eight-{}.db", mode == Mode::ClaimNext));
        // The first process creates the file and the plans before the measurement.
        let mut first = StdioClient::start(&file);
        // More plans than any machine completes in that time.
        let plans_per_process = (duration.as_secs_f64() * 100.0) as usize;
        let plans: Vec<Vec<String>> = (0..PROCESSES)
            .map(|_| drive::create_plans(&mut first, plans_per_process))
            .collect();
        let ready = Barrier::new(PROCESSES);
        let (file, ready) = (&file, &ready);
        let runs: Vec<Samples> = std::thread::scope(|scope| {
            let work = |plans: Vec<String>| {
                scope.spawn(move || {
                    let mut client = StdioClient::start(file);
                    ready.wait();
                    // An error response ends the benchmark here.
                    drive::run_steps(&mut client, plans, mode, duration)
                })
            };
            let threads: Vec<_> = plans.iter().cloned().map(work).collect();
            let ended = threads
                .into_iter()
                .map(|thread| thread.join().expect("process finished without error"));
            ended.collect()
        });
        let steps: u32 = runs.iter().map(|run| run.steps).sum();
        let completed: u32 = plans
            .iter()
            .flatten()
            .map(|plan| completed_steps(&mut first, plan))
            .sum();
        assert_eq!(completed, steps, "acknowledged steps are missing");
        let longest = runs.iter().map(|run| run.elapsed).max();
        let combined = Samples {
            elapsed: longest.unwrap_or_default(),
            latencies: runs.into_iter().flat_map(|run| run.latencies).collect(),
            ..Samples::default()
        };
        println!(
            "{PROCESSES} processes on one file{}: {:.0} steps/s in total, call latency p50 {} µs, p99 \
             {} µs, max {} µs; {} of {steps} steps lost, no errors",
            if mode == Mode::ClaimNext {
                ", claimNext"
            } else {
                ""
            },
            f64::from(steps) / combined.elapsed.as_secs_f64(),
            combined.quantile(0.5).as_micros(),
            combined.quantile(0.99).as_micros(),
            combined.quantile(1.0).as_micros(),
            steps - completed,
        );
    }
}

/// Number of completed steps of a plan.
fn completed_steps(client: &mut StdioClient, plan: &str) -> u32 {
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    let completed = status["counts"]["completed"].as_u64();
    u32::try_from(completed.expect("count is a number")).expect("count fits")
}
