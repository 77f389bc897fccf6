//! Series of kills on one database, with a check after each round. Each series uses a new database,
//! so that schema creation is interrupted as well.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use onward_engine::Caller;
use onward_testbed::{Backend, Rng, seed};

use crate::agents::consistency::{self, Summary};
use crate::agents::database::TestDatabase;
use crate::agents::history::Record;
use crate::agents::process::{Process, WorkerConfig, WorkerOutput};
use crate::kill_plan::KillPlan;

/// Default number of kills, on both databases together.
const DEFAULT_KILLS: u32 = 50;

/// Kills per series.
const KILLS_PER_DATABASE: u32 = 25;

/// Time limit for a worker to start and to write the expected responses.
const LIMIT: Duration = Duration::from_secs(60);

const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;

/// Runs half of the kills (`ONWARD_KILLS`) on this backend.
pub fn run(backend: Backend) {
    let requested = std::env::var("ONWARD_KILLS").ok();
    let requested: u32 = requested.map_or(DEFAULT_KILLS, |kills| {
        kills.parse().expect("`ONWARD_KILLS` is a number")
    });
    let target = requested.div_ceil(2);
    let seed = seed();
    println!("{backend:?}: ONWARD_SEED={seed}");
    let mut rng = Rng::new(seed);
    let since = Instant::now();
    let (mut kills, mut acknowledged, mut unacknowledged, mut events) = (0, 0, 0, 0);
    while kills < target {
        let limit = KILLS_PER_DATABASE.min(target - kills);
        let (summary, killed) = run_series(backend, &mut rng, limit);
        kills += killed;
        acknowledged += summary.acknowledged;
        unacknowledged += summary.unacknowledged;
        events += summary.events;
        if kills < target {
            println!("{backend:?}: {kills} of {target} kills, {acknowledged} acknowledged calls");
        }
    }
    let seconds = since.elapsed().as_secs_f64();
    println!(
        "{backend:?}: {kills} kills, {acknowledged} acknowledged calls stored, {unacknowledged} \
         unacknowledged calls stored completely, {events} events replayed, {seconds:.1} s"
    );
}

/// Kills workers on one database. Returns the last check and the number of kills.
fn run_series(backend: Backend, rng: &mut Rng, limit: u32) -> (Summary, u32) {
    let database = TestDatabase::create(backend);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.unwrap();
    let mut records: Vec<Record> = Vec::new();
    let mut summary = Summary::default();
    let (mut round, mut kills) = (0, 0);
    while kills < limit {
        round += 1;
        let concurrent = match rng.below(3) {
            0 => 3.min(limit - kills),
            _ => 1,
        };
        let workers: Vec<_> = (0..concurrent)
            .map(|number| {
                let kill_plan = KillPlan::random(rng, round);
                KillTarget::start(&database, rng, kill_plan, format!("r{round}w{number}"))
            })
            .collect();
        for worker in workers {
            records.extend(worker.kill(rng));
            kills += 1;
        }
        let caller = Caller::local("checker");
        summary = runtime.block_on(async {
            let engine = database.open().await;
            consistency::check(&engine, &caller, &records).await
        });
    }
    (summary, kills)
}

/// Kills workers during schema creation, each on a new database.
pub fn during_schema_creation(backend: Backend, kills: u32) {
    let seed = seed();
    println!("{backend:?}: ONWARD_SEED={seed}");
    let mut rng = Rng::new(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.unwrap();
    // The second measurement runs with warm file caches.
    let startup = (0..2)
        .map(|_| measure_startup(backend, &mut rng))
        .min()
        .unwrap_or(0);
    let mut after_creation = 0;
    for number in 0..kills {
        let database = TestDatabase::create(backend);
        let name = format!("w{number}");
        let worker = KillTarget::start(&database, &mut rng, KillPlan::Signal, name.clone());
        // The first part of the startup is the start of the process.
        std::thread::sleep(Duration::from_micros(startup / 5 + rng.below(startup)));
        let records = check_exit(&name, KillPlan::Signal, worker.process.kill());
        after_creation += u32::from(!records.is_empty());
        let caller = Caller::local("checker");
        runtime.block_on(async {
            let engine = database.open().await;
            consistency::check(&engine, &caller, &records).await;
        });
    }
    println!(
        "{backend:?}: {kills} kills within {startup} µs, {after_creation} after schema creation"
    );
}

/// Microseconds that a worker takes to open a new database.
fn measure_startup(backend: Backend, rng: &mut Rng) -> u64 {
    let database = TestDatabase::create(backend);
    let since = Instant::now();
    let mut process =
        KillTarget::start(&database, rng, KillPlan::Signal, "first".to_owned()).process;
    assert!(process.wait_until(LIMIT, |records| !records.is_empty()));
    let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
    process.kill();
    micros
}

/// A worker and its kill plan.
struct KillTarget {
    process: Process,
    kill_plan: KillPlan,
    name: String,
}

impl KillTarget {
    fn start(database: &TestDatabase, rng: &mut Rng, kill_plan: KillPlan, name: String) -> Self {
        let process = Process::start(&WorkerConfig {
            name: name.clone(),
            database: database.address_text(),
            seed: rng.next_u64(),
            agents: 1 + rng.below(6),
            task: kill_plan.to_task(),
        });
        Self {
            process,
            kill_plan,
            name,
        }
    }

    /// Kills the worker, or waits for it to abort, and returns its records.
    fn kill(self, rng: &mut Rng) -> Vec<Record> {
        let Self {
            mut process,
            kill_plan,
            name,
        } = self;
        let output = match kill_plan {
            KillPlan::Signal => {
                // Otherwise the worker is killed during its startup.
                if rng.percent(80) {
                    let responses = 1 + usize::try_from(rng.below(120)).unwrap_or(0);
                    if !process.wait_for_responses(responses, LIMIT) {
                        panic!(
                            "{name} did not write {responses} responses:\n{}",
                            process.kill().stderr
                        );
                    }
                }
                std::thread::sleep(Duration::from_micros(rng.below(30_000)));
                process.kill()
            }
            KillPlan::AtEnvironmentCall(_) | KillPlan::AtStoreOperation(_) => {
                process.wait_for_exit(LIMIT)
            }
        };
        check_exit(&name, kill_plan, output)
    }
}

/// Checks that the worker ended by the expected signal and that none of its calls failed.
fn check_exit(name: &str, kill_plan: KillPlan, output: WorkerOutput) -> Vec<Record> {
    let WorkerOutput {
        status,
        records,
        stderr,
    } = output;
    let signal = match kill_plan {
        KillPlan::Signal => SIGKILL,
        KillPlan::AtEnvironmentCall(_) | KillPlan::AtStoreOperation(_) => SIGABRT,
    };
    assert_eq!(
        status.signal(),
        Some(signal),
        "{name} ({kill_plan:?}): {status}\n{stderr}"
    );
    if let Some(failure) = records.iter().find(|record| record.is_failure()) {
        panic!("{name} ({kill_plan:?}): {failure:?}");
    }
    records
}
