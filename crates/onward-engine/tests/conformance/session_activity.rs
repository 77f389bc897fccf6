//! Activity of a session, as hooks, the proxy and harnesses report it: it counts as activity on the
//! steps that the session holds.

use std::time::Duration;

use onward_core::call::Limit;
use onward_core::command::CreatePlan;
use onward_core::id::SessionId;
use onward_core::turn::LoopControl;
use onward_core::{PlanId, Timestamp};
use onward_engine::next_step::AssignedStep;
use onward_engine::session::{Fingerprint, HookSource, ObservedStep};
use onward_engine::tool_calls::{Approval, CallRef, Change, InitialState, NewCall};
use onward_engine::{CallKey, SeenClaim};
use serde_json::json;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::claimed_step;
use crate::sessions::{call, control, single_call, source, step};

const THRESHOLD: Duration = Duration::from_secs(4);

impl Harness {
    async fn plan_with_short_threshold(&self) -> PlanId {
        let mut draft: CreatePlan = self.draft(2);
        draft.stall_threshold = Some(THRESHOLD);
        let created = self.engine.create_plan(&self.me, draft, None).await;
        created.unwrap().created.plan
    }

    async fn claim_in(&self, plan: PlanId, session: Option<&str>) -> AssignedStep {
        let session = session.map(SessionId::new);
        let next = self.engine.next_step(&self.me, plan, session, false).await;
        claimed_step(next.unwrap())
    }

    async fn last_progress_at(&self, plan: PlanId) -> Option<Timestamp> {
        let current = self.status(plan).await.current;
        current.expect("a step is in progress").last_progress_at
    }
}

async fn every_event_of_a_session_is_a_sign_of_life(harness: &Harness) {
    let plan = harness.plan_with_short_threshold().await;
    harness.claim_in(plan, Some("one")).await;
    let (engine, me) = (&harness.engine, &harness.me);
    let key = || CallKey {
        session: "one".to_owned(),
        agent: String::new(),
        turn: 1,
        position: 1,
    };
    let new_call = || NewCall {
        grace: None,
        id: Some("call".to_owned()),
        tool: "Bash".to_owned(),
        input: json!({}),
        limit: Limit::Unspecified,
        owner: None,
        batch: None,
    };
    let call_ref = || CallRef {
        id: Some("call".to_owned()),
        tool: "Bash".to_owned(),
        input: json!({}),
    };
    let events = [
        "begin_session",
        "begin_turn",
        "admit_call",
        "record_approval",
        "record_call",
        "change_call",
        "observe_step",
        "record_results",
        "requires_text",
        "record_task_message",
        "end_turn",
    ];
    for event in events {
        harness.advance(THRESHOLD / 4);
        let now = harness.now();
        match event {
            "begin_session" => drop(
                engine
                    .begin_session(me, source(), Some("startup"))
                    .await
                    .unwrap(),
            ),
            "begin_turn" => harness.begin_turn(source()).await,
            "admit_call" => {
                let admitted = engine.admit_call(me, source(), new_call(), true, control());
                admitted.await.unwrap();
            }
            "record_approval" => {
                let approval = Approval::Pending;
                let recorded = engine.record_approval(me, source(), call_ref(), approval);
                recorded.await.unwrap();
            }
            "record_call" => {
                let begins = InitialState::Requested;
                let recorded = engine.record_call(me, source(), None, new_call(), begins);
                recorded.await.unwrap();
            }
            "change_call" => {
                engine.change_call(me, key(), Change::Start).await.unwrap();
            }
            "observe_step" => {
                let idle = step(vec![call("idle", "true", "")]);
                let observed = engine.observe_step(me, source(), idle, control());
                observed.await.unwrap();
            }
            "record_results" => {
                let recorded = engine.record_results(me, source(), Vec::new());
                recorded.await.unwrap();
            }
            "requires_text" => {
                let source = source();
                let requires = engine.requires_text(me, &source, control());
                requires.await.unwrap();
            }
            "record_task_message" => {
                let (tree, control) = (Fingerprint::Unavailable, LoopControl::default());
                let recorded = engine.record_task_message(me, source(), None, tree, control);
                recorded.await.unwrap();
            }
            _ => engine.end_turn(me, source()).await.unwrap(),
        }
        assert_eq!(harness.last_progress_at(plan).await, Some(now), "{event}");
    }
}

async fn activity_is_recorded_at_most_once_per_quarter_of_the_threshold(harness: &Harness) {
    let plan = harness.plan_with_short_threshold().await;
    harness.claim_in(plan, Some("one")).await;
    for _ in 0..40 {
        harness.advance(Duration::from_millis(700));
        harness.begin_turn(source()).await;
    }
    let events = harness.audit_trail(plan).await;
    // 28 seconds, one event every 700 ms: the first event and every second one are recorded.
    assert_eq!(events.len(), 3 + 20, "{events:?}");
}

async fn counts_for_all_steps_of_the_session_and_no_others(harness: &Harness) {
    let plans = [
        harness.plan_with_short_threshold().await,
        harness.plan_with_short_threshold().await,
    ];
    let others = harness.plan_with_short_threshold().await;
    for plan in plans {
        harness.claim_in(plan, Some("one")).await;
    }
    harness.claim_in(others, Some("other")).await;
    harness.advance(THRESHOLD / 2);
    harness.begin_turn(source()).await;
    for plan in plans {
        assert_eq!(harness.last_progress_at(plan).await, Some(harness.now()));
    }
    assert_eq!(harness.last_progress_at(others).await, None);
    // The end of a session does not count as activity.
    let seen_at = harness.now();
    harness.advance(THRESHOLD / 2);
    harness
        .engine
        .end_session(&harness.me, source())
        .await
        .unwrap();
    assert_eq!(harness.last_progress_at(plans[0]).await, Some(seen_at));
}

async fn counts_for_a_claim_seen_in_a_result(harness: &Harness) {
    let plan = harness.plan_with_short_threshold().await;
    // An agent that passes no session id, or another one than its hooks.
    let first = harness.claim_in(plan, None).await;
    let second = harness.claim_in(plan, Some("chosen by the agent")).await;
    let claims = [&first, &second].map(|claimed| SeenClaim {
        step: claimed.step,
        token: claimed.token.clone(),
    });
    let observed = ObservedStep {
        claims: claims.to_vec(),
        ..single_call(call("next", "true", ""))
    };
    harness.observe(source(), observed).await;
    harness.advance(THRESHOLD / 2);
    // A subagent works for the agent.
    let subagent = HookSource {
        subagent: "helper".to_owned(),
        ..source()
    };
    harness.begin_turn(subagent.clone()).await;
    let seen = harness.audit_trail(plan).await;
    let seen = seen.iter().filter(|event| *event == "step_progressed seen");
    assert_eq!(seen.count(), 2);
    // After a takeover, the token no longer counts.
    harness.advance(THRESHOLD * 5 / 4 + Duration::from_millis(1));
    let taken_over = harness
        .engine
        .next_step(&harness.me, plan, None, true)
        .await;
    let taken_over = claimed_step(taken_over.unwrap());
    assert_eq!((taken_over.step, taken_over.attempt), (first.step, 2));
    harness.advance(THRESHOLD / 2);
    harness.begin_turn(subagent).await;
    assert_eq!(harness.last_progress_at(plan).await, None);
}

on_both_databases!(
    every_event_of_a_session_is_a_sign_of_life,
    activity_is_recorded_at_most_once_per_quarter_of_the_threshold,
    counts_for_all_steps_of_the_session_and_no_others,
    counts_for_a_claim_seen_in_a_result,
);
