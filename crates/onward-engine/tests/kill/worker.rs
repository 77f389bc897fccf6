//! The worker process that is killed: an engine, the sweeper, and agents that use every operation.

use std::sync::Arc;
use std::time::Duration;

use onward_engine::Faults;
use onward_testbed::Rng;

use crate::agents::history::{Record, RecordKind, RecordSink, stdout_sink};
use crate::agents::process::{WorkerConfig, run_as_worker};
use crate::agents::random_agent::{OpenPlans, RandomAgent};
use crate::kill_plan::{self, KillPlan};

#[test]
#[ignore = "worker process, started by other tests"]
fn runs_as_a_worker_process() {
    run_as_worker(work);
}

/// Aborts after the fault, even if it occurs in a caller that records nothing, such as the sweeper.
async fn abort_after_fault(faults: Faults) {
    while faults.is_pending() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    kill_plan::abort();
}

async fn work(config: WorkerConfig) {
    let kill_plan = KillPlan::from_task(&config.task);
    let settings = kill_plan.settings();
    let faults = settings.faults.clone();
    let engine = config.open(settings).await;
    let stdout = stdout_sink();
    let recorded_faults = faults.clone();
    let sink: RecordSink = Arc::new(move |record: Record| {
        let at_fault =
            matches!(kill_plan, KillPlan::AtStoreOperation(_)) && !recorded_faults.is_pending();
        // The failure must not be recorded: the parent expects a call without a response.
        if at_fault && record.is_failure() {
            kill_plan::abort();
        }
        stdout(record);
    });
    sink(Record {
        agent: config.name.clone(),
        micros: 0,
        kind: RecordKind::Ready,
    });
    if let KillPlan::AtStoreOperation(number) = kill_plan {
        faults.fail_after(number);
        tokio::spawn(abort_after_fault(faults));
    }
    let (_running, stop) = tokio::sync::watch::channel(false);
    let sweeping = engine.clone();
    tokio::spawn(async move { sweeping.run_sweeper(stop).await });
    let open = OpenPlans::default();
    let mut rng = Rng::new(config.seed);
    let mut agents = tokio::task::JoinSet::new();
    for number in 0..config.agents {
        let name = format!("{}-a{number}", config.name);
        let agent = RandomAgent::new(&engine, name, Rng::new(rng.next_u64()), &sink, &open);
        agents.spawn(agent.work());
    }
    // Agents work until the process is killed. A panic in one of them ends the process.
    if let Some(exit) = agents.join_next().await {
        panic!("an agent exited: {exit:?}");
    }
}
