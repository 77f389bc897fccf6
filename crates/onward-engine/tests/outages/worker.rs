//! The worker process with a full disk: an engine, and agents that use every operation.

use onward_testbed::Rng;

use crate::agents::history::stdout_sink;
use crate::agents::process::{WorkerConfig, run_as_worker};
use crate::agents::random_agent::{OpenPlans, RandomAgent};

#[test]
#[ignore = "worker process, started by other tests"]
fn runs_as_a_worker_process() {
    run_as_worker(work);
}

async fn work(config: WorkerConfig) {
    let engine = config.open(Default::default()).await;
    let (sink, open) = (stdout_sink(), OpenPlans::default());
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
