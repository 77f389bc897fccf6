//! A worker process: an engine, and agents that work on the plan or project in the configuration, or on
//! a new plan of this process.

use onward_engine::Caller;
use onward_engine::create::NewPlan;
use onward_testbed::Rng;

use crate::PROJECT;
use crate::agents::history::{Call, Record, RecordKind, Response, digest, stdout_sink};
use crate::agents::plans;
use crate::agents::process::{WorkerConfig, run_as_worker};
use crate::agents::recorder::Recorder;
use crate::racer::Racer;

#[test]
#[ignore = "worker process, started by other tests"]
fn runs_as_a_worker_process() {
    run_as_worker(work);
}

async fn work(config: WorkerConfig) {
    let engine = config.open(Default::default()).await;
    let sink = stdout_sink();
    sink(Record {
        agent: config.name.clone(),
        micros: 0,
        kind: RecordKind::Ready,
    });
    let mut rng = Rng::new(config.seed);
    let plan = match config.task.parse() {
        Ok(plan) => Some(plan),
        Err(_) if config.task == PROJECT => None,
        Err(_) => {
            let command = plans::branching(&engine, &mut rng, &config.name, 60);
            let plan = command.plan;
            let caller = Caller::local(config.name.clone());
            let request = engine.create_plan(&caller, command, None);
            let response = |new_plan: &NewPlan| Response::Created {
                plan,
                digest: digest(&*new_plan.created),
            };
            let recorder = Recorder::new(config.name.clone(), &sink);
            let new_plan = recorder
                .call(Call::Create, plan, "", request, response)
                .await;
            Some(new_plan.expect("plan was created").created.plan)
        }
    };
    let mut agents = tokio::task::JoinSet::new();
    for number in 0..config.agents {
        let name = format!("{}-a{number}", config.name);
        let racer = Racer::new(&engine, name, Rng::new(rng.next_u64()), &sink);
        agents.spawn(async move {
            match plan {
                Some(plan) => racer.work_on(plan).await,
                None => racer.work_in(PROJECT).await,
            }
        });
    }
    agents.join_all().await;
}
