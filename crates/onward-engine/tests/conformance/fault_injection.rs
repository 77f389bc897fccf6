//! Fault injection: the database fails during a call. No partial change is stored, and a retry of
//! the call succeeds.

use onward_core::call::CallStatus;
use onward_core::command::Modification;
use onward_core::id::SessionId;
use onward_engine::Error;
use onward_engine::next_step::NextStep;
use onward_engine::session::HookSource;
use onward_engine::submit::Submission;
use onward_engine::tool_calls::InitialState;
use onward_testbed::Backend;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{claimed_step, document, error, submission_for};
use crate::tool_calls::{call, source};

/// Makes a call with a fault at each of its store operations in turn and retries it after a
/// failure. Returns the number of operations.
async fn with_every_fault(
    harness: &Harness,
    mut call: impl AsyncFnMut() -> Result<(), Error>,
) -> u32 {
    for operation in 0..100 {
        harness.faults.fail_after(operation);
        match call().await {
            Err(err) => {
                assert_eq!(err.code().as_str(), "unavailable", "{err}");
                assert!(!err.hint().is_empty());
                call().await.expect("retry succeeds");
            }
            Ok(()) => assert!(harness.faults.is_pending(), "the fault was ignored"),
        }
        if harness.faults.is_pending() {
            harness.faults.fail_after(u32::MAX);
            return operation;
        }
    }
    panic!("more than 100 operations")
}

async fn a_retried_submission_completes_its_step_once(harness: &Harness) {
    let plan = harness.plan(12).await;
    let mut current = harness.claim(plan.id).await;
    let mut completed_count = 0;
    let operations = with_every_fault(harness, async || {
        let submission = Submission {
            claim_next: true,
            ..submission_for(&current, "done")
        };
        let response = harness.submit(submission).await?;
        completed_count += 1;
        current = claimed_step(response.next_step.expect("next step was requested"));
        Ok(())
    });
    let operations = operations.await;
    // PostgreSQL needs no read: the plan is cached.
    let reads = u32::from(harness.database.backend() == Backend::Sqlite);
    assert!(
        operations >= reads + 2,
        "before and after commit: {operations}"
    );
    let status = harness.status(plan.id).await;
    assert_eq!(status.sheet.head.counts.completed, completed_count);
    let events = harness.audit_trail(plan.id).await;
    let completed = events
        .iter()
        .filter(|name| *name == "step_completed")
        .count();
    assert_eq!(
        u32::try_from(completed).unwrap(),
        completed_count,
        "each result is recorded once"
    );
}

async fn a_retried_creation_creates_one_plan(harness: &Harness) {
    let mut number = 0;
    let mut plans = Vec::new();
    let operations = with_every_fault(harness, async || {
        let key = Some(format!("key {number}"));
        let created = harness
            .engine
            .create_plan(&harness.me, harness.draft(2), key)
            .await?;
        number += 1;
        plans.push(created.created.plan);
        Ok(())
    });
    assert!(operations.await >= 3);
    let query = onward_engine::list::PlanQuery {
        limit: 100,
        ..Default::default()
    };
    let page = harness.engine.list_plans(&harness.me, query).await.unwrap();
    assert_eq!(page.plans.len(), plans.len());
}

async fn a_failed_modification_is_stored_completely_or_not_at_all(harness: &Harness) {
    let plan = harness.plan(30).await;
    let mut before = document(&harness.engine, &harness.me, plan.id).await;
    for operation in 0.. {
        harness.faults.fail_after(operation);
        let insert = Modification::AddSteps {
            steps: harness.steps(2),
            insert_after: Some(0),
        };
        let changed = harness.modify(plan.id, insert).await;
        if harness.faults.is_pending() {
            break;
        }
        let after = document(&harness.engine, &harness.me, plan.id).await;
        let count = |document: &serde_json::Value| document["steps"].as_array().unwrap().len();
        let (none, all) = (before == after, count(&after) == count(&before) + 2);
        assert!(changed.is_err() && (none || all), "operation {operation}");
        harness.step_statuses(plan.id).await;
        before = after;
    }
    harness.faults.fail_after(u32::MAX);
}

async fn a_failed_read_succeeds_on_retry(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness.faults.fail_after(0);
    let err = error(harness.engine.status(&harness.me, plan.id, None).await);
    assert_eq!(err.code().as_str(), "unavailable");
    harness.status(plan.id).await;
}

async fn a_fault_after_commit_keeps_the_claim(harness: &Harness) {
    let plan = harness.plan(40).await;
    let session = || Some(SessionId::new("me"));
    let mut claimed = 0;
    with_every_fault(harness, async || {
        let next = harness
            .engine
            .next_step(&harness.me, plan.id, session(), false)
            .await?;
        assert!(matches!(next, NextStep::Started(_)));
        claimed += 1;
        Ok(())
    })
    .await;
    // A claim whose response was lost is still stored, with its session.
    let Ok(working) = harness
        .engine
        .list_steps(&harness.me, plan.id, None, 0, 100)
        .await
    else {
        panic!("steps were not listed")
    };
    let held = working
        .steps
        .iter()
        .filter(|step| step.session == session())
        .count();
    assert!(held > claimed, "{held} claims, {claimed} responses");
}

/// Records three tool calls of one batch whose owner process has exited, in a separate session.
async fn orphaned_calls(harness: &Harness, session: &str) {
    let owner = harness.environment.start_process(7, 100);
    for id in ["a", "b", "c"] {
        let mut new = call(id, Some(owner.clone()));
        new.batch = Some(1);
        let source = HookSource {
            session: session.to_owned(),
            ..source()
        };
        let recorded =
            harness
                .engine
                .record_call(&harness.me, source, None, new, InitialState::Running);
        recorded.await.unwrap();
    }
    harness.environment.machine().processes.clear();
}

async fn interrupts_all_tool_calls_of_a_batch_or_none(harness: &Harness) {
    for operation in 0..100 {
        let session = format!("session-{operation}");
        orphaned_calls(harness, &session).await;
        harness.faults.fail_after(operation);
        let recovered = harness.engine.recover_session(&harness.me, &session).await;
        let last = harness.faults.is_pending();
        harness.faults.fail_after(u32::MAX);
        let states = async || {
            let view = harness
                .engine
                .show_session(&harness.me, &session, 9, 9)
                .await;
            let calls = view.unwrap().calls;
            let states = calls
                .iter()
                .map(|record| (record.status(), record.synthetic.is_some()));
            states.collect::<Vec<_>>()
        };
        let all = [(CallStatus::Interrupted, true); 3];
        match recovered {
            Ok(interrupted) => assert_eq!(interrupted.len(), 3),
            Err(err) => {
                assert_eq!(err.code().as_str(), "unavailable", "{err}");
                let stored = states().await;
                let none = [(CallStatus::Running, false); 3];
                assert!(stored == none || stored == all, "{stored:?}");
                let again = harness.engine.recover_session(&harness.me, &session).await;
                again.expect("retry succeeds");
            }
        }
        assert_eq!(states().await, all);
        if last {
            assert!(operation >= 2, "a read and the commit: {operation}");
            return;
        }
    }
    panic!("more than 100 operations")
}

on_both_databases![
    interrupts_all_tool_calls_of_a_batch_or_none,
    a_retried_submission_completes_its_step_once,
    a_retried_creation_creates_one_plan,
    a_failed_modification_is_stored_completely_or_not_at_all,
    a_failed_read_succeeds_on_retry,
    a_fault_after_commit_keeps_the_claim,
];
