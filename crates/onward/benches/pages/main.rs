//! Response times of the dashboard's pages: lists in a database with many plans, and the page of a
//! long plan, compared with `/healthz` in the same run.
//!
//! The plans are created through the engine with a simulated clock, so that their last changes are
//! spread over a year. The real binary serves them, and a minimal client requests each page in
//! turn. Run it with `bench/pages`; results are in `bench/README.md`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run must fail"
)]

mod fill;
mod http;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use onward_engine::Address;
use onward_testbed::{Connection, TestDir};

/// Command-line arguments.
struct Args {
    plans: u32,
    steps: u32,
    rounds: usize,
    postgres: Option<String>,
    folder: PathBuf,
}

fn parse_args() -> Args {
    let mut args = Args {
        plans: 100_000,
        steps: 10_000,
        rounds: 50,
        postgres: std::env::var("ONWARD_BENCH_POSTGRES").ok(),
        folder: std::env::temp_dir(),
    };
    let mut flags = std::env::args().skip(1);
    while let Some(flag) = flags.next() {
        let mut value = || flags.next().expect("the flag has a value");
        match flag.as_str() {
            "--plans" => args.plans = value().parse().expect("`--plans` is a number"),
            "--steps" => args.steps = value().parse().expect("`--steps` is a number"),
            "--rounds" => args.rounds = value().parse().expect("`--rounds` is a number"),
            "--postgres" => args.postgres = Some(value()),
            "--folder" => args.folder = PathBuf::from(value()),
            // Passed by `cargo bench`.
            "--bench" => {}
            other => panic!("unknown flag `{other}`"),
        }
    }
    args
}

fn main() {
    let args = parse_args();
    println!("page                                        p50 ms     p99 ms     max ms      bytes");
    let dir = TestDir::create_in(&args.folder, "pages");
    measure("SQLite", &Address::File(dir.join("onward.db")), &args);
    if let Some(url) = &args.postgres {
        measure("PostgreSQL", &Address::Server(url.clone()), &args);
    }
}

fn measure(database: &str, address: &Address, args: &Args) {
    let began = Instant::now();
    let long_plan = fill::fill(address, args.plans, args.steps);
    println!(
        "{database}: {} plans and one with {} steps, created in {:.1} s",
        args.plans,
        args.steps,
        began.elapsed().as_secs_f64()
    );
    let server = http::start(address);
    let mut client = Connection::open(&server.url);
    let plan = format!("/plans/{long_plan}");
    let middle = args.steps / 2;
    let pages = [
        ("/healthz".to_owned(), "health check"),
        ("/plans".to_owned(), "all plans"),
        ("/plans?status=active".to_owned(), "active plans"),
        ("/plans?status=failed".to_owned(), "failed plans"),
        (
            "/plans?status=awaiting_review".to_owned(),
            "plans awaiting review",
        ),
        ("/plans?q=plan4711".to_owned(), "search: word in one plan"),
        ("/plans?q=topic7".to_owned(), "search: word in 1 % of plans"),
        ("/plans?q=which".to_owned(), "search: word in all plans"),
        (
            "/plans?q=topic7&status=failed".to_owned(),
            "search: word and status",
        ),
        ("/plans?q=nowhere".to_owned(), "search: word in no plan"),
        (
            "/api/v1/plans?query=topic7".to_owned(),
            "list_active_plans with a word",
        ),
        (plan.clone(), "long plan"),
        (format!("{plan}?after={middle}"), "long plan, middle"),
        (format!("{plan}?tab=audit"), "long plan, audit trail"),
    ];
    // The first request after the start, with cold caches.
    let (took, bytes) = http::get(&mut client, "/plans");
    report("all plans, first request", &mut [took], bytes);
    let mut durations: Vec<Vec<Duration>> = vec![Vec::new(); pages.len()];
    let mut sizes = vec![0; pages.len()];
    for _ in 0..args.rounds {
        for (index, (page, _)) in pages.iter().enumerate() {
            let (took, bytes) = http::get(&mut client, page);
            durations[index].push(took);
            sizes[index] = bytes;
        }
    }
    for ((took, bytes), (_, name)) in durations.iter_mut().zip(sizes).zip(&pages) {
        report(name, took, bytes);
    }
}

fn report(name: &str, took: &mut [Duration], bytes: usize) {
    took.sort_unstable();
    let at = |percent: usize| {
        let index = took.len() * percent / 100;
        let took = took.get(index).or(took.last()).copied();
        took.unwrap_or_default().as_secs_f64() * 1_000.0
    };
    println!(
        "  {name:<38} {:>10.2} {:>10.2} {:>10.2} {bytes:>10}",
        at(50),
        at(99),
        at(100)
    );
}
