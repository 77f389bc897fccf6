//! How long the pages of the dashboard take at the server: lists in a database of many plans, and the
//! page of a long one, beside `/healthz`, a request that does nothing, in the same run.
//!
//! The plans are made through the engine, with a clock that lets a year pass meanwhile, so that they
//! changed at different times as those of people do. Then the real binary serves them, and a client of
//! a few lines asks for each page in turn. `bench/pages` runs it; `bench/README.md` says what was seen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench that cannot run must say so"
)]

mod fill;
mod http;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use onward_engine::Address;

/// What the command line asks for.
struct Asked {
    plans: u32,
    steps: u32,
    rounds: usize,
    postgres: Option<String>,
    folder: PathBuf,
}

fn asked() -> Asked {
    let mut asked = Asked {
        plans: 100_000,
        steps: 10_000,
        rounds: 50,
        postgres: std::env::var("ONWARD_BENCH_POSTGRES").ok(),
        folder: std::env::temp_dir(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the flag");
        match word.as_str() {
            "--plans" => asked.plans = value().parse().expect("a number of plans"),
            "--steps" => asked.steps = value().parse().expect("a number of steps"),
            "--rounds" => asked.rounds = value().parse().expect("a number of rounds"),
            "--postgres" => asked.postgres = Some(value()),
            "--folder" => asked.folder = PathBuf::from(value()),
            // What `cargo bench` says to every bench.
            "--bench" => {}
            other => panic!("`{other}` is no flag of this bench"),
        }
    }
    asked
}

fn main() {
    let asked = asked();
    println!("what                                        p50 ms     p99 ms    most ms      bytes");
    let name = format!("onward-pages-{}.db", std::process::id());
    let file = asked.folder.join(name);
    measure("SQLite", &Address::File(file.clone()), &asked);
    for ending in ["", "-wal", "-shm"] {
        // Nobody else knows the file.
        drop(std::fs::remove_file(format!("{}{ending}", file.display())));
    }
    if let Some(url) = &asked.postgres {
        measure("PostgreSQL", &Address::Server(url.clone()), &asked);
    }
}

fn measure(database: &str, address: &Address, asked: &Asked) {
    let began = Instant::now();
    let long = fill::fill(address, asked.plans, asked.steps);
    println!(
        "{database}: {} plans and one of {} steps, made in {:.1} s",
        asked.plans,
        asked.steps,
        began.elapsed().as_secs_f64()
    );
    let server = http::Server::start(address);
    let mut client = server.connect();
    let plan = format!("/plans/{long}");
    let middle = asked.steps / 2;
    let pages = [
        ("/healthz".to_owned(), "a request that does nothing"),
        ("/plans".to_owned(), "all plans"),
        ("/plans?status=active".to_owned(), "active ones"),
        ("/plans?status=failed".to_owned(), "failed ones"),
        (
            "/plans?status=awaiting_review".to_owned(),
            "those in review",
        ),
        ("/plans?q=plan4711".to_owned(), "a word of one plan"),
        (
            "/plans?q=topic7".to_owned(),
            "a word of 1 in 100, or its beginning",
        ),
        ("/plans?q=which".to_owned(), "a word of all plans"),
        (
            "/plans?q=topic7&status=failed".to_owned(),
            "a word and a status",
        ),
        ("/plans?q=nowhere".to_owned(), "a word of none"),
        (
            "/api/v1/plans?query=topic7".to_owned(),
            "list_active_plans, a word",
        ),
        (plan.clone(), "the long plan"),
        (format!("{plan}?behind={middle}"), "  in its middle"),
        (format!("{plan}?tab=audit"), "  its trail"),
    ];
    // The first look after a start, before anything is warm.
    let (took, bytes) = client.get("/plans");
    report("all plans, the first look", &mut [took], bytes);
    let mut all: Vec<Vec<Duration>> = vec![Vec::new(); pages.len()];
    let mut sizes = vec![0; pages.len()];
    for _ in 0..asked.rounds {
        for (place, (page, _)) in pages.iter().enumerate() {
            let (took, bytes) = client.get(page);
            all[place].push(took);
            sizes[place] = bytes;
        }
    }
    for ((took, bytes), (_, name)) in all.iter_mut().zip(sizes).zip(&pages) {
        report(name, took, bytes);
    }
}

fn report(name: &str, took: &mut [Duration], bytes: usize) {
    took.sort_unstable();
    let at = |part: usize| {
        let place = took.len() * part / 100;
        let took = took.get(place).or(took.last()).copied();
        took.unwrap_or_default().as_secs_f64() * 1_000.0
    };
    println!(
        "  {name:<38} {:>10.2} {:>10.2} {:>10.2} {bytes:>10}",
        at(50),
        at(99),
        at(100)
    );
}
