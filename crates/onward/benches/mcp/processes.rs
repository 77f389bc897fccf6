//! Eight `onward mcp` on one SQLite file, as agents' hosts really start them: each works through plans
//! of its own, all at once. None may see an error, and what was answered must be there afterwards.

use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

use serde_json::json;

use crate::agent::{Agent, Ask};
use crate::drive::{self, Driven, How};
use crate::report::Timed;

const PROCESSES: usize = 8;

pub(crate) fn measure(folder: &Path, span: Duration) {
    for how in [How::Plain, How::ClaimNext] {
        let file = folder.join(format!("eight-{}.db", how == How::ClaimNext));
        // The first makes the file, and the plans that nobody has to wait for.
        let mut first = Agent::start(&file);
        // More than can be done in that time, whatever the machine.
        let each = (span.as_secs_f64() * 100.0) as usize;
        let all: Vec<Vec<String>> = (0..PROCESSES)
            .map(|_| drive::made(&mut first, each))
            .collect();
        let ready = Barrier::new(PROCESSES);
        let (file, ready) = (&file, &ready);
        let driven: Vec<Driven> = std::thread::scope(|scope| {
            let work = |plans: Vec<String>| {
                scope.spawn(move || {
                    let mut agent = Agent::start(file);
                    ready.wait();
                    // An answer that is a refusal ends the bench here.
                    drive::steps(&mut agent, plans, how, span)
                })
            };
            let agents: Vec<_> = all.iter().cloned().map(work).collect();
            let ended = agents
                .into_iter()
                .map(|agent| agent.join().expect("no error"));
            ended.collect()
        });
        let steps: usize = driven.iter().map(|driven| driven.steps).sum();
        let kept: usize = all
            .iter()
            .flatten()
            .map(|plan| kept(&mut first, plan))
            .sum();
        assert_eq!(kept, steps, "steps that were answered are lost");
        let longest = driven.iter().map(|driven| driven.timed.all).max();
        let together = Timed {
            all: longest.unwrap_or_default(),
            each: driven
                .into_iter()
                .flat_map(|driven| driven.timed.each)
                .collect(),
            cpu: Duration::ZERO,
        };
        println!(
            "{PROCESSES} processes on one file{}: {:.0} steps/s together, a call takes p50 {} µs, p99 \
             {} µs, at most {} µs; of {steps} steps {} lost, no error",
            if how == How::ClaimNext {
                ", claimNext"
            } else {
                ""
            },
            steps as f64 / together.all.as_secs_f64(),
            together.quantile(0.5).as_micros(),
            together.quantile(0.99).as_micros(),
            together.quantile(1.0).as_micros(),
            steps - kept,
        );
    }
}

/// How many steps of a plan are completed, as the file says.
fn kept(agent: &mut Agent, plan: &str) -> usize {
    let status = agent.call("get_plan_status", json!({ "planId": plan }));
    let completed = status["counts"]["completed"].as_u64();
    usize::try_from(completed.expect("a number")).expect("a small one")
}
