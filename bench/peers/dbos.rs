//! Throughput of DBOS for Rust with workflows of ten trivial steps, to compare with Onward on PostgreSQL.
//! `bench/peers/dbos` builds it outside of the workspace.
//!
//! Arguments: the database URL, the duration in seconds, and one or more numbers of concurrent callers. A
//! caller runs one workflow after another. Prints one line per number of callers.

use std::time::{Duration, Instant};

use dbos::{Config, DBOS};

const STEPS: u32 = 10;

async fn workflow(_: ()) -> dbos::Result<u32> {
    let mut sum = 0;
    for _ in 0..STEPS {
        sum += dbos::step("advance", || async { dbos::Result::Ok(1u32) }).await?;
    }
    Ok(sum)
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let mut args = std::env::args().skip(1);
    let url = args.next().expect("database URL argument");
    let seconds: f64 = args.next().expect("seconds argument").parse().expect("seconds is a number");
    let config = Config {
        app_version: Some("1".to_owned()),
        ..Config::new("onward-bench", url)
    };
    let dbos = DBOS::new(config);
    let advance = dbos.register_workflow("advance", workflow).expect("workflow registered");
    dbos.launch().await.expect("DBOS launched");
    for _ in 0..20 {
        advance.run(()).await.expect("workflow completed");
    }
    for callers in args {
        let callers: u32 = callers.parse().expect("callers is a number");
        let duration = Duration::from_secs_f64(seconds);
        let began = Instant::now();
        let tasks: Vec<_> = (0..callers)
            .map(|_| {
                let advance = advance.clone();
                tokio::spawn(async move {
                    let mut steps = 0u64;
                    while began.elapsed() < duration {
                        advance.run(()).await.expect("workflow completed");
                        steps += u64::from(STEPS);
                    }
                    steps
                })
            })
            .collect();
        let mut steps = 0;
        for task in tasks {
            steps += task.await.expect("caller finished");
        }
        println!("{callers} {:.0}", steps as f64 / began.elapsed().as_secs_f64());
    }
}
