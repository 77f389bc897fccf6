//! A plan that outlives the agents that work on it: two agents on an SQLite file, one of which dies.
//!
//! What you see: a branch that saves work, a step that falls silent and is taken over under the next
//! attempt, the dead agent's late result, which is kept, and a trail that replays to the same rows.
//! The file stays: `cargo run -- --database FILE plan show PLAN` looks at it afterwards.
//!
//! The clock is the example's own, so that half an hour passes at once.

#![allow(clippy::print_stdout, reason = "an example prints what it found")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef, StepSpec};
use onward_core::id::SessionId;
use onward_core::step::StepResult;
use onward_core::{PlanId, StepType, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::next::{Handed, Next};
use onward_engine::submit::Submission;
use onward_engine::world::{System, World};
use onward_engine::{Address, Caller, Engine, Error};

/// The machine's world, some time later.
struct Later(AtomicI64);

impl Later {
    /// Time passes, up to the instant that the sweep wants to be woken at.
    fn pass_until(&self, at: Timestamp) {
        let millis = at.as_millis() - self.now().as_millis();
        self.0.fetch_add(millis.max(0), Ordering::SeqCst);
        let minutes = (millis + 30_000) / 60_000;
        if minutes > 0 {
            println!("… {minutes} minutes pass …");
        }
    }
}

impl World for Later {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(System.now().as_millis() + self.0.load(Ordering::SeqCst))
    }

    fn dice(&self, bytes: &mut [u8]) {
        System.dice(bytes);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let file = std::env::temp_dir().join(format!("onward-{}.db", std::process::id()));
    let world = Arc::new(Later(AtomicI64::new(0)));
    let settings = Settings {
        world: world.clone(),
        ..Settings::default()
    };
    let engine = Engine::open(&Address::File(file.clone()), settings).await?;
    let you = Caller::local("example");

    let plan = make(&engine, &you).await?;
    println!("plan {plan}");

    // Ada finds so much that the second search is not needed.
    let first = claim(&engine, &you, plan, "ada", false).await?;
    let done = submit(&engine, &you, &first, "ada", "Nine good sources.", 0.9).await?;
    println!(
        "ada: step {} done; the plan is {} % through",
        first.order, done.progress
    );

    // Bob takes the next step on, and is never heard of again …
    let lost = claim(&engine, &you, plan, "bob", false).await?;
    println!("bob: takes on step {}, and closes the laptop", lost.order);
    let mut watcher = engine.watcher();
    let mut round = engine.sweep(&mut watcher).await?;
    while let (Some(next_at), true) = (round.next_at, round.acted_on.is_empty()) {
        world.pass_until(next_at);
        round = engine.sweep(&mut watcher).await?;
    }
    let status = engine.status(&you, plan, None).await?;
    for stalled in &status.stalled {
        println!(
            "sweep: step {} is silent for {} minutes; the plan is marked `{}`",
            stalled.order,
            stalled.elapsed.as_secs() / 60,
            status.sheet.head.status()
        );
    }

    // … so Ada takes it over, under the next attempt. What Bob sends then is kept, not applied.
    let mut step = claim(&engine, &you, plan, "ada", true).await?;
    println!(
        "ada: takes over step {}, attempt {}",
        step.order, step.attempt
    );
    let late = submit(&engine, &you, &lost, "bob", "Sorry, I was on a plane.", 0.5).await;
    if let Err(why) = late {
        let kept = why.kept().map(|id| id.to_string()).unwrap_or_default();
        println!("bob: refused: {why}; what he found is kept as artifact {kept}");
    }
    loop {
        submit(&engine, &you, &step, "ada", "Done.", 0.8).await?;
        let Next::Started(next) = engine.next_step(&you, plan, None, false).await? else {
            break;
        };
        step = *next;
    }

    let (events, faults) = engine.verify_plan(&you, plan).await?;
    println!(
        "the trail has {events} events and replays to the rows: {}",
        faults.is_empty()
    );
    engine.close().await;
    println!(
        "look at it: cargo run -q -- --database {} plan show {plan}",
        file.display()
    );
    Ok(())
}

async fn make(engine: &Engine, you: &Caller) -> Result<PlanId, Error> {
    let step = |kind, text: &str| StepSpec::new(engine.fresh_step(), kind, text);
    let steps = vec![
        step(StepType::Search, "Find three good sources."),
        step(StepType::Search, "Look again, in other languages."),
        step(StepType::Analyze, "Say what they agree on."),
        step(StepType::Synthesize, "Write the answer."),
    ];
    let mut plan = CreatePlan::new(
        engine.fresh_plan(),
        "Tides",
        "Why are there two tides a day?",
        steps,
    );
    plan.branches.push(BranchSpec {
        id: engine.fresh_branch(),
        after_order: 1,
        condition: "confidence >= 0.8".to_owned(),
        action: ActionSpec::SkipTo(StepRef::Order(3)),
    });
    Ok(engine.create_plan(you, plan, None).await?.created.plan)
}

async fn claim(
    engine: &Engine,
    you: &Caller,
    plan: PlanId,
    agent: &str,
    include_stalled: bool,
) -> Result<Handed, Error> {
    let session = Some(SessionId::new(agent));
    let next = engine
        .next_step(you, plan, session, include_stalled)
        .await?;
    let Next::Started(step) = next else {
        return Err(Error::Conflict {
            message: "there is nothing to do".to_owned(),
            hint: "look at the plan",
        });
    };
    Ok(*step)
}

async fn submit(
    engine: &Engine,
    you: &Caller,
    step: &Handed,
    agent: &str,
    summary: &str,
    confidence: f64,
) -> Result<onward_engine::submit::Submitted, Error> {
    let submission = Submission {
        step: step.step,
        result: StepResult {
            confidence: Some(confidence),
            ..StepResult::of_summary(summary)
        },
        token: Some(step.token.clone()),
        session: Some(SessionId::new(agent)),
        claim_next: false,
    };
    engine.submit(you, submission).await
}
