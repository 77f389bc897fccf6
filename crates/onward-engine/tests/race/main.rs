//! Many servers and many agents on one plan, or on one file: no step is claimed twice, no result applied
//! twice, the plan ends, and nobody sees an error. Checked from what every agent wrote down, not from
//! the end alone.
//!
//! How long the calls took is printed, and not judged: that is for the measurements.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "a test says what is wrong by failing, and has no callers to document; not every \
              test uses all of what they share"
)]

#[path = "../agents/answers.rs"]
mod answers;
#[path = "../agents/commits.rs"]
mod commits;
#[path = "../agents/dice.rs"]
mod dice;
#[path = "../agents/history.rs"]
mod history;
#[path = "../agents/place.rs"]
mod place;
#[path = "../agents/plans.rs"]
mod plans;
#[path = "../agents/process.rs"]
mod process;
#[path = "../agents/promises.rs"]
mod promises;
mod racer;
mod records;
#[path = "../agents/scribe.rs"]
mod scribe;
#[path = "../agents/trails.rs"]
mod trails;
mod worker;

use std::time::{Duration, Instant};

use onward_core::{PlanId, PlanStatus};
use onward_engine::{Caller, Engine};

use dice::{Dice, seed};
use history::Line;
use place::{Kind, Place};
use process::{Ended, Orders, Process};

/// No race takes this long.
const LIMIT: Duration = Duration::from_secs(120);

/// Each server is looked at for this long, then the next one.
const LOOK: Duration = Duration::from_millis(20);

#[test]
fn four_servers_with_eight_agents_each_share_a_plan_in_a_file() {
    on_one_plan(Kind::Sqlite);
}

#[test]
fn four_servers_with_eight_agents_each_share_a_plan_in_postgresql() {
    on_one_plan(Kind::Postgres);
}

#[test]
fn eight_servers_with_plans_of_their_own_share_a_file_and_see_no_error() {
    let place = Place::new(Kind::Sqlite);
    let lines = race(&place, 8, 1, "");
    on_runtime(async {
        let (engine, caller) = (place.open().await, Caller::local("checker"));
        let sum = promises::check(&engine, &caller, &lines).await;
        assert_eq!((sum.plans, sum.unanswered), (8, 0));
        records::nobody_saw_an_error(&lines);
        for plan in trails::read(&engine, &caller).await.into_keys() {
            is_completed(&engine, &caller, plan).await;
        }
    });
    records::show("eight processes, a plan each", &lines);
}

fn on_one_plan(kind: Kind) {
    let place = Place::new(kind);
    let mut dice = Dice::new(seed());
    let plan = on_runtime(async {
        let (engine, caller) = (place.open().await, Caller::local("maker"));
        let command = plans::branching(&engine, &mut dice, "shared", 300);
        let made = engine.create_plan(&caller, command, None);
        made.await.unwrap().created.plan
    });
    let lines = race(&place, 4, 8, &plan.to_string());
    on_runtime(async {
        let (engine, caller) = (place.open().await, Caller::local("checker"));
        let sum = promises::check(&engine, &caller, &lines).await;
        assert_eq!(sum.unanswered, 0, "everybody was answered");
        let trails = trails::read(&engine, &caller).await;
        records::nobody_saw_an_error(&lines);
        records::agree(&lines, &trails[&plan]);
        is_completed(&engine, &caller, plan).await;
    });
    records::show(&format!("{kind:?}, four processes on one plan"), &lines);
}

/// So many servers at once, each with so many agents, until all have ended.
fn race(place: &Place, servers: u64, agents: u64, task: &str) -> Vec<Line> {
    let seed = seed();
    println!("ONWARD_SEED={seed}");
    let mut dice = Dice::new(seed);
    let orders = (0..servers).map(|number| Orders {
        name: format!("s{number}"),
        database: place.written(),
        seed: dice.roll(),
        agents,
        task: task.to_owned(),
    });
    let mut running: Vec<_> = orders.map(|orders| Process::start(&orders)).collect();
    let (mut lines, ends) = (Vec::new(), Instant::now() + LIMIT);
    while let Some(mut process) = running.pop() {
        // Whoever sees an error keeps its step, so that the others would wait for it in vain.
        if process.wait_until(LOOK, records::has_trouble) || Instant::now() > ends {
            records::nobody_saw_an_error(process.so_far());
            panic!("the race does not end");
        }
        if process.is_over() {
            let ended = process.end(LIMIT);
            let Ended {
                status, complaints, ..
            } = &ended;
            assert!(status.success(), "{status}\n{complaints}");
            lines.extend(ended.lines);
        } else {
            running.insert(0, process);
        }
    }
    lines
}

/// The plan is over, every step of it too, and their orders have no gap.
async fn is_completed(engine: &Engine, caller: &Caller, plan: PlanId) {
    let status = engine.status(caller, plan, None).await.unwrap();
    assert_eq!(status.sheet.head.status(), PlanStatus::Completed);
    let page = engine
        .list_steps(caller, plan, None, 0, 100_000)
        .await
        .unwrap();
    let orders: Vec<u32> = page.steps.iter().map(|line| line.order).collect();
    let gapless: Vec<u32> = (1..).take(orders.len()).collect();
    assert_eq!(orders, gapless);
    assert!(page.steps.iter().all(|line| line.status.is_terminal()));
}

fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}
