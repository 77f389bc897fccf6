//! One client that calls `ping`, then works through plans, for a given time.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::floor::Floor;
use crate::http::{self, HttpClient};
use crate::report::print_row;
use crate::samples::{Samples, cpu};
use crate::stdio::{Client, StdioClient};

/// Duration of the warm-up.
const WARM_UP: Duration = Duration::from_millis(200);

/// Number of calls per step.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// Two calls per step.
    TwoCalls,
    /// One call per step, which submits and claims.
    ClaimNext,
}

pub(crate) fn stdio(folder: &Path, duration: Duration, floor: Option<Floor>) {
    let mut client = StdioClient::start(&folder.join("stdio.db"));
    let id = client.id();
    measure("stdio", &mut client, id, duration, floor);
}

pub(crate) fn http(folder: &Path, duration: Duration, floor: Option<Floor>) {
    let server = http::start(&folder.join("http.db"));
    measure(
        "HTTP",
        &mut HttpClient::connect(&server),
        server.id(),
        duration,
        floor,
    );
}

fn measure(
    name: &str,
    client: &mut impl Client,
    server: u32,
    duration: Duration,
    floor: Option<Floor>,
) {
    run_pings(client, WARM_UP);
    let before = cpu(server);
    let mut pings = run_pings(client, duration);
    pings.cpu = cpu(server).saturating_sub(before);
    print_row(&format!("{name}, ping"), &pings, None, None);
    for mode in [Mode::TwoCalls, Mode::ClaimNext] {
        let plans = enough_plans(client, mode, duration);
        let before = cpu(server);
        let mut run = run_steps(client, plans, mode, duration);
        run.samples.cpu = cpu(server).saturating_sub(before);
        let row = match mode {
            Mode::TwoCalls => format!("{name}, steps"),
            Mode::ClaimNext => format!("{name}, steps, claimNext"),
        };
        print_row(&row, &run.samples, Some(run.steps), floor);
    }
}

fn run_pings(client: &mut impl Client, duration: Duration) -> Samples {
    let mut samples = Samples::default();
    let began = Instant::now();
    while began.elapsed() < duration {
        let started = Instant::now();
        client.call("ping", json!({}));
        samples.latencies.push(started.elapsed());
    }
    samples.elapsed = began.elapsed();
    samples
}

/// Enough plans for the whole run, created before the measurement: the unit is a step, not a plan.
fn enough_plans(client: &mut impl Client, mode: Mode, duration: Duration) -> Vec<String> {
    let warm = create_plans(client, 100);
    let warm = run_steps(client, warm, mode, WARM_UP);
    let rate = warm.steps as f64 / warm.samples.elapsed.as_secs_f64();
    create_plans(client, (rate * duration.as_secs_f64() * 0.15) as usize + 10)
}

/// Creates this many plans with ten steps.
pub(crate) fn create_plans(client: &mut impl Client, plans: usize) -> Vec<String> {
    let step = json!({ "stepType": "custom", "instructions": "Do the next thing." });
    let plan = json!({ "name": "Bench", "researchQuestion": "How fast?", "steps": vec![step; 10] });
    let mut make = || text(&client.call("create_research_plan", plan.clone()), "planId");
    (0..plans).map(|_| make()).collect()
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().expect("field is a string").to_owned()
}

/// Result of a run.
pub(crate) struct StepRun {
    pub(crate) samples: Samples,
    pub(crate) steps: usize,
}

/// Works through one plan after another until the time is up.
pub(crate) fn run_steps(
    client: &mut impl Client,
    plans: Vec<String>,
    mode: Mode,
    duration: Duration,
) -> StepRun {
    let mut samples = Samples::default();
    let mut steps = 0;
    let began = Instant::now();
    for plan in plans {
        let mut call = |tool: &str, arguments: Value| {
            let started = Instant::now();
            let response = client.call(tool, arguments);
            samples.latencies.push(started.elapsed());
            response
        };
        let next = json!({ "planId": plan });
        let mut step = call("get_next_step", next.clone());
        while step["status"] == "step_started" && began.elapsed() < duration {
            let result = json!({
                "stepId": step["stepId"],
                "claimToken": step["claimToken"],
                "resultSummary": "The step was completed with this result.",
                "claimNext": mode == Mode::ClaimNext,
            });
            let mut done = call("submit_step_result", result);
            steps += 1;
            step = match mode {
                Mode::ClaimNext => done["nextStep"].take(),
                Mode::TwoCalls if done["planStatus"] == "completed" => break,
                Mode::TwoCalls => call("get_next_step", next.clone()),
            };
        }
        if began.elapsed() >= duration {
            break;
        }
    }
    samples.elapsed = began.elapsed();
    StepRun { samples, steps }
}
