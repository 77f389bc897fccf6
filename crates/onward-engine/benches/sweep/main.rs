//! How long the sweep takes to mark many silent plans, each in another tenant, and how late it
//! handles stalls of other tenants in the meantime.
//!
//! A server starts on a database with a backlog, as after an outage. All silent steps get one grace
//! period, so the bar is the grace period plus five times the duration of a loop without Onward that
//! writes the same rows (plan, event, due time) with the same transaction boundaries: on PostgreSQL one
//! transaction per plan, on SQLite 64 plans per transaction. Meanwhile, one step every two seconds falls
//! silent in another tenant. Run it with `bench/sweep`; results are in `bench/README.md`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run must fail"
)]

mod bare;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bare::Bare;
use onward_core::command::{CreatePlan, StepSpec};
use onward_core::policy::OnStall;
use onward_core::watcher::WatcherPolicy;
use onward_core::{PlanId, StepType, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine};
use onward_testbed::TestDir;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Stall threshold of all plans.
const THRESHOLD: Duration = Duration::from_secs(10);
/// Number of callers that create the backlog.
const CALLERS: usize = 64;
/// Maximum number of steps that fall silent during the sweep.
const PROBES: usize = 300;
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(1800);

#[tokio::main]
async fn main() {
    let (mut plans, mut only) = (60_000, None);
    let mut flags = std::env::args().skip(1);
    while let Some(flag) = flags.next() {
        let mut value = || flags.next().expect("the flag has a value");
        match flag.as_str() {
            "--plans" => plans = value().parse().expect("`--plans` is a number"),
            "--only" => only = Some(value()),
            // Passed by `cargo bench`.
            "--bench" => {}
            other => panic!("unknown flag `{other}`"),
        }
    }
    let runs = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if runs("sqlite") {
        let folder = TestDir::new("sweep");
        let file = folder.join("sweep.db");
        measure(
            "sqlite",
            Address::File(file.clone()),
            Bare::file(file),
            plans,
        )
        .await;
    }
    if runs("postgres") {
        let url = std::env::var("ONWARD_BENCH_POSTGRES").expect("ONWARD_BENCH_POSTGRES is set");
        let address = Address::Server(url.clone());
        measure("postgres", address, Bare::server(url), plans).await;
    }
}

async fn open(address: &Address) -> Engine {
    Engine::open(address, Settings::default())
        .await
        .expect("database opened")
}

fn caller(tenant: &str) -> Caller {
    Caller {
        tenant: tenant.into(),
        ..Caller::local("bench")
    }
}

async fn measure(name: &str, address: Address, bare: Bare, plans: usize) {
    let began = Instant::now();
    let engine = open(&address).await;
    fill(&engine, plans).await;
    println!(
        "{name}: created {plans} plans in {:.0} s",
        began.elapsed().as_secs_f64()
    );
    tokio::time::sleep(THRESHOLD).await;
    engine.close().await;

    let engine = open(&address).await;
    let (stop, stopped) = watch::channel(false);
    let sweep = {
        let engine = engine.clone();
        tokio::spawn(async move {
            let report = |round: &Result<onward_engine::sweep::SweepRound, _>| match round {
                Ok(round) if round.checked > 100 => println!(
                    "  round: {} checked, {} marked, {:.1} s",
                    round.checked,
                    round.changed.len(),
                    round.took.as_secs_f64()
                ),
                Ok(_) => {}
                Err(error) => println!("  round: {error}"),
            };
            engine.run_sweeper_with(stopped, report).await;
        })
    };
    let began = Instant::now();
    // A step that was claimed earlier gets the grace period.
    while engine.last_sweep_at().is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut probes = Vec::new();
    loop {
        let marked = bare.count_stalled("t-").await;
        if marked == plans {
            break;
        }
        assert!(began.elapsed() < LIMIT, "{marked} of {plans} are marked");
        if probes.len() < PROBES {
            probes.push(probe(&engine, probes.len()).await);
        }
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
    let took = began.elapsed().as_secs_f64();
    let lateness = bare.lateness(&probes, THRESHOLD).await;
    stop.send_replace(true);
    sweep.await.expect("the sweep ended");
    engine.close().await;

    let began = Instant::now();
    bare.write_same_rows("t-", plans).await;
    let floor = began.elapsed().as_secs_f64();
    let grace = WatcherPolicy::default().grace.as_secs_f64();
    println!(
        "{name}: {plans} marked after {took:.1} s (bar {:.1} s = {grace:.0} s + 5 × {floor:.1} s), {:.1} \
         times the loop after the grace period; {} fresh stalls, at most {:.1} s late (bar 5 s)",
        grace + 5.0 * floor,
        (took - grace) / floor,
        lateness.len(),
        lateness.iter().copied().fold(0.0, f64::max),
    );
}

/// Creates a plan with a claimed step in each of many tenants, and the tenants of the probes.
async fn fill(engine: &Engine, plans: usize) {
    let permits = Arc::new(Semaphore::new(CALLERS));
    let mut tasks = JoinSet::new();
    for number in 0..plans + PROBES {
        let permit = Arc::clone(&permits).acquire_owned().await.unwrap();
        let engine = engine.clone();
        tasks.spawn(async move {
            if let Some(number) = number.checked_sub(plans) {
                engine
                    .create_tenant(&format!("probe-{number}"))
                    .await
                    .unwrap();
            } else {
                let tenant = format!("t-{number}");
                engine.create_tenant(&tenant).await.unwrap();
                claim(&engine, &tenant).await;
            }
            drop(permit);
        });
        while let Some(done) = tasks.try_join_next() {
            done.unwrap();
        }
    }
    tasks.join_all().await;
}

/// Creates a plan, and claims its step.
async fn claim(engine: &Engine, tenant: &str) -> PlanId {
    let caller = caller(tenant);
    let step = StepSpec::new(engine.new_step_id(), StepType::Custom, "Wait.");
    let mut plan = CreatePlan::new(engine.new_plan_id(), "Silent", "Who waits?", vec![step]);
    plan.stall_threshold = Some(THRESHOLD);
    plan.on_stall = OnStall::Mark;
    let created = engine
        .create_plan(&caller, plan, None)
        .await
        .unwrap()
        .created
        .plan;
    engine
        .next_step(&caller, created, None, false)
        .await
        .unwrap();
    created
}

/// A step of another tenant that is silent from this instant.
async fn probe(engine: &Engine, number: usize) -> (PlanId, Timestamp) {
    let plan = claim(engine, &format!("probe-{number}")).await;
    (plan, engine.now())
}
