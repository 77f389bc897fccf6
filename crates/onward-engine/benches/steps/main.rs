//! Throughput of durable steps, compared with the database floor in the same run.
//!
//! One step is `get_next_step` plus `submit_step_result`, each acknowledged after its commit is on
//! disk, on plans of 10 trivial steps. With `claimNext`, one call completes a step and starts the
//! next one. The floor is a loop that writes one UPDATE and two INSERTs of small rows per
//! transaction with the same durability. On SQLite, a second floor writes the engine's own rows, in
//! turn with the engine; the ratio uses that one. With several callers the floor uses one writer with
//! group commit on SQLite and one connection per caller on PostgreSQL. Machines differ and are shared,
//! so compare the ratios. Run it with `bench/steps`; results are in `bench/README.md`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run must fail"
)]

mod drive;
mod floor;
mod growth;
mod hot;
mod peer;
mod processes;
mod report;
mod syncs;

use std::path::{Path, PathBuf};
use std::time::Duration;

use drive::{ROUNDS, Workload};
use onward_engine::engine::Settings;
use onward_engine::{Address, Engine};
use onward_testbed::TestDir;
use onward_testbed::bench::{SameRows, Samples, open, sync_time};
use report::{Row, print_heading, print_row};

/// Command-line arguments.
struct Args {
    seconds: f64,
    postgres: Option<String>,
    folder: PathBuf,
    grown: bool,
    only: Option<String>,
    callers: Vec<usize>,
    peers: bool,
    plan_cache: bool,
    batching: bool,
}

fn parse_args() -> Args {
    let mut args = Args {
        seconds: 2.0,
        postgres: std::env::var("ONWARD_BENCH_POSTGRES").ok(),
        folder: std::env::temp_dir(),
        grown: false,
        only: None,
        callers: vec![1, 8, 64],
        peers: false,
        plan_cache: true,
        batching: true,
    };
    let mut flags = std::env::args().skip(1);
    while let Some(flag) = flags.next() {
        let mut value = || flags.next().expect("the flag has a value");
        match flag.as_str() {
            "--seconds" => args.seconds = value().parse().expect("`--seconds` is a number"),
            "--postgres" => args.postgres = Some(value()),
            "--folder" => args.folder = PathBuf::from(value()),
            "--only" => args.only = Some(value()),
            "--callers" => args.callers = vec![value().parse().expect("`--callers` is a number")],
            "--peers" => args.peers = true,
            "--without" => match value().as_str() {
                "cache" => args.plan_cache = false,
                "batching" => args.batching = false,
                other => panic!("`--without` is `cache` or `batching`, not `{other}`"),
            },
            "--grown" => args.grown = true,
            // Passed by `cargo bench`.
            "--bench" => {}
            other => panic!("unknown flag `{other}`"),
        }
    }
    args
}

fn main() {
    if processes::is_worker() {
        return processes::work();
    }
    if syncs::is_requested() {
        return syncs::drive();
    }
    let args = parse_args();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime started");
    let dir = TestDir::create_in(&args.folder, "bench");
    let folder = dir.path();
    let selected = |what: &str| args.only.as_deref().is_none_or(|only| only == what);
    let duration = Duration::from_secs_f64(args.seconds);
    println!("{}", sync_time(folder));
    print_heading();
    if selected("sqlite") {
        sqlite(&runtime, folder, &args.callers, duration);
    }
    if let Some(url) = args.postgres.as_deref().filter(|_| selected("postgres")) {
        postgres(&runtime, url, &args, duration);
    }
    if selected("processes") {
        processes::measure(folder, duration);
    }
    if selected("growth") {
        growth::measure(
            &runtime,
            folder,
            args.postgres.as_deref(),
            args.grown,
            duration,
        );
    }
}

fn sqlite(runtime: &tokio::runtime::Runtime, folder: &Path, callers: &[usize], duration: Duration) {
    for &callers in callers {
        let file = folder.join(format!("small-{callers}.db"));
        let rows = floor::SmallRows::create(&file);
        let (floor, _) = floor::sqlite(open(&file), &rows, callers, duration);
        print_row(&Row::floor("SQLite floor, small rows", callers, &floor));
        for claim_next in [false, true] {
            let (floor, run) = alternate(runtime, folder, callers, claim_next, duration);
            let name = if claim_next {
                "SQLite floor, claimNext"
            } else {
                "SQLite floor, same rows"
            };
            print_row(&Row::floor(name, callers, &floor));
            print_row(&Row::engine_run(
                "SQLite", callers, claim_next, &run, &floor,
            ));
        }
    }
}

/// Runs the floor and the engine in turn, so that other load on the machine affects both equally.
fn alternate(
    runtime: &tokio::runtime::Runtime,
    folder: &Path,
    callers: usize,
    claim_next: bool,
    duration: Duration,
) -> (Samples, Samples) {
    let open_engine = async |file: &Path| {
        let address = Address::File(file.to_owned());
        let engine = Engine::open(&address, Default::default());
        engine.await.expect("engine opened")
    };
    let file = folder.join(format!("same-{callers}-{claim_next}.db"));
    // More steps than any machine completes in that time.
    let steps = (duration.as_secs_f64() * 20_000.0) as usize;
    runtime.block_on(async {
        let engine = open_engine(&file).await;
        drive::create_plans(&engine, steps / 10, 10).await;
        engine.close().await;
    });
    let rows = SameRows::load(&file, callers, claim_next);
    let mut file = open(&file);
    let (engine, workload) = runtime.block_on(async {
        let file = folder.join(format!("engine-{callers}-{claim_next}.db"));
        let engine = open_engine(&file).await;
        let workload = Workload::prepare(&engine, callers, 10, claim_next, duration).await;
        (engine, workload)
    });
    let (mut floor, mut run) = (Samples::default(), Samples::default());
    for rows in rows.rounds(ROUNDS) {
        let round = duration.div_f64(ROUNDS as f64);
        let samples;
        (samples, file) = floor::sqlite(file, &rows, callers, round);
        floor.add(samples);
        run.add(runtime.block_on(workload.run_for(&engine, round)));
    }
    (floor, run)
}

fn postgres(runtime: &tokio::runtime::Runtime, url: &str, args: &Args, duration: Duration) {
    for &callers in &args.callers {
        let floor = runtime.block_on(floor::postgres(url, callers, duration));
        print_row(&Row::floor("PostgreSQL floor, small rows", callers, &floor));
        for claim_next in [false, true] {
            let (engine_run, syncs, updates) = runtime.block_on(async {
                let address = Address::parse(url).expect("valid database URL");
                let settings = Settings {
                    plan_cache: args.plan_cache,
                    batching: args.batching,
                    ..Settings::default()
                };
                let engine = Engine::open(&address, settings);
                let engine = engine.await.expect("engine opened");
                let workload = Workload::prepare(&engine, callers, 10, claim_next, duration).await;
                let (before, updates) = (syncs::server_syncs(url).await, hot::updates(url).await);
                let engine_run = workload.run(&engine).await;
                let syncs = syncs::server_syncs(url).await - before;
                (engine_run, syncs, (updates, hot::updates(url).await))
            });
            let row = Row::engine_run("PostgreSQL", callers, claim_next, &engine_run, &floor);
            print_row(&row.with_syncs(syncs, &engine_run));
            hot::print_share(&updates.0, &updates.1);
        }
        if args.peers {
            peer::compare(runtime, url, callers, duration);
        }
    }
}
