//! A full disk. A worker runs with a file size limit (`ulimit -f`), so that writes beyond it fail
//! as on a full disk. After the limit is lifted, the same worker must continue.

use std::process::Command;
use std::time::Duration;

use onward_engine::Caller;
use onward_testbed::{Backend, Rng, seed};

use crate::agents::database::TestDatabase;
use crate::agents::history::{Record, RecordKind, Response};
use crate::agents::process::{Process, WorkerConfig};
use crate::agents::{consistency, plans};
use crate::{assert_failures_are_unavailable, within_limit};

/// File size limit in KiB: enough for the schema and some work.
const FILE_SIZE_LIMIT: &str = "1500";
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn work_continues_without_loss_after_the_disk_was_full() {
    let database = TestDatabase::create(Backend::Sqlite);
    let mut worker = Process::start_with(
        limited_command(),
        &WorkerConfig {
            name: "w".to_owned(),
            database: database.address_text(),
            seed: seed(),
            agents: 4,
            task: String::new(),
        },
    );
    if !worker.wait_until(LIMIT, |records| failures(records) > 20) {
        panic!(
            "the file size limit was not reached:\n{}",
            worker.kill().stderr
        );
    }
    assert_failures_are_unavailable(worker.records());
    if lift_limit(worker.id()) {
        let before = worker.records().len();
        let continued = worker.wait_until(LIMIT, |records| changes(&records[before..]) > 50);
        assert!(
            continued,
            "the worker did not continue after the limit was lifted:\n{}",
            worker.kill().stderr
        );
    } else {
        println!("skipped: `prlimit` cannot lift the file size limit of the worker");
    }
    let records = worker.kill().records;
    println!(
        "{} calls acknowledged, {} failed",
        changes(&records),
        failures(&records)
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let (engine, caller) = (database.open().await, Caller::local("checker"));
        consistency::check(&engine, &caller, &records).await;
        let command = plans::branching(&engine, &mut Rng::new(1), "afterwards", 5);
        let new_plan = within_limit(engine.create_plan(&caller, command, None)).await;
        let plan = new_plan.unwrap().created.plan;
        let next = within_limit(engine.next_step(&caller, plan, None, false)).await;
        next.expect("step was assigned");
    });
}

/// Runs this test binary with a file size limit. SIGXFSZ is ignored, so that the write fails
/// instead of ending the process.
fn limited_command() -> Command {
    let program = std::env::current_exe().expect("path of the test binary is available");
    let mut command = Command::new("bash");
    let script = format!("trap '' XFSZ; ulimit -S -f {FILE_SIZE_LIMIT}; exec \"$0\" \"$@\"");
    command.arg("-c").arg(script).arg(program);
    command
}

/// Lifts the limit of a running process. Returns false if that is not possible here.
fn lift_limit(process: u32) -> bool {
    let lifted = Command::new("prlimit")
        .args(["--pid", &process.to_string(), "--fsize=unlimited"])
        .status();
    lifted.is_ok_and(|status| status.success())
}

fn failures(records: &[Record]) -> usize {
    records.iter().filter(|record| record.is_failure()).count()
}

/// Number of calls that changed a plan.
fn changes(records: &[Record]) -> usize {
    let changed = |record: &&Record| match &record.kind {
        RecordKind::Ready | RecordKind::Call(_) => false,
        RecordKind::Response(response) => !matches!(
            response,
            Response::Failed { .. } | Response::NoChange { .. }
        ),
    };
    records.iter().filter(changed).count()
}
