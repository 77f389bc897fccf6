//! Callers that advance plans through the engine, each on plans of its own, for a given time.

use std::time::{Duration, Instant};

use onward_core::StepType;
use onward_core::command::{CreatePlan, StepSpec};
use onward_core::step::StepResult;
use onward_engine::next::{Handed, Next};
use onward_engine::submit::Submission;
use onward_engine::{Caller, Engine};

use crate::report::{Timed, cpu};

/// Drives plans of so many steps with so many callers at once. Making a plan is no call, but its time
/// and its share of the processor are in the whole: one plan per `steps` steps.
pub(crate) async fn plans(
    engine: &Engine,
    callers: usize,
    steps: usize,
    fused: bool,
    span: Duration,
) -> Timed {
    // One plan first, so that statements are prepared and pages are warm.
    drop(one_caller(engine.clone(), steps.min(10), fused, Duration::ZERO).await);
    let (began, worked) = (Instant::now(), cpu());
    let tasks: Vec<_> = (0..callers)
        .map(|_| tokio::spawn(one_caller(engine.clone(), steps, fused, span)))
        .collect();
    let mut timed = Timed::default();
    for task in tasks {
        timed.each.extend(task.await.expect("a caller"));
    }
    timed.all = began.elapsed();
    timed.cpu = cpu().saturating_sub(worked);
    timed
}

async fn one_caller(engine: Engine, steps: usize, fused: bool, span: Duration) -> Vec<Duration> {
    let caller = Caller::local("bench");
    let ends = Instant::now() + span;
    let mut each = Vec::new();
    loop {
        let plan = make(&engine, &caller, steps).await;
        let mut timed = Instant::now();
        let mut next = engine
            .next_step(&caller, plan, None, false)
            .await
            .expect("a step");
        if !fused {
            each.push(timed.elapsed());
        }
        while let Next::Started(step) = next {
            timed = Instant::now();
            let submitted = engine.submit(&caller, result(&step, fused)).await;
            let submitted = submitted.expect("an accepted result");
            each.push(timed.elapsed());
            next = match submitted.next_step {
                Some(next) => next,
                None if submitted.plan_status.is_terminal() => break,
                None => {
                    timed = Instant::now();
                    let next = engine.next_step(&caller, plan, None, false).await;
                    each.push(timed.elapsed());
                    next.expect("a step")
                }
            };
            if Instant::now() >= ends && steps > 10 {
                return each;
            }
        }
        if Instant::now() >= ends {
            return each;
        }
    }
}

async fn make(engine: &Engine, caller: &Caller, steps: usize) -> onward_core::PlanId {
    let spec = |_| StepSpec::new(engine.fresh_step(), StepType::Custom, "Do the next thing.");
    let steps = (0..steps).map(spec).collect();
    let plan = CreatePlan::new(engine.fresh_plan(), "Bench", "How fast?", steps);
    let created = engine.create_plan(caller, plan, None).await;
    created.expect("a plan").plan
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
