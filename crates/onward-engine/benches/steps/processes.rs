//! Several processes on one SQLite file, as agent hosts start them. Each drives separate plans, and
//! none may see an error.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use onward_engine::{Address, Engine};

use crate::drive::Workload;
use onward_testbed::bench::Samples;

const PROCESSES: usize = 8;
const FILE: &str = "ONWARD_BENCH_FILE";
const MILLIS: &str = "ONWARD_BENCH_MILLIS";

pub(crate) fn is_worker() -> bool {
    std::env::var_os(FILE).is_some()
}

/// Drives plans in the file named by the parent process and prints the duration of each call.
pub(crate) fn work() {
    let file = PathBuf::from(std::env::var_os(FILE).expect("file name is set"));
    let millis = std::env::var(MILLIS).expect("duration is set");
    let duration = Duration::from_millis(millis.parse().expect("duration is a number"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("runtime started");
    let samples = runtime.block_on(async {
        let address = Address::File(file);
        let engine = Engine::open(&address, Default::default());
        let engine = engine.await.expect("engine opened");
        let workload = Workload::prepare(&engine, 1, 10, false, duration).await;
        println!("ready");
        let mut start = String::new();
        std::io::stdin()
            .read_line(&mut start)
            .expect("start signal received");
        workload.run(&engine).await
    });
    for latency in samples.latencies {
        println!("{}", latency.as_nanos());
    }
}

pub(crate) fn measure(folder: &Path, duration: Duration) {
    let file = folder.join("processes.db");
    let program = std::env::current_exe().expect("path of this program");
    let mut workers: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(&program)
                .env(FILE, &file)
                .env(MILLIS, duration.as_millis().to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("worker started")
        })
        .collect();
    let mut outputs: Vec<_> = workers
        .iter_mut()
        .map(|worker| BufReader::new(worker.stdout.take().expect("stdout is piped")).lines())
        .collect();
    for output in &mut outputs {
        output
            .next()
            .expect("worker printed a line")
            .expect("line read");
    }
    // All workers start together, after they have created their plans.
    for worker in &mut workers {
        let mut start = worker.stdin.take().expect("stdin is piped");
        start.write_all(b"go\n").expect("start signal sent");
    }
    let mut samples = Samples::default();
    for output in &mut outputs {
        for line in output {
            let nanos = line.expect("line read").parse().expect("line is a number");
            samples.latencies.push(Duration::from_nanos(nanos));
        }
    }
    let failed = workers
        .iter_mut()
        .map(|worker| worker.wait().expect("worker exited"));
    let failed = failed.filter(|status| !status.success()).count();
    samples.elapsed = duration;
    println!(
        "{PROCESSES} processes on one SQLite file: {:.0} steps/s in total, call latency p50 {} µs, \
         p99 {} µs, max {} µs; {failed} processes failed",
        samples.per_second() / 2.0,
        samples.quantile(0.5).as_micros(),
        samples.quantile(0.99).as_micros(),
        samples.quantile(1.0).as_micros(),
    );
}
