//! Fills a database with many plans in all statuses, and one long plan.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onward_core::command::{CreatePlan, StepSpec};
use onward_core::step::StepResult;
use onward_core::{PlanId, StepId, StepType, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::environment::Environment;
use onward_engine::machine::SystemEnvironment;
use onward_engine::next_step::NextStep;
use onward_engine::step::ReviewRequest;
use onward_engine::submit::Submission;
use onward_engine::{Address, Caller, Engine};
use tokio::task::JoinSet;

/// Number of plans created concurrently; they share commits.
const CONCURRENCY: u32 = 64;
/// Simulated time during which the plans are created.
const YEAR: i64 = 365 * 24 * 60 * 60 * 1_000;

/// A clock that advances with every reading.
struct AdvancingClock {
    now: AtomicI64,
    increment: i64,
}

impl Environment for AdvancingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.fetch_add(self.increment, Ordering::Relaxed))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        SystemEnvironment.fill_random(bytes);
    }
}

/// Creates the plans and returns the id of the long one.
pub(crate) fn fill(address: &Address, plans: u32, steps: u32) -> PlanId {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("runtime started").block_on(async {
        // About four clock readings per plan.
        let increment = (YEAR / (4 * i64::from(plans.max(1)))).max(1);
        let world = AdvancingClock {
            now: AtomicI64::new(SystemEnvironment.now().as_millis() - YEAR),
            increment,
        };
        let settings = Settings {
            environment: Arc::new(world),
            ..Settings::default()
        };
        let engine = Engine::open(address, settings).await;
        let engine = engine.expect("database opened");
        let me = Caller::local("bench");
        let mut tasks = JoinSet::new();
        for number in 0..plans {
            if tasks.len() >= usize::try_from(CONCURRENCY).unwrap() {
                tasks.join_next().await.unwrap().expect("task finished");
            }
            tasks.spawn(create_plan(engine.clone(), me.clone(), number));
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("task finished");
        }
        let long = create_long_plan(&engine, &me, steps).await;
        engine.close().await;
        long
    })
}

/// Creates one plan. Of twenty, twelve are completed, five not started, and one each is failed,
/// awaiting review, and in progress.
async fn create_plan(engine: Engine, me: Caller, number: u32) {
    let step = |text: &str| StepSpec::new(engine.new_step_id(), StepType::Search, text);
    let steps = vec![step("Find sources."), step("Summarize them.")];
    let plan = engine.new_plan_id();
    let name = format!("Plan{number} about topic{}", number % 100);
    let question = format!(
        "Which of the {number} answers to topic{} holds, and why?",
        number % 100
    );
    let draft = CreatePlan::new(plan, name, question, steps);
    engine
        .create_plan(&me, draft, None)
        .await
        .expect("plan created");
    match number % 20 {
        0..12 => {
            let mut step = start(&engine, &me, plan).await;
            while let Some(id) = step {
                submit(&engine, &me, id).await;
                step = start(&engine, &me, plan).await;
            }
        }
        12..17 => {}
        17 => {
            let reason = Some("not worth it".to_owned());
            engine
                .abandon_plan(&me, plan, reason)
                .await
                .expect("plan abandoned");
        }
        18 => {
            let step = start(&engine, &me, plan).await.expect("step assigned");
            let question = ReviewRequest {
                step,
                summary: "Two fit.".to_owned(),
                questions: vec!["Which one?".to_owned()],
                scope: onward_core::step::ReviewScope::Plan,
                options: Default::default(),
                token: None,
                session: None,
            };
            engine
                .request_review(&me, question)
                .await
                .expect("review requested");
        }
        _ => drop(start(&engine, &me, plan).await),
    }
}

async fn start(engine: &Engine, me: &Caller, plan: PlanId) -> Option<StepId> {
    let next = engine.next_step(me, plan, None, false).await;
    if let NextStep::Started(handed) = next.expect("request succeeded") {
        return Some(handed.step);
    }
    None
}

async fn submit(engine: &Engine, me: &Caller, step: StepId) {
    let submission = Submission {
        step,
        result: StepResult::from_summary("Found the sources."),
        token: None,
        session: None,
        claim_next: false,
    };
    engine
        .submit(me, submission)
        .await
        .expect("result accepted");
}

/// Creates the long plan and completes a quarter of its steps.
async fn create_long_plan(engine: &Engine, me: &Caller, steps: u32) -> PlanId {
    let plan = engine.new_plan_id();
    let step = |number: u32| {
        let text = format!("Read document {number}.");
        StepSpec::new(engine.new_step_id(), StepType::Extract, text)
    };
    let all = (1..=steps).map(step).collect();
    let draft = CreatePlan::new(plan, "Long plan", "What do all documents say?", all);
    engine
        .create_plan(me, draft, None)
        .await
        .expect("plan created");
    for _ in 0..steps / 4 {
        let step = start(engine, me, plan).await.expect("step assigned");
        submit(engine, me, step).await;
    }
    start(engine, me, plan).await;
    plan
}
