//! The worker process with a full disk: an engine, and agents that use every operation.

use onward_engine::{Address, Engine};

use crate::history::stdout_sink;
use crate::process::{WorkerConfig, exit_when_stdin_closes};
use crate::random_agent::{OpenPlans, RandomAgent};
use crate::rng::Rng;

#[test]
#[ignore = "worker process, started by other tests"]
fn runs_as_a_worker_process() {
    let Some(config) = WorkerConfig::from_env() else {
        return;
    };
    exit_when_stdin_closes();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(work(config));
}

async fn work(config: WorkerConfig) {
    let address = Address::parse(&config.database).unwrap();
    let engine = Engine::open(&address, Default::default()).await;
    let engine = engine.unwrap_or_else(|error| panic!("{error} ({})", error.hint()));
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
