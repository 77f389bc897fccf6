//! One client that calls, and one that works through plans, for a given time.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::{Agent, Ask};
use crate::floor::Bare;
use crate::http::Server;
use crate::report::{Timed, cpu, line};

/// How long a client calls before anything is counted.
const WARM_UP: Duration = Duration::from_millis(200);

/// How the steps of a plan are advanced.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum How {
    /// Two calls a step.
    Plain,
    /// One, which submits and claims.
    ClaimNext,
}

pub(crate) fn stdio(folder: &Path, span: Duration, bare: Option<Bare>) {
    let mut agent = Agent::start(&folder.join("stdio.db"));
    let id = agent.id();
    client("stdio", &mut agent, id, span, bare);
}

pub(crate) fn http(folder: &Path, span: Duration, bare: Option<Bare>) {
    let server = Server::start(&folder.join("http.db"));
    client("HTTP", &mut server.connect(), server.id(), span, bare);
}

fn client(way: &str, client: &mut impl Ask, server: u32, span: Duration, bare: Option<Bare>) {
    pings(client, WARM_UP);
    let before = cpu(server);
    let mut pinged = pings(client, span);
    pinged.cpu = cpu(server).saturating_sub(before);
    line(&format!("{way}, ping"), &pinged, None, None);
    for how in [How::Plain, How::ClaimNext] {
        let plans = enough(client, how, span);
        let before = cpu(server);
        let mut driven = steps(client, plans, how, span);
        driven.timed.cpu = cpu(server).saturating_sub(before);
        let name = match how {
            How::Plain => format!("{way}, steps"),
            How::ClaimNext => format!("{way}, steps, claimNext"),
        };
        line(&name, &driven.timed, Some(driven.steps), bare);
    }
}

fn pings(client: &mut impl Ask, span: Duration) -> Timed {
    let mut timed = Timed::default();
    let began = Instant::now();
    while began.elapsed() < span {
        let called = Instant::now();
        client.call("ping", json!({}));
        timed.each.push(called.elapsed());
    }
    timed.all = began.elapsed();
    timed
}

/// Plans for the whole time, made before the clock starts: the unit is a step, not a plan.
fn enough(client: &mut impl Ask, how: How, span: Duration) -> Vec<String> {
    let warm = made(client, 100);
    let warm = steps(client, warm, how, WARM_UP);
    let rate = warm.steps as f64 / warm.timed.all.as_secs_f64();
    made(client, (rate * span.as_secs_f64() * 0.15) as usize + 10)
}

/// So many plans of ten steps.
pub(crate) fn made(client: &mut impl Ask, plans: usize) -> Vec<String> {
    let step = json!({ "stepType": "custom", "instructions": "Do the next thing." });
    let plan = json!({ "name": "Bench", "researchQuestion": "How fast?", "steps": vec![step; 10] });
    let mut make = || text(&client.call("create_research_plan", plan.clone()), "planId");
    (0..plans).map(|_| make()).collect()
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().expect("a text").to_owned()
}

/// Steps that were advanced.
pub(crate) struct Driven {
    pub(crate) timed: Timed,
    pub(crate) steps: usize,
}

/// Works through plan after plan until the time is up.
pub(crate) fn steps(client: &mut impl Ask, plans: Vec<String>, how: How, span: Duration) -> Driven {
    let mut timed = Timed::default();
    let mut steps = 0;
    let began = Instant::now();
    for plan in plans {
        let mut call = |tool: &str, arguments: Value| {
            let called = Instant::now();
            let answer = client.call(tool, arguments);
            timed.each.push(called.elapsed());
            answer
        };
        let next = json!({ "planId": plan });
        let mut step = call("get_next_step", next.clone());
        while step["status"] == "step_started" && began.elapsed() < span {
            let result = json!({
                "stepId": step["stepId"],
                "claimToken": step["claimToken"],
                "resultSummary": "It was done, and this is what came of it.",
                "claimNext": how == How::ClaimNext,
            });
            let mut done = call("submit_step_result", result);
            steps += 1;
            step = match how {
                How::ClaimNext => done["nextStep"].take(),
                How::Plain if done["planStatus"] == "completed" => break,
                How::Plain => call("get_next_step", next.clone()),
            };
        }
        if began.elapsed() >= span {
            break;
        }
    }
    timed.all = began.elapsed();
    Driven { timed, steps }
}
