//! Callers that advance plans through the engine for a given time, each on separate plans.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onward_core::command::{CreatePlan, StepSpec};
use onward_core::step::StepResult;
use onward_core::{PlanId, StepType};
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::submit::Submission;
use onward_engine::{Caller, Engine};

use onward_testbed::bench::{Samples, cpu};

/// Duration of the warm-up, which also estimates how many plans are needed.
const WARM_UP: Duration = Duration::from_millis(200);

/// Maximum number of rounds in which a workload runs.
pub(crate) const ROUNDS: usize = 10;

/// Number of concurrent tasks that create plans.
const CONCURRENCY: usize = 8;

/// Plans created before the measurement: the unit is a step, not a plan.
pub(crate) struct Workload {
    plans: PlanQueue,
    callers: usize,
    claim_next: bool,
    duration: Duration,
}

impl Workload {
    /// Creates enough plans with this many steps for the callers.
    pub(crate) async fn prepare(
        engine: &Engine,
        callers: usize,
        steps: usize,
        claim_next: bool,
        duration: Duration,
    ) -> Self {
        let mut workload = Self {
            plans: create_plans(engine, callers * 40, steps.min(10)).await,
            callers,
            claim_next,
            duration: WARM_UP,
        };
        let warm = workload.run(engine).await;
        let calls_per_plan = if claim_next { steps } else { 2 * steps };
        let calls = warm.per_second() * duration.as_secs_f64() * 1.5;
        // Each round leaves one unfinished plan per caller.
        let enough = calls as usize / calls_per_plan + ROUNDS * callers;
        workload.plans = create_plans(engine, enough, steps).await;
        workload.duration = duration;
        workload
    }

    /// Runs all callers concurrently.
    pub(crate) async fn run(&self, engine: &Engine) -> Samples {
        self.run_for(engine, self.duration).await
    }

    /// Runs all callers concurrently for this time, on plans that no earlier run has used.
    pub(crate) async fn run_for(&self, engine: &Engine, duration: Duration) -> Samples {
        let (began, cpu_before) = (Instant::now(), cpu(std::process::id()));
        let deadline = began + duration;
        let tasks: Vec<_> = (0..self.callers)
            .map(|_| {
                let plans = Arc::clone(&self.plans);
                tokio::spawn(run_caller(engine.clone(), plans, self.claim_next, deadline))
            })
            .collect();
        let mut total = Samples::default();
        for task in tasks {
            let samples: Samples = task.await.expect("caller finished");
            total.latencies.extend(samples.latencies);
            total.steps += samples.steps;
        }
        total.elapsed = began.elapsed();
        total.cpu = cpu(std::process::id()).saturating_sub(cpu_before);
        total
    }
}

type PlanQueue = Arc<Mutex<Vec<PlanId>>>;

/// Completes all plans with one caller.
pub(crate) async fn complete_all(engine: &Engine, plans: PlanQueue, claim_next: bool) {
    let far_future = Instant::now() + Duration::from_secs(3600);
    run_caller(engine.clone(), plans, claim_next, far_future).await;
}

/// Creates plans with this many steps, several concurrently.
pub(crate) async fn create_plans(engine: &Engine, plans: usize, steps: usize) -> PlanQueue {
    let create_some = |engine: Engine, plans: usize| async move {
        let caller = Caller::local("bench");
        let mut created = Vec::with_capacity(plans);
        for _ in 0..plans {
            created.push(create_plan(&engine, &caller, steps).await);
        }
        created
    };
    let tasks: Vec<_> = (0..CONCURRENCY)
        .map(|task| tokio::spawn(create_some(engine.clone(), (plans + task) / CONCURRENCY)))
        .collect();
    let mut created = Vec::with_capacity(plans);
    for task in tasks {
        created.extend(task.await.expect("plans created"));
    }
    Arc::new(Mutex::new(created))
}

/// Works on one plan after another until the deadline, or until no plans are left.
async fn run_caller(
    engine: Engine,
    plans: PlanQueue,
    claim_next: bool,
    deadline: Instant,
) -> Samples {
    let caller = Caller::local("bench");
    let mut samples = Samples::default();
    let next_plan = || plans.lock().expect("lock not poisoned").pop();
    while let Some(plan) = next_plan() {
        let mut started = Instant::now();
        let next = engine.next_step(&caller, plan, None, false).await;
        let mut next = next.expect("step assigned");
        samples.latencies.push(started.elapsed());
        while let NextStep::Started(step) = next {
            started = Instant::now();
            let submitted = engine.submit(&caller, result(&step, claim_next)).await;
            let submitted = submitted.expect("result accepted");
            samples.latencies.push(started.elapsed());
            samples.steps += 1;
            if started >= deadline {
                return samples;
            }
            next = match submitted.next_step {
                Some(next) => next,
                None if submitted.plan_status.is_terminal() => break,
                None => {
                    started = Instant::now();
                    let next = engine.next_step(&caller, plan, None, false).await;
                    samples.latencies.push(started.elapsed());
                    next.expect("step assigned")
                }
            };
        }
    }
    samples
}

async fn create_plan(engine: &Engine, caller: &Caller, steps: usize) -> PlanId {
    let spec = |_| StepSpec::new(engine.new_step_id(), StepType::Custom, "Do the next thing.");
    let steps = (0..steps).map(spec).collect();
    let plan = CreatePlan::new(engine.new_plan_id(), "Bench", "How fast?", steps);
    let created = engine.create_plan(caller, plan, None).await;
    created.expect("plan created").created.plan
}

fn result(step: &AssignedStep, claim_next: bool) -> Submission {
    Submission {
        step: step.step,
        result: StepResult::from_summary("The step was completed with this result."),
        token: Some(step.token.clone()),
        session: None,
        claim_next,
    }
}
