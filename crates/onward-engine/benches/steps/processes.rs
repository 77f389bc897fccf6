//! Several processes on one SQLite file, as agents' hosts really start them: each drives plans of its
//! own, and none may see an error.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use onward_engine::{Address, Engine};

use crate::drive::Course;
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
        let course = Course::prepare(&engine, 1, 10, false, span).await;
        println!("ready");
        let mut start = String::new();
        std::io::stdin().read_line(&mut start).expect("a start");
        course.run(&engine).await
    });
    for each in timed.each {
        println!("{}", each.as_nanos());
    }
}

pub(crate) fn measure(folder: &Path, span: Duration) {
    let file = folder.join("processes.db");
    let own = std::env::current_exe().expect("this program");
    let mut workers: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(&own)
                .env(FILE, &file)
                .env(MILLIS, span.as_millis().to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a worker")
        })
        .collect();
    let mut outputs: Vec<_> = workers
        .iter_mut()
        .map(|worker| BufReader::new(worker.stdout.take().expect("its output")).lines())
        .collect();
    for output in &mut outputs {
        output
            .next()
            .expect("a line")
            .expect("a worker that is ready");
    }
    // Nobody starts before all have their plans: making them is not driving them.
    for worker in &mut workers {
        let mut start = worker.stdin.take().expect("its input");
        start.write_all(b"go\n").expect("a start");
    }
    let mut timed = Timed::default();
    for output in &mut outputs {
        for line in output {
            let nanos = line.expect("a line").parse().expect("a number");
            timed.each.push(Duration::from_nanos(nanos));
        }
    }
    let failed = workers
        .iter_mut()
        .map(|worker| worker.wait().expect("its end"));
    let failed = failed.filter(|ended| !ended.success()).count();
    timed.all = span;
    println!(
        "{PROCESSES} processes on one SQLite file: {:.0} steps/s together, a call takes p50 {} µs, \
         p99 {} µs, at most {} µs; {failed} processes saw an error",
        timed.per_second() / 2.0,
        timed.quantile(0.5).as_micros(),
        timed.quantile(0.99).as_micros(),
        timed.quantile(1.0).as_micros(),
    );
}
