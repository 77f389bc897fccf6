//! Callers that advance plans through the engine, each on plans of its own, for a given time.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onward_core::command::{CreatePlan, StepSpec};
use onward_core::step::StepResult;
use onward_core::{PlanId, StepType};
use onward_engine::next::{Handed, Next};
use onward_engine::submit::Submission;
use onward_engine::{Caller, Engine};

use crate::report::{Timed, cpu};

/// How long callers run before anything is counted: statements get prepared, pages get warm, and it
/// shows how many plans will be needed.
const WARM_UP: Duration = Duration::from_millis(200);

/// How many plans are made at the same time.
const AT_ONCE: usize = 8;

/// Plans that are there before the clock starts: the unit is a step, not a plan.
pub(crate) struct Course {
    plans: Plans,
    callers: usize,
    fused: bool,
    span: Duration,
}

impl Course {
    /// Makes as many plans of so many steps as these callers may need.
    pub(crate) async fn prepare(
        engine: &Engine,
        callers: usize,
        steps: usize,
        fused: bool,
        span: Duration,
    ) -> Self {
        let mut course = Self {
            plans: made(engine, callers * 40, steps.min(10)).await,
            callers,
            fused,
            span: WARM_UP,
        };
        let warm = course.run(engine).await;
        let calls_per_plan = if fused { steps } else { 2 * steps };
        let calls = warm.per_second() * span.as_secs_f64() * 1.5;
        let enough = calls as usize / calls_per_plan + callers;
        course.plans = made(engine, enough, steps).await;
        course.span = span;
        course
    }

    /// Drives the plans with all callers at once.
    pub(crate) async fn run(&self, engine: &Engine) -> Timed {
        let (began, worked) = (Instant::now(), cpu());
        let ends = began + self.span;
        let tasks: Vec<_> = (0..self.callers)
            .map(|_| {
                let plans = Arc::clone(&self.plans);
                tokio::spawn(one_caller(engine.clone(), plans, self.fused, ends))
            })
            .collect();
        let mut timed = Timed::default();
        for task in tasks {
            let driven: Timed = task.await.expect("a caller");
            timed.each.extend(driven.each);
            timed.steps += driven.steps;
        }
        timed.all = began.elapsed();
        timed.cpu = cpu().saturating_sub(worked);
        timed
    }
}

type Plans = Arc<Mutex<Vec<PlanId>>>;

/// One caller works off all of these plans.
pub(crate) async fn all_of(engine: &Engine, plans: Plans, fused: bool) {
    let never = Instant::now() + Duration::from_secs(3600);
    one_caller(engine.clone(), plans, fused, never).await;
}

/// Makes plans of so many steps, several at once.
pub(crate) async fn made(engine: &Engine, plans: usize, steps: usize) -> Plans {
    let each = |engine: Engine, plans: usize| async move {
        let caller = Caller::local("bench");
        let mut made = Vec::with_capacity(plans);
        for _ in 0..plans {
            made.push(make(&engine, &caller, steps).await);
        }
        made
    };
    let tasks: Vec<_> = (0..AT_ONCE)
        .map(|task| tokio::spawn(each(engine.clone(), (plans + task) / AT_ONCE)))
        .collect();
    let mut made = Vec::with_capacity(plans);
    for task in tasks {
        made.extend(task.await.expect("plans"));
    }
    Arc::new(Mutex::new(made))
}

/// Works on one plan after the other until the time is up, or the plans are used up.
async fn one_caller(engine: Engine, plans: Plans, fused: bool, ends: Instant) -> Timed {
    let caller = Caller::local("bench");
    let mut driven = Timed::default();
    let another = || plans.lock().expect("the plans").pop();
    while let Some(plan) = another() {
        let mut timed = Instant::now();
        let next = engine.next_step(&caller, plan, None, false).await;
        let mut next = next.expect("a step");
        driven.each.push(timed.elapsed());
        while let Next::Started(step) = next {
            timed = Instant::now();
            let submitted = engine.submit(&caller, result(&step, fused)).await;
            let submitted = submitted.expect("an accepted result");
            driven.each.push(timed.elapsed());
            driven.steps += 1;
            if timed >= ends {
                return driven;
            }
            next = match submitted.next_step {
                Some(next) => next,
                None if submitted.plan_status.is_terminal() => break,
                None => {
                    timed = Instant::now();
                    let next = engine.next_step(&caller, plan, None, false).await;
                    driven.each.push(timed.elapsed());
                    next.expect("a step")
                }
            };
        }
    }
    driven
}

async fn make(engine: &Engine, caller: &Caller, steps: usize) -> PlanId {
    let spec = |_| StepSpec::new(engine.fresh_step(), StepType::Custom, "Do the next thing.");
    let steps = (0..steps).map(spec).collect();
    let plan = CreatePlan::new(engine.fresh_plan(), "Bench", "How fast?", steps);
    let created = engine.create_plan(caller, plan, None).await;
    created.expect("a plan").created.plan
}

fn result(step: &Handed, fused: bool) -> Submission {
    Submission {
        step: step.step,
        result: StepResult::of_summary("It was done, and this is what came of it."),
        token: Some(step.token.clone()),
        session: None,
        claim_next: fused,
    }
}
