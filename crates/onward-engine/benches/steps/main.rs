//! How fast steps advance, durably, beside the bare floor of the same database in the same run.
//!
//! The unit is one step: `get_next_step` and `submit_step_result`, each acknowledged only when it is
//! on disk, on plans of 10 trivial steps. The floor is a bare loop that writes one UPDATE and two
//! INSERTs per transaction with the same durability; with several callers, one writer and group
//! commit on SQLite, a connection each on PostgreSQL. Machines differ and are shared: read the
//! ratios. `bench/steps` runs it; `bench/README.md` says what was seen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench that cannot run must say so"
)]

mod drive;
mod floor;
mod grown;
mod peer;
mod processes;
mod report;
mod syncs;

use std::path::PathBuf;
use std::time::Duration;

use drive::Course;
use onward_engine::{Address, Engine};
use report::{Measured, heading, line};

/// What the command line asks for.
struct Asked {
    seconds: f64,
    postgres: Option<String>,
    folder: PathBuf,
    grown: bool,
    only: Option<String>,
    callers: Vec<usize>,
    peers: bool,
}

fn asked() -> Asked {
    let mut asked = Asked {
        seconds: 2.0,
        postgres: std::env::var("ONWARD_BENCH_POSTGRES").ok(),
        folder: std::env::temp_dir(),
        grown: false,
        only: None,
        callers: vec![1, 8, 64],
        peers: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the flag");
        match word.as_str() {
            "--seconds" => asked.seconds = value().parse().expect("a number of seconds"),
            "--postgres" => asked.postgres = Some(value()),
            "--folder" => asked.folder = PathBuf::from(value()),
            "--only" => asked.only = Some(value()),
            "--callers" => asked.callers = vec![value().parse().expect("a number of callers")],
            "--peers" => asked.peers = true,
            "--grown" => asked.grown = true,
            // What `cargo bench` says to every bench.
            "--bench" => {}
            other => panic!("`{other}` is no flag of this bench"),
        }
    }
    asked
}

fn main() {
    if processes::is_worker() {
        return processes::work();
    }
    if syncs::is_asked() {
        return syncs::drive();
    }
    let asked = asked();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let folder = asked
        .folder
        .join(format!("onward-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let wants = |what: &str| asked.only.as_deref().is_none_or(|only| only == what);
    let span = Duration::from_secs_f64(asked.seconds);
    println!("{}", floor::sync_time(&folder));
    heading();
    if wants("sqlite") {
        sqlite(&runtime, &folder, &asked.callers, span);
    }
    if let Some(url) = asked.postgres.as_deref().filter(|_| wants("postgres")) {
        postgres(&runtime, url, &asked.callers, asked.peers, span);
    }
    if wants("processes") {
        processes::measure(&folder, span);
    }
    if wants("growth") {
        grown::measure(
            &runtime,
            &folder,
            asked.postgres.as_deref(),
            asked.grown,
            span,
        );
    }
    drop(std::fs::remove_dir_all(&folder));
}

fn sqlite(
    runtime: &tokio::runtime::Runtime,
    folder: &std::path::Path,
    callers: &[usize],
    span: Duration,
) {
    for &callers in callers {
        let file = folder.join(format!("small-{callers}.db"));
        let bare = floor::sqlite(&file, &floor::Small::make(&file), callers, span);
        line(&Measured::floor("SQLite, small rows", callers, &bare));
        let file = folder.join(format!("same-{callers}.db"));
        // More than the file can write in that time, whatever the machine.
        let steps = (span.as_secs_f64() * 20_000.0) as usize;
        runtime.block_on(async {
            let address = Address::File(file.clone());
            let engine = Engine::open(&address, Default::default());
            let engine = engine.await.expect("an engine");
            drive::made(&engine, steps / 10, 10).await;
            engine.close().await;
        });
        let bare = floor::sqlite(&file, &floor::Same::of(&file, callers), callers, span);
        line(&Measured::floor("SQLite, the same rows", callers, &bare));
        for fused in [false, true] {
            let file = folder.join(format!("engine-{callers}-{fused}.db"));
            let driven = runtime.block_on(async {
                let address = Address::File(file);
                let engine = Engine::open(&address, Default::default());
                let engine = engine.await.expect("an engine");
                let course = Course::prepare(&engine, callers, 10, fused, span).await;
                course.run(&engine).await
            });
            line(&Measured::driven("SQLite", callers, fused, &driven, &bare));
        }
    }
}

fn postgres(
    runtime: &tokio::runtime::Runtime,
    url: &str,
    callers: &[usize],
    peers: bool,
    span: Duration,
) {
    for &callers in callers {
        let bare = runtime.block_on(floor::postgres(url, callers, span));
        line(&Measured::floor("PostgreSQL, small rows", callers, &bare));
        for fused in [false, true] {
            let (driven, syncs) = runtime.block_on(async {
                let address = Address::parse(url).expect("an address");
                let engine = Engine::open(&address, Default::default());
                let engine = engine.await.expect("an engine");
                let course = Course::prepare(&engine, callers, 10, fused, span).await;
                let before = syncs::of_server(url).await;
                let driven = course.run(&engine).await;
                (driven, syncs::of_server(url).await - before)
            });
            let measured = Measured::driven("PostgreSQL", callers, fused, &driven, &bare);
            line(&measured.synced(syncs, &driven));
        }
        if peers {
            peer::by_turns(runtime, url, callers, span);
        }
    }
}
