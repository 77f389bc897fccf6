//! Several processes on one SQLite file, as agents' hosts really start them: each drives plans of its
//! own, and none may see an error.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use onward_engine::{Address, Engine};

use crate::drive;
use crate::report::Timed;

const PROCESSES: usize = 8;
const FILE: &str = "ONWARD_BENCH_FILE";
const MILLIS: &str = "ONWARD_BENCH_MILLIS";

pub(crate) fn is_worker() -> bool {
    std::env::var_os(FILE).is_some()
}

/// Drives plans in the file that the parent names, and tells it how long each call took.
pub(crate) fn work() {
    let file = PathBuf::from(std::env::var_os(FILE).expect("a file"));
    let millis = std::env::var(MILLIS).expect("a time");
    let span = Duration::from_millis(millis.parse().expect("a number"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let timed = runtime.block_on(async {
        let address = Address::File(file);
        let engine = Engine::open(&address, Default::default());
        let engine = engine.await.expect("an engine");
        drive::plans(&engine, 1, 10, false, span).await
    });
    for each in timed.each {
        println!("{}", each.as_nanos());
    }
}

pub(crate) fn measure(folder: &Path, span: Duration) {
    let file = folder.join("processes.db");
    let own = std::env::current_exe().expect("this program");
    let began = Instant::now();
    let mut workers: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(&own)
                .env(FILE, &file)
                .env(MILLIS, span.as_millis().to_string())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a worker")
        })
        .collect();
    let mut timed = Timed::default();
    let mut failed = 0;
    for worker in &mut workers {
        let output = BufReader::new(worker.stdout.take().expect("its output"));
        for line in output.lines() {
            let nanos = line.expect("a line").parse().expect("a number");
            timed.each.push(Duration::from_nanos(nanos));
        }
        failed += usize::from(!worker.wait().expect("its end").success());
    }
    // Starting and telling is not driving.
    timed.all = span.min(began.elapsed());
    println!(
        "{PROCESSES} processes on one SQLite file: {:.0} steps/s together, a call takes p50 {} µs, \
         p99 {} µs, at most {} µs; {failed} processes saw an error",
        timed.per_second() / 2.0,
        timed.quantile(0.5).as_micros(),
        timed.quantile(0.99).as_micros(),
        timed.quantile(1.0).as_micros(),
    );
}
