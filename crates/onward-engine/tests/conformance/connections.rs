//! The session of a call over a stdio connection, and its steps after the session has ended.

use onward_core::attention::Word;
use onward_core::call::Owner;
use onward_core::event::Decision;
use onward_core::id::SessionId;
use onward_core::{PlanId, StepStatus};
use onward_engine::next_step::{AssignedStep, NextStep, Worker};
use onward_engine::session::HookSource;
use onward_engine::step::ReviewDecision;
use onward_engine::{Caller, Connection};

use crate::harness::Harness;
use crate::operations::claimed_step;
use crate::sessions::source;

const TOOL: &str = "get_next_step";

/// An agent's process with its stdio server.
struct Agent {
    process: Owner,
    caller: Caller,
}

impl Harness {
    /// Starts an agent with the process id `process`, and its server with the next one.
    fn start_agent(&self, process: u32) -> Agent {
        let agent = self.environment.start_process(process, 1);
        let server = self.environment.start_process(process + 1, 1);
        let random = u64::from(process).to_be_bytes();
        let connection = Connection::new(random, Some(server), Some(agent.clone()));
        let caller = Caller {
            connection: Some(connection),
            ..self.me.clone()
        };
        Agent {
            process: agent,
            caller,
        }
    }

    fn kill(&self, process: u32) {
        self.environment.machine().processes.remove(&process);
    }

    async fn session_of(&self, caller: &Caller, reported: Option<&str>) -> Option<SessionId> {
        let reported = reported.map(SessionId::new);
        let session = self.engine.session_of(caller, reported, TOOL).await;
        session.unwrap()
    }

    /// The next step for the session of this caller.
    async fn next_of(&self, caller: &Caller, plan: PlanId, include_stalled: bool) -> NextStep {
        let session = self.session_of(caller, None).await;
        let next = self
            .engine
            .next_step(caller, plan, session, include_stalled);
        next.await.unwrap()
    }

    async fn claimed_by(&self, caller: &Caller, plan: PlanId) -> AssignedStep {
        claimed_step(self.next_of(caller, plan, false).await)
    }

    async fn word(&self, plan: PlanId) -> Word {
        self.status(plan).await.attention.word
    }

    /// The hooks of this agent report an event of the session.
    async fn hook(&self, agent: &Agent, session: &str) -> HookSource {
        let source = HookSource {
            session: session.to_owned(),
            process: Some(agent.process.clone()),
            ..source()
        };
        self.begin_turn(source.clone()).await;
        source
    }
}

async fn the_session_is_the_reported_one_then_that_of_hooks_then_the_connection(harness: &Harness) {
    let agent = harness.start_agent(100);
    let connection = harness.session_of(&agent.caller, None).await.unwrap();
    assert_eq!(
        harness.session_of(&agent.caller, None).await,
        Some(connection)
    );
    harness.hook(&agent, "hooked").await;
    assert_eq!(
        harness.session_of(&agent.caller, None).await,
        Some(SessionId::new("hooked"))
    );
    assert_eq!(
        harness.session_of(&agent.caller, Some("mine")).await,
        Some(SessionId::new("mine"))
    );
    assert_eq!(harness.session_of(&harness.me, None).await, None);
}

async fn a_second_request_returns_the_own_step_again(harness: &Harness) {
    let plan = harness.plan(3).await.id;
    let agent = harness.start_agent(100);
    let first = harness.claimed_by(&agent.caller, plan).await;
    let second = harness.claimed_by(&agent.caller, plan).await;
    assert_eq!((first.order, second.order), (1, 2));
    assert_eq!(second.held.len(), 1, "the response names the other step");
    assert_eq!(second.held[0].step, first.step);
    harness.claimed_by(&agent.caller, plan).await;
    let again = harness.claimed_by(&agent.caller, plan).await;
    assert!(again.resumed && !first.resumed);
    assert_eq!(
        (again.step, again.attempt, &again.token, &again.instructions),
        (first.step, 1, &first.token, &first.instructions)
    );
    let events = harness.audit_trail(plan).await.len();
    harness.claimed_by(&agent.caller, plan).await;
    let events = harness.audit_trail(plan).await.len() - events;
    assert_eq!(events, 1, "it is activity, and no new claim");
}

async fn a_caller_without_a_session_does_not_receive_a_step_of_another_one(harness: &Harness) {
    let plan = harness.plan(1).await.id;
    let agent = harness.start_agent(100);
    harness.claimed_by(&agent.caller, plan).await;
    for include_stalled in [false, true] {
        let next = harness.next_of(&harness.me, plan, include_stalled).await;
        assert!(matches!(next, NextStep::NoPendingSteps { .. }), "{next:?}");
    }
}

async fn a_running_subagent_keeps_the_step_of_its_session(harness: &Harness) {
    let plan = harness.plan(1).await.id;
    let agent = harness.start_agent(100);
    let source = harness.hook(&agent, "one").await;
    let claimed = harness.claimed_by(&agent.caller, plan).await;
    let subagent = HookSource {
        subagent: "worker".to_owned(),
        ..source
    };
    harness.begin_turn(subagent.clone()).await;
    let next = harness.next_of(&agent.caller, plan, false).await;
    let NextStep::NoPendingSteps { held, .. } = next else {
        panic!("{next:?}");
    };
    let held: Vec<_> = held.iter().map(|held| held.step).collect();
    assert_eq!(held, [claimed.step]);
    let engine = &harness.engine;
    engine.end_turn(&harness.me, subagent).await.unwrap();
    assert!(harness.claimed_by(&agent.caller, plan).await.resumed);
}

async fn the_steps_of_an_ended_session_are_taken_over_immediately(harness: &Harness) {
    let plan = harness.plan(2).await.id;
    let monday = harness.start_agent(100);
    let source = harness.hook(&monday, "monday").await;
    let first = harness.claimed_by(&monday.caller, plan).await;
    assert_eq!(harness.word(plan).await, Word::Working);
    harness
        .engine
        .end_session(&harness.me, source)
        .await
        .unwrap();
    assert_eq!(harness.word(plan).await, Word::NoAgent);
    let tuesday = harness.start_agent(200);
    harness.hook(&tuesday, "tuesday").await;
    let second = harness.claimed_by(&tuesday.caller, plan).await;
    assert_eq!(second.order, 2, "pending steps are assigned first");
    assert_eq!(harness.word(plan).await, Word::Working);
    let taken = harness.claimed_by(&tuesday.caller, plan).await;
    assert_eq!((taken.step, taken.attempt), (first.step, 2));
    assert_ne!(taken.token, first.token);
    assert!(!taken.resumed);
}

async fn a_session_that_ends_during_a_review_leaves_the_step_to_the_next_one(harness: &Harness) {
    let plan = harness.plan(1).await.id;
    let monday = harness.start_agent(100);
    let source = harness.hook(&monday, "monday").await;
    let first = harness.claimed_by(&monday.caller, plan).await;
    harness.request_review(&first).await.unwrap();
    let ended = harness.engine.end_session(&harness.me, source);
    ended.await.unwrap();
    assert_eq!(harness.word(plan).await, Word::NeedsYou);
    let feedback = Some("shorter".to_owned());
    let modify = ReviewDecision::new(first.step, Decision::Modify, feedback);
    let decided = harness.engine.decide_review(&harness.me, modify);
    decided.await.unwrap();
    assert_eq!(harness.word(plan).await, Word::NoAgent);
    let tuesday = harness.start_agent(200);
    let taken = harness.claimed_by(&tuesday.caller, plan).await;
    assert_eq!((taken.step, taken.attempt), (first.step, 2));
    assert!(taken.instructions.contains("shorter"));
}

async fn include_stalled_takes_over_the_steps_of_an_ended_session_first(harness: &Harness) {
    let plan = harness.plan(2).await.id;
    let monday = harness.start_agent(100);
    let first = harness.claimed_by(&monday.caller, plan).await;
    harness
        .engine
        .close_connection(&monday.caller)
        .await
        .unwrap();
    let tuesday = harness.start_agent(200);
    let taken = claimed_step(harness.next_of(&tuesday.caller, plan, true).await);
    assert_eq!((taken.step, taken.attempt), (first.step, 2));
}

async fn a_closed_connection_ends_the_sessions_that_it_has_named(harness: &Harness) {
    let plans = [harness.plan(1).await.id, harness.plan(1).await.id];
    let agent = harness.start_agent(100);
    harness.claimed_by(&agent.caller, plans[0]).await;
    let named = harness.session_of(&agent.caller, Some("named")).await;
    let engine = &harness.engine;
    let claimed = engine.next_step(&agent.caller, plans[1], named, false);
    claimed_step(claimed.await.unwrap());
    engine.close_connection(&agent.caller).await.unwrap();
    for plan in plans {
        assert_eq!(harness.word(plan).await, Word::NoAgent);
    }
}

async fn a_session_that_is_used_elsewhere_survives_its_first_connection(harness: &Harness) {
    let plan = harness.plan(1).await.id;
    let (one, other) = (harness.start_agent(100), harness.start_agent(200));
    let session = harness.session_of(&one.caller, Some("shared")).await;
    let engine = &harness.engine;
    let claimed = engine.next_step(&one.caller, plan, session, false).await;
    let first = claimed_step(claimed.unwrap());
    let session = harness.session_of(&other.caller, Some("shared")).await;
    engine.close_connection(&one.caller).await.unwrap();
    assert_eq!(harness.word(plan).await, Word::Working);
    let next = engine.next_step(&other.caller, plan, session, false).await;
    let again = claimed_step(next.unwrap());
    assert_eq!((again.attempt, again.token), (1, first.token));
}

async fn a_session_that_returns_keeps_its_steps(harness: &Harness) {
    let plan = harness.plan(1).await.id;
    let monday = harness.start_agent(100);
    let session = harness.session_of(&monday.caller, Some("mine")).await;
    let engine = &harness.engine;
    let claimed = engine.next_step(&monday.caller, plan, session, false).await;
    let first = claimed_step(claimed.unwrap());
    engine.close_connection(&monday.caller).await.unwrap();
    assert_eq!(harness.word(plan).await, Word::NoAgent);
    let later = harness.start_agent(200);
    let session = harness.session_of(&later.caller, Some("mine")).await;
    assert_eq!(harness.word(plan).await, Word::Working);
    let again = engine.next_step(&later.caller, plan, session, false).await;
    let again = claimed_step(again.unwrap());
    assert!(again.resumed);
    assert_eq!((again.attempt, again.token), (1, first.token));
}

async fn the_death_of_a_process_frees_its_steps(harness: &Harness) {
    for (hooks, dead) in [(true, 100), (false, 101)] {
        let plan = harness.plan(1).await.id;
        let agent = harness.start_agent(100);
        if hooks {
            harness.hook(&agent, "hooked").await;
        }
        let first = harness.claimed_by(&agent.caller, plan).await;
        harness.kill(dead);
        let next = harness.start_agent(200);
        // No server has noticed it yet: the request does.
        let taken = harness.claimed_by(&next.caller, plan).await;
        assert_eq!((taken.step, taken.attempt), (first.step, 2), "{hooks}");
        harness.kill(100);
        harness.kill(200);
    }
}

async fn a_project_offers_the_steps_of_ended_sessions_after_pending_ones(harness: &Harness) {
    let mut draft = harness.draft(2);
    draft.routing.project_key = Some("tides".to_owned());
    let created = harness.engine.create_plan(&harness.me, draft, None).await;
    let plan = created.unwrap().created.plan;
    let monday = harness.start_agent(100);
    let first = harness.claimed_by(&monday.caller, plan).await;
    let engine = &harness.engine;
    engine.close_connection(&monday.caller).await.unwrap();
    let tuesday = harness.start_agent(200);
    let worker = Worker {
        session: harness.session_of(&tuesday.caller, None).await,
        labels: None,
        include_stalled: false,
    };
    let mut steps = Vec::new();
    for _ in 0..3 {
        let next = engine.next_step_of_project(&tuesday.caller, "tides", worker.clone());
        let step = claimed_step(next.await.unwrap());
        steps.push((step.order, step.attempt, step.resumed));
    }
    assert_eq!(steps[..2], [(2, 1, false), (first.order, 2, false)]);
    assert!(steps[2].2, "its own step again");
}

async fn the_plan_of_a_session_is_known_from_its_first_claim(harness: &Harness) {
    let agent = harness.start_agent(100);
    let plan = harness.plan(1).await.id;
    harness.claimed_by(&agent.caller, plan).await;
    let session = harness.session_of(&agent.caller, None).await.unwrap();
    let engine = &harness.engine;
    let found = engine.plan_of_session(&harness.me, session.as_str()).await;
    assert_eq!(found.unwrap().map(|(plan, _)| plan), Some(plan));
    let listed = engine.list_sessions(&harness.me, 10).await.unwrap();
    let listed = listed
        .iter()
        .find(|line| line.session.id == session.as_str());
    let listed = listed.expect("a connection is a session");
    assert_eq!(
        listed.plan.as_ref().map(|(plan, _)| *plan),
        Some(plan),
        "{listed:?}"
    );
}

async fn a_context_names_the_caller_own_step_and_no_wait(harness: &Harness) {
    let plan = harness.plan(1).await.id;
    let agent = harness.start_agent(100);
    harness.claimed_by(&agent.caller, plan).await;
    let session = harness.session_of(&agent.caller, None).await;
    let engine = &harness.engine;
    let context = async |session| {
        let context = engine.plan_context(&harness.me, plan, session, None);
        context.await.unwrap().next
    };
    assert!(context(session).await.contains("submit_step_result"));
    engine.close_connection(&agent.caller).await.unwrap();
    let next = context(None).await;
    assert!(next.contains("get_next_step"), "{next}");
    assert!(!next.contains("waitMs"), "{next}");
}

async fn a_step_of_an_ended_session_stays_in_progress(harness: &Harness) {
    let plan = harness.plan(1).await.id;
    let agent = harness.start_agent(100);
    let claimed = harness.claimed_by(&agent.caller, plan).await;
    let engine = &harness.engine;
    engine.close_connection(&agent.caller).await.unwrap();
    let status = harness.status(plan).await;
    assert_eq!(
        status.current.map(|step| step.status),
        Some(StepStatus::InProgress)
    );
    let submitted = harness.complete(&claimed, "done").await;
    assert_eq!(submitted.step_status, StepStatus::Completed);
}

crate::on_both_databases![
    the_session_is_the_reported_one_then_that_of_hooks_then_the_connection,
    a_second_request_returns_the_own_step_again,
    a_caller_without_a_session_does_not_receive_a_step_of_another_one,
    a_running_subagent_keeps_the_step_of_its_session,
    the_steps_of_an_ended_session_are_taken_over_immediately,
    a_session_that_ends_during_a_review_leaves_the_step_to_the_next_one,
    include_stalled_takes_over_the_steps_of_an_ended_session_first,
    a_closed_connection_ends_the_sessions_that_it_has_named,
    a_session_that_is_used_elsewhere_survives_its_first_connection,
    a_session_that_returns_keeps_its_steps,
    the_death_of_a_process_frees_its_steps,
    a_project_offers_the_steps_of_ended_sessions_after_pending_ones,
    the_plan_of_a_session_is_known_from_its_first_claim,
    a_context_names_the_caller_own_step_and_no_wait,
    a_step_of_an_ended_session_stays_in_progress,
];
