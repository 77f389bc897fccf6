//! A database with many plans in every status, and a long one.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onward_core::command::{CreatePlan, StepSpec};
use onward_core::step::StepResult;
use onward_core::{PlanId, StepId, StepType, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::next::Next;
use onward_engine::step::Question;
use onward_engine::submit::Submission;
use onward_engine::world::{System, World};
use onward_engine::{Address, Caller, Engine};
use tokio::task::JoinSet;

/// How many plans are made at once: they share their commits.
const AT_ONCE: u32 = 64;
/// The time that passes while all are made.
const YEAR: i64 = 365 * 24 * 60 * 60 * 1_000;

/// A clock that goes on by itself whenever somebody looks at it.
struct Passing {
    now: AtomicI64,
    each: i64,
}

impl World for Passing {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.fetch_add(self.each, Ordering::Relaxed))
    }

    fn dice(&self, bytes: &mut [u8]) {
        System.dice(bytes);
    }
}

/// Makes them; the id of the long one.
pub(crate) fn fill(address: &Address, plans: u32, steps: u32) -> PlanId {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("threads can be started").block_on(async {
        // Some four looks at the clock for each plan.
        let each = (YEAR / (4 * i64::from(plans.max(1)))).max(1);
        let world = Passing {
            now: AtomicI64::new(System.now().as_millis() - YEAR),
            each,
        };
        let settings = Settings {
            world: Arc::new(world),
            ..Settings::default()
        };
        let engine = Engine::open(address, settings).await;
        let engine = engine.expect("the database opens");
        let me = Caller::local("bench");
        let mut making = JoinSet::new();
        for number in 0..plans {
            if making.len() >= usize::try_from(AT_ONCE).unwrap() {
                making
                    .join_next()
                    .await
                    .unwrap()
                    .expect("it does not panic");
            }
            making.spawn(one(engine.clone(), me.clone(), number));
        }
        while let Some(made) = making.join_next().await {
            made.expect("it does not panic");
        }
        let long = long(&engine, &me, steps).await;
        engine.close().await;
        long
    })
}

/// One of them. Of twenty, twelve are completed, five not begun, and one each is failed, in review, and
/// worked on.
async fn one(engine: Engine, me: Caller, number: u32) {
    let step = |text: &str| StepSpec::new(engine.fresh_step(), StepType::Search, text);
    let steps = vec![step("Find sources."), step("Say what they say.")];
    let plan = engine.fresh_plan();
    let name = format!("Plan{number} about topic{}", number % 100);
    let question = format!(
        "Which of the {number} answers to topic{} holds, and why?",
        number % 100
    );
    let draft = CreatePlan::new(plan, name, question, steps);
    engine.create_plan(&me, draft, None).await.expect("a plan");
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
            let why = Some("not worth it".to_owned());
            engine
                .abandon_plan(&me, plan, why)
                .await
                .expect("abandoned");
        }
        18 => {
            let step = start(&engine, &me, plan).await.expect("a step");
            let question = Question {
                step,
                summary: "Two fit.".to_owned(),
                questions: vec!["Which one?".to_owned()],
                token: None,
                session: None,
            };
            engine.request_review(&me, question).await.expect("asked");
        }
        _ => drop(start(&engine, &me, plan).await),
    }
}

async fn start(engine: &Engine, me: &Caller, plan: PlanId) -> Option<StepId> {
    let next = engine.next_step(me, plan, None, false).await;
    if let Next::Started(handed) = next.expect("an answer") {
        return Some(handed.step);
    }
    None
}

async fn submit(engine: &Engine, me: &Caller, step: StepId) {
    let submission = Submission {
        step,
        result: StepResult::of_summary("Found what was asked for."),
        token: None,
        session: None,
        claim_next: false,
    };
    engine.submit(me, submission).await.expect("taken");
}

/// A quarter of it is done.
async fn long(engine: &Engine, me: &Caller, steps: u32) -> PlanId {
    let plan = engine.fresh_plan();
    let step = |number: u32| {
        let text = format!("Look at document {number}.");
        StepSpec::new(engine.fresh_step(), StepType::Extract, text)
    };
    let all = (1..=steps).map(step).collect();
    let draft = CreatePlan::new(plan, "A long one", "What do all documents say?", all);
    engine.create_plan(me, draft, None).await.expect("a plan");
    for _ in 0..steps / 4 {
        let step = start(engine, me, plan).await.expect("a step");
        submit(engine, me, step).await;
    }
    start(engine, me, plan).await;
    plan
}
