//! A durable plan: two agents work on an SQLite file, and one of them disconnects.
//!
//! Shows a branch that skips a step, a stalled step that another agent takes over with a new
//! attempt, the disconnected agent's late result, which is stored but not applied, and an audit
//! trail that replays to the stored rows. The database file is kept; inspect it with
//! `cargo run -- --database FILE plan show PLAN`.
//!
//! The example uses a simulated clock, so half an hour passes immediately.

#![allow(clippy::print_stdout, reason = "the example prints its results")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef, StepSpec};
use onward_core::id::SessionId;
use onward_core::step::StepResult;
use onward_core::{PlanId, StepType, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::environment::Environment;
use onward_engine::machine::SystemEnvironment;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::submit::Submission;
use onward_engine::{Address, Caller, Engine, Error};

/// The system environment with a clock that can be advanced.
struct SimulatedClock(AtomicI64);

impl SimulatedClock {
    /// Advances the clock to the sweep's next deadline.
    fn advance_to(&self, at: Timestamp) {
        let millis = at.as_millis() - self.now().as_millis();
        self.0.fetch_add(millis.max(0), Ordering::SeqCst);
        let minutes = (millis + 30_000) / 60_000;
        if minutes > 0 {
            println!("… {minutes} minutes pass …");
        }
    }
}

impl Environment for SimulatedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemEnvironment.now().as_millis() + self.0.load(Ordering::SeqCst))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        SystemEnvironment.fill_random(bytes);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let file = std::env::temp_dir().join(format!("onward-{}.db", std::process::id()));
    let world = Arc::new(SimulatedClock(AtomicI64::new(0)));
    let settings = Settings {
        environment: world.clone(),
        ..Settings::default()
    };
    let engine = Engine::open(&Address::File(file.clone()), settings).await?;
    let caller = Caller::local("example");

    let plan = create_plan(&engine, &caller).await?;
    println!("plan {plan}");

    // Ada's confidence is high, so the branch skips the second search.
    let first = claim(&engine, &caller, plan, "ada", false).await?;
    let done = submit(&engine, &caller, &first, "ada", "Nine sources.", 0.9).await?;
    println!(
        "ada: step {} completed; plan progress {} %",
        first.order, done.progress
    );

    // Bob claims the next step and disconnects.
    let bobs_step = claim(&engine, &caller, plan, "bob", false).await?;
    println!("bob: claims step {} and disconnects", bobs_step.order);
    let mut watcher = engine.watcher();
    let mut round = engine.sweep(&mut watcher).await?;
    while let (Some(next_at), true) = (round.next_at, round.changed.is_empty()) {
        world.advance_to(next_at);
        round = engine.sweep(&mut watcher).await?;
    }
    let status = engine.status(&caller, plan, None).await?;
    for stalled in &status.stalled {
        println!(
            "sweep: step {} has had no activity for {} minutes; plan status is `{}`",
            stalled.order,
            stalled.elapsed.as_secs() / 60,
            status.sheet.head.status()
        );
    }

    // Ada takes over the step with a new attempt. Bob's late result is stored, not applied.
    let mut step = claim(&engine, &caller, plan, "ada", true).await?;
    println!(
        "ada: takes over step {}, attempt {}",
        step.order, step.attempt
    );
    let late = submit(&engine, &caller, &bobs_step, "bob", "Late result.", 0.5).await;
    if let Err(error) = late {
        let artifact = error.kept().map(|id| id.to_string()).unwrap_or_default();
        println!("bob: rejected: {error}; the result is stored as artifact {artifact}");
    }
    loop {
        submit(&engine, &caller, &step, "ada", "Done.", 0.8).await?;
        let NextStep::Started(next) = engine.next_step(&caller, plan, None, false).await? else {
            break;
        };
        step = *next;
    }

    let (events, differences) = engine.verify_plan(&caller, plan).await?;
    println!(
        "the audit trail has {events} events and matches the stored rows: {}",
        differences.is_empty()
    );
    engine.close().await;
    println!(
        "inspect it: cargo run -q -- --database {} plan show {plan}",
        file.display()
    );
    Ok(())
}

async fn create_plan(engine: &Engine, caller: &Caller) -> Result<PlanId, Error> {
    let step = |kind, text: &str| StepSpec::new(engine.new_step_id(), kind, text);
    let steps = vec![
        step(StepType::Search, "Find three sources."),
        step(StepType::Search, "Search in other languages."),
        step(StepType::Analyze, "Summarize what they agree on."),
        step(StepType::Synthesize, "Write the answer."),
    ];
    let mut plan = CreatePlan::new(
        engine.new_plan_id(),
        "Tides",
        "Why are there two tides a day?",
        steps,
    );
    plan.branches.push(BranchSpec {
        id: engine.new_branch_id(),
        after_order: 1,
        condition: "confidence >= 0.8".to_owned(),
        action: ActionSpec::SkipTo(StepRef::Order(3)),
    });
    Ok(engine.create_plan(caller, plan, None).await?.created.plan)
}

async fn claim(
    engine: &Engine,
    caller: &Caller,
    plan: PlanId,
    agent: &str,
    include_stalled: bool,
) -> Result<AssignedStep, Error> {
    let session = Some(SessionId::new(agent));
    let next = engine
        .next_step(caller, plan, session, include_stalled)
        .await?;
    let NextStep::Started(step) = next else {
        return Err(Error::Conflict {
            message: "no step is available".to_owned(),
            hint: "check the plan's status".into(),
        });
    };
    Ok(*step)
}

async fn submit(
    engine: &Engine,
    caller: &Caller,
    step: &AssignedStep,
    agent: &str,
    summary: &str,
    confidence: f64,
) -> Result<onward_engine::submit::SubmitResponse, Error> {
    let submission = Submission {
        step: step.step,
        result: StepResult {
            confidence: Some(confidence),
            ..StepResult::from_summary(summary)
        },
        token: Some(step.token.clone()),
        session: Some(SessionId::new(agent)),
        claim_next: false,
    };
    engine.submit(caller, submission).await
}
