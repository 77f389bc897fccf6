//! Tasks of MCP clients: stored with the change that they follow, visible to their caller only, and
//! ended once.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::event::Decision;
use onward_core::id::TaskId;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::retention::Retention;
use onward_engine::step::{OpenedReview, ReviewDecision, ReviewRequest};
use onward_engine::task::{ReviewState, TaskWait};
use onward_engine::{Caller, Engine, Error, ObjectKind, Task, TaskOutcome, TaskPhase};
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::on_both_databases;

const TOOL: &str = "request_user_review";

async fn review_as_task(harness: &Harness, step: &AssignedStep) -> (TaskId, OpenedReview) {
    let question = ReviewRequest {
        step: step.step,
        summary: "It is the Moon.".to_owned(),
        questions: Vec::new(),
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: Some(step.token.clone()),
        session: None,
    };
    let (engine, id) = (&harness.engine, harness.engine.new_task_id());
    let opened = engine.request_review_as_task(&harness.me, question, TOOL, id);
    (id, opened.await.unwrap())
}

async fn decide(
    harness: &Harness,
    step: &AssignedStep,
    decision: Decision,
    feedback: Option<&str>,
) {
    let decision = ReviewDecision::new(step.step, decision, feedback.map(str::to_owned));
    let decided = harness.engine.decide_review(&harness.me, decision).await;
    decided.unwrap();
}

async fn wait_as_task(harness: &Harness, plan: PlanId) -> Task {
    let state = json!({ "waits": true });
    let task = harness
        .engine
        .create_task(&harness.me, "get_next_step", Some(plan), state);
    task.await.unwrap()
}

/// Requests the next step for the task. The task ends when a step is assigned.
async fn attempt(engine: &Engine, caller: &Caller, id: TaskId, plan: PlanId) -> Task {
    let wait = TaskWait {
        plan,
        session: None,
        include_stalled: false,
        labels: None,
    };
    let result = |next: &NextStep| {
        if let NextStep::Started(step) = next {
            Some(json!({ "stepId": step.step.to_string() }))
        } else {
            None
        }
    };
    let task = engine.next_step_of_task(caller, id, wait, result).await;
    task.unwrap()
}

fn is_unknown(task: Result<Task, Error>) -> bool {
    matches!(
        task,
        Err(Error::NotFound {
            kind: ObjectKind::Task,
            ..
        })
    )
}

fn result(task: &Task) -> &Value {
    let TaskPhase::Ended(TaskOutcome::Completed(result)) = &task.phase else {
        panic!("not completed: {:?}", task.phase);
    };
    result
}

async fn a_review_and_its_task_are_stored_together(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let (id, opened) = review_as_task(harness, &step).await;
    let task = harness.engine.task(&harness.me, id).await.unwrap();
    assert_eq!((task.plan, task.version), (Some(plan.id), 1));
    assert_eq!(
        task.phase,
        TaskPhase::Active(json!({
            "stepId": step.step.to_string(),
            "reviewId": opened.review.to_string(),
        }))
    );
    // A repeated request follows the same review.
    let (second, again) = review_as_task(harness, &step).await;
    assert_eq!(again, opened);
    let second = harness.engine.task(&harness.me, second).await.unwrap();
    assert_eq!(second.phase, task.phase);
    // A rejected request stores no task.
    decide(harness, &step, Decision::Approve, None).await;
    let (engine, rejected) = (&harness.engine, harness.engine.new_task_id());
    let question = ReviewRequest {
        step: step.step,
        summary: "Again.".to_owned(),
        questions: Vec::new(),
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: None,
        session: None,
    };
    let refused = engine.request_review_as_task(&harness.me, question, TOOL, rejected);
    assert!(refused.await.is_err());
    assert!(is_unknown(engine.task(&harness.me, rejected).await));
}

async fn the_state_of_a_review_is_that_of_the_decision_on_it(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    let (engine, me) = (&harness.engine, &harness.me);
    let (_, first) = review_as_task(harness, &step).await;
    let open = engine
        .review_state(me, step.step, first.review)
        .await
        .unwrap();
    assert!(matches!(open, ReviewState::Open(review) if review.id == first.review));
    decide(harness, &step, Decision::Modify, Some("Louder")).await;
    let (_, second) = review_as_task(harness, &step).await;
    decide(harness, &step, Decision::Skip, None).await;
    for (review, expected, status) in [
        (first.review, Decision::Modify, "in_progress"),
        (second.review, Decision::Skip, "skipped"),
    ] {
        let state = engine.review_state(me, step.step, review).await.unwrap();
        let ReviewState::Decided(decision, response) = state else {
            panic!("not decided: {state:?}");
        };
        assert_eq!(
            (decision, response.step_status.as_str()),
            (expected, status)
        );
    }
    // A review ends with its plan.
    let step = harness.claim(plan.id).await;
    let (_, third) = review_as_task(harness, &step).await;
    engine.abandon_plan(me, plan.id, None).await.unwrap();
    let state = engine
        .review_state(me, step.step, third.review)
        .await
        .unwrap();
    assert!(matches!(state, ReviewState::Withdrawn(_)), "{state:?}");
}

async fn only_its_caller_sees_a_task(harness: &Harness) {
    let plan = harness.plan(1).await;
    let task = wait_as_task(harness, plan.id).await;
    let colleague = Caller {
        name: "colleague".to_owned(),
        ..harness.me.clone()
    };
    let stranger = Caller {
        name: harness.me.name.clone(),
        ..harness.create_tenant("tasks").await
    };
    let engine = &harness.engine;
    for other in [colleague, stranger] {
        assert!(is_unknown(engine.task(&other, task.id).await));
        let ended = engine.end_task(&other, task.id, TaskOutcome::Cancelled);
        assert!(is_unknown(ended.await));
        let changed = engine.change_task(&other, &task, json!({})).await;
        assert!(
            matches!(changed, Err(Error::NotFound { .. })),
            "{changed:?}"
        );
    }
    assert_eq!(engine.task(&harness.me, task.id).await.unwrap(), task);
}

async fn a_task_ends_once(harness: &Harness) {
    let plan = harness.plan(1).await;
    let (engine, me) = (&harness.engine, &harness.me);
    let task = wait_as_task(harness, plan.id).await;
    let changed = engine.change_task(me, &task, json!(1)).await.unwrap();
    let changed = changed.expect("the version matches");
    assert_eq!(changed.version, 2);
    assert_eq!(engine.change_task(me, &task, json!(2)).await.unwrap(), None);
    harness.advance(Duration::from_secs(1));
    let ended = engine.end_task(me, task.id, TaskOutcome::Completed(json!({ "n": 1 })));
    let ended = ended.await.unwrap();
    assert_eq!(ended.updated_at, harness.now());
    harness.advance(Duration::from_secs(1));
    for outcome in [TaskOutcome::Cancelled, TaskOutcome::Failed(json!({}))] {
        let again = engine.end_task(me, task.id, outcome).await.unwrap();
        assert_eq!(again, ended);
    }
    assert_eq!(
        engine.change_task(me, &changed, json!(3)).await.unwrap(),
        None
    );
    assert_eq!(attempt(engine, me, task.id, plan.id).await, ended);
    // The ended task claimed nothing.
    harness.claim(plan.id).await;
}

async fn concurrent_polls_of_one_task_claim_one_step(harness: &Harness) {
    let plan = harness.plan(8).await;
    let task = wait_as_task(harness, plan.id).await;
    let other = harness.another_engine().await;
    let mut polls = tokio::task::JoinSet::new();
    for number in 0..8 {
        let engine = if number % 2 == 0 {
            &harness.engine
        } else {
            &other
        };
        let (engine, me, id) = (engine.clone(), harness.me.clone(), task.id);
        polls.spawn(async move { attempt(&engine, &me, id, plan.id).await });
    }
    let polled = polls.join_all().await;
    let first = polled.first().map(result);
    assert!(polled.iter().all(|task| Some(result(task)) == first));
    let statuses = harness.step_statuses(plan.id).await;
    let claimed = statuses.iter().filter(|status| **status == "in_progress");
    assert_eq!(claimed.count(), 1);
    other.close().await;
}

async fn tasks_are_deleted_with_their_plan_or_with_the_request_log(harness: &Harness) {
    let plan = harness.plan(1).await;
    let (engine, me) = (&harness.engine, &harness.me);
    let of_plan = wait_as_task(harness, plan.id).await.id;
    let without_plan = engine.create_task(me, "extract_data", None, json!({}));
    let without_plan = without_plan.await.unwrap().id;
    let day = Duration::from_secs(24 * 60 * 60);
    harness.advance(2 * day);
    let retention = Retention {
        tool_calls: Some(day),
        ..Retention::default()
    };
    engine.apply_retention(&me.tenant, retention).await.unwrap();
    assert!(is_unknown(engine.task(me, without_plan).await));
    engine.task(me, of_plan).await.unwrap();
    engine.delete_plan(me, plan.id).await.unwrap();
    assert!(is_unknown(engine.task(me, of_plan).await));
    let missing = engine.create_task(me, "get_next_step", Some(plan.id), json!({}));
    assert!(matches!(missing.await, Err(Error::PlanNotFound(_))));
}

async fn verify_finds_a_corrupt_task(harness: &Harness) {
    let plan = harness.plan(1).await;
    wait_as_task(harness, plan.id).await;
    harness.corrupt(&format!(
        "UPDATE tasks SET state = 'x' WHERE tenant_id = '{}'",
        harness.me.tenant
    ));
    let checked = harness.engine.verify(&harness.me).await.unwrap();
    assert!(
        checked.inconsistencies[0].message.contains("`tasks`"),
        "{checked:?}"
    );
}

on_both_databases![
    a_review_and_its_task_are_stored_together,
    the_state_of_a_review_is_that_of_the_decision_on_it,
    only_its_caller_sees_a_task,
    a_task_ends_once,
    concurrent_polls_of_one_task_claim_one_step,
    tasks_are_deleted_with_their_plan_or_with_the_request_log,
    verify_finds_a_corrupt_task,
];
