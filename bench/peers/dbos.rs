//! How fast DBOS for Rust advances workflows of ten trivial steps: the peer beside Onward's own
//! figures on PostgreSQL. It is built by `bench/peers/dbos` outside of the workspace.
//!
//! Arguments: the database's URL, the seconds to run for, then how many callers at once, once or
//! several times. A caller runs one workflow after the other. Prints one line per number of callers.

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
    let mut words = std::env::args().skip(1);
    let url = words.next().expect("the database's URL");
    let seconds: f64 = words.next().expect("seconds").parse().expect("a number");
    let config = Config {
        app_version: Some("1".to_owned()),
        ..Config::new("onward-bench", url)
    };
    let dbos = DBOS::new(config);
    let advance = dbos.register_workflow("advance", workflow).expect("a workflow");
    dbos.launch().await.expect("a launch");
    for _ in 0..20 {
        advance.run(()).await.expect("a workflow that runs");
    }
    for callers in words {
        let callers: u32 = callers.parse().expect("a number of callers");
        let span = Duration::from_secs_f64(seconds);
        let began = Instant::now();
        let tasks: Vec<_> = (0..callers)
            .map(|_| {
                let advance = advance.clone();
                tokio::spawn(async move {
                    let mut steps = 0u64;
                    while began.elapsed() < span {
                        advance.run(()).await.expect("a workflow that runs");
                        steps += u64::from(STEPS);
                    }
                    steps
                })
            })
            .collect();
        let mut steps = 0;
        for task in tasks {
            steps += task.await.expect("a caller");
        }
        println!("{callers} {:.0}", steps as f64 / began.elapsed().as_secs_f64());
    }
}
