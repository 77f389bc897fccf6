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
mod processes;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use onward_engine::{Address, Engine};
use report::{Measured, heading, line};

/// What the command line asks for.
struct Asked {
    seconds: f64,
    postgres: Option<String>,
    folder: PathBuf,
    grown: bool,
    only: Option<String>,
}

fn asked() -> Asked {
    let mut asked = Asked {
        seconds: 2.0,
        postgres: std::env::var("ONWARD_BENCH_POSTGRES").ok(),
        folder: std::env::temp_dir(),
        grown: false,
        only: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the flag");
        match word.as_str() {
            "--seconds" => asked.seconds = value().parse().expect("a number of seconds"),
            "--postgres" => asked.postgres = Some(value()),
            "--folder" => asked.folder = PathBuf::from(value()),
            "--only" => asked.only = Some(value()),
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
        sqlite(&runtime, &folder, span);
    }
    if let Some(url) = asked.postgres.as_deref().filter(|_| wants("postgres")) {
        postgres(&runtime, url, span);
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

fn sqlite(runtime: &tokio::runtime::Runtime, folder: &std::path::Path, span: Duration) {
    for callers in [1usize, 8, 64] {
        let bare = floor::sqlite(&folder.join(format!("floor-{callers}.db")), callers, span);
        line(&Measured::floor("SQLite", callers, &bare));
        for fused in [false, true] {
            let file = folder.join(format!("engine-{callers}-{fused}.db"));
            let driven = runtime.block_on(async {
                let address = Address::File(file);
                let engine = Engine::open(&address, Default::default());
                let engine = engine.await.expect("an engine");
                drive::plans(&engine, callers, 10, fused, span).await
            });
            line(&Measured::driven("SQLite", callers, fused, &driven, &bare));
        }
    }
}

fn postgres(runtime: &tokio::runtime::Runtime, url: &str, span: Duration) {
    for callers in [1usize, 8, 64] {
        let bare = runtime.block_on(floor::postgres(url, callers, span));
        line(&Measured::floor("PostgreSQL", callers, &bare));
        for fused in [false, true] {
            let driven = runtime.block_on(async {
                let address = Address::parse(url).expect("an address");
                let engine = Engine::open(&address, Default::default());
                let engine = engine.await.expect("an engine");
                drive::plans(&engine, callers, 10, fused, span).await
            });
            line(&Measured::driven(
                "PostgreSQL",
                callers,
                fused,
                &driven,
                &bare,
            ));
        }
    }
}
