//! One client that calls `ping`, then works through plans, for a given time.

use std::path::Path;
use std::time::{Duration, Instant};

use onward_testbed::bench::{Samples, cpu};
use serde_json::{Value, json};

use crate::floor::Floor;
use crate::http::{self, HttpClient};
use crate::report::print_row;
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

pub(crate) fn stdio(folder: &Path, duration: Duration) {
    let file = folder.join("stdio.db");
    let mut client = StdioClient::start(&file);
    let id = client.id();
    measure("stdio", &mut client, id, &file, duration);
}

pub(crate) fn http(folder: &Path, duration: Duration) {
    let file = folder.join("http.db");
    let server = http::start(&file);
    let mut client = HttpClient::connect(&server);
    measure("HTTP", &mut client, server.id(), &file, duration);
}

fn measure(name: &str, client: &mut impl Client, server: u32, file: &Path, duration: Duration) {
    run_pings(client, WARM_UP);
    let before = cpu(server);
    let mut pings = run_pings(client, duration);
    pings.cpu = cpu(server).saturating_sub(before);
    print_row(&format!("{name}, ping"), &pings, None);
    for mode in [Mode::TwoCalls, Mode::ClaimNext] {
        let plans = enough_plans(client, mode, duration);
        let mut floor = Floor::copy(file, server);
        let before = cpu(server);
        let mut samples = Samples::default();
        for plan in plans {
            let transactions = samples.latencies.len();
            run_plan(client, &plan, mode, None, &mut samples);
            floor.run(samples.latencies.len() - transactions);
            if samples.elapsed >= duration {
                break;
            }
        }
        samples.cpu = cpu(server).saturating_sub(before);
        print_row(&format!("{name}, floor"), &floor.samples, None);
        let row = match mode {
            Mode::TwoCalls => format!("{name}, steps"),
            Mode::ClaimNext => format!("{name}, steps, claimNext"),
        };
        print_row(&row, &samples, Some(&floor.samples));
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
    let rate = f64::from(warm.steps) / warm.elapsed.as_secs_f64();
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

/// Works through one plan after another until the time is up.
pub(crate) fn run_steps(
    client: &mut impl Client,
    plans: Vec<String>,
    mode: Mode,
    duration: Duration,
) -> Samples {
    let mut samples = Samples::default();
    let deadline = Instant::now() + duration;
    for plan in plans {
        run_plan(client, &plan, mode, Some(deadline), &mut samples);
        if Instant::now() >= deadline {
            break;
        }
    }
    samples
}

/// Works through one plan, or until the deadline.
fn run_plan(
    client: &mut impl Client,
    plan: &str,
    mode: Mode,
    deadline: Option<Instant>,
    samples: &mut Samples,
) {
    let began = Instant::now();
    let mut call = |tool: &str, arguments: Value| {
        let started = Instant::now();
        let response = client.call(tool, arguments);
        samples.latencies.push(started.elapsed());
        response
    };
    let next = json!({ "planId": plan });
    let mut step = call("get_next_step", next.clone());
    let has_ended = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    while step["status"] == "step_started" && !has_ended() {
        let result = json!({
            "stepId": step["stepId"],
            "claimToken": step["claimToken"],
            "resultSummary": "The step was completed with this result.",
            "claimNext": mode == Mode::ClaimNext,
        });
        let mut done = call("submit_step_result", result);
        samples.steps += 1;
        step = match mode {
            Mode::ClaimNext => done["nextStep"].take(),
            Mode::TwoCalls if done["planStatus"] == "completed" => break,
            Mode::TwoCalls => call("get_next_step", next.clone()),
        };
    }
    samples.elapsed += began.elapsed();
}
