//! Claims: steps are assigned in order, each to one caller, with a claim token.

use onward_core::command::Modification;
use onward_core::id::{ClaimToken, SessionId};
use onward_engine::next_step::NextStep;
use onward_engine::peek::Peek;
use onward_engine::submit::Submission;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{claimed_step, code, submission_for, submission_without_token};

async fn assigns_steps_in_order_and_completes_the_plan_with_the_last_step(harness: &Harness) {
    let plan = harness.plan(3).await;
    for (index, step) in plan.steps.iter().enumerate() {
        let claimed = harness.claim(plan.id).await;
        assert_eq!(claimed.step, *step);
        assert_eq!((claimed.attempt, claimed.total), (1, 3));
        assert_eq!(usize::try_from(claimed.order).unwrap(), index + 1);
        assert_eq!(harness.plan_status(plan.id).await.as_str(), "executing");
        harness.complete(&claimed, "done").await;
    }
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "completed");
    assert_eq!(
        harness.audit_trail(plan.id).await,
        [
            "plan_modified created",
            "step_started",
            "plan_status_changed",
            "step_completed",
            "step_started",
            "step_completed",
            "step_started",
            "step_completed",
            "plan_completed",
        ]
    );
}

async fn a_completed_plan_returns_its_formatting_notes(harness: &Harness) {
    let mut draft = harness.draft(2);
    draft.output_formatting_notes = Some("as a table".to_owned());
    let plan = harness.create(draft).await;
    harness.complete_steps(plan.id, 1).await;
    let last = harness.claim(plan.id).await;
    let mut submission = submission_for(&last, "done");
    submission.result.formatting_notes = Some("with a figure".to_owned());
    harness.submit(submission).await.unwrap();
    let NextStep::Complete(notes) = harness.next_step(plan.id).await else {
        panic!("plan is not complete")
    };
    assert_eq!(notes.plan.as_deref(), Some("as a table"));
    assert_eq!(notes.steps, [(last.step, 2, "with a figure".to_owned())]);
}

async fn a_step_is_blocked_until_all_its_dependencies_are_met(harness: &Harness) {
    let mut draft = harness.draft(4);
    draft.steps[0].depends_on = vec![2, 3];
    draft.on_dependency_failure = onward_core::policy::OnDependencyFailure::Continue;
    let plan = harness.create(draft).await;
    let second = harness.claim(plan.id).await;
    assert_eq!(second.order, 2);
    let third = harness.claim(plan.id).await;
    let fourth = harness.claim(plan.id).await;
    assert_eq!((third.order, fourth.order), (3, 4));
    let NextStep::NoPendingSteps {
        in_progress,
        failed,
        blocked,
        working,
        ..
    } = harness.next_step(plan.id).await
    else {
        panic!("first step is not blocked")
    };
    assert_eq!((in_progress, failed, blocked, working.len()), (3, 0, 1, 3));
    harness.complete(&second, "done").await;
    assert!(matches!(
        harness.next_step(plan.id).await,
        NextStep::NoPendingSteps { .. }
    ));
    // Steps of this plan continue after a failure.
    let fail = Modification::FailStep {
        step: third.step,
        reason: None,
    };
    harness.modify(plan.id, fail).await.unwrap();
    assert_eq!(harness.claim(plan.id).await.order, 1);
}

async fn peeking_claims_nothing(harness: &Harness) {
    let plan = harness.plan(1).await;
    for _ in 0..2 {
        let Peek::Step(step) = harness.engine.peek(&harness.me, plan.id).await.unwrap() else {
            panic!("no step to peek at")
        };
        assert_eq!(step.id(), plan.steps[0]);
    }
    assert_eq!(harness.audit_trail(plan.id).await.len(), 1);
    harness.complete_steps(plan.id, 1).await;
    let peek = harness.engine.peek(&harness.me, plan.id).await.unwrap();
    assert!(matches!(peek, Peek::None(NextStep::Complete(_))));
}

async fn concurrent_callers_claim_different_steps(harness: &Harness) {
    let plan = harness.plan(6).await;
    let other = harness.another_engine().await;
    let calls: Vec<_> = (0..10)
        .map(|number| {
            let engine = if number % 2 == 0 {
                &harness.engine
            } else {
                &other
            };
            let (engine, me, plan) = (engine.clone(), harness.me.clone(), plan.id);
            tokio::spawn(async move { engine.next_step(&me, plan, None, false).await })
        })
        .collect();
    let (mut steps, mut empty) = (Vec::new(), 0);
    for call in calls {
        match call.await.unwrap().unwrap() {
            NextStep::Started(step) => steps.push(step.step),
            NextStep::NoPendingSteps { .. } => empty += 1,
            other @ (NextStep::Complete(_)
            | NextStep::Failed { .. }
            | NextStep::AwaitingReview { .. }
            | NextStep::BudgetExhausted { .. }) => {
                panic!("{other:?}")
            }
        }
    }
    steps.sort();
    let mut all = plan.steps.clone();
    all.sort();
    assert_eq!((steps, empty), (all, 4));
    other.close().await;
}

async fn concurrent_submissions_complete_a_step_once(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    let calls: Vec<_> = (0..6)
        .map(|number| {
            let (engine, me) = (harness.engine.clone(), harness.me.clone());
            let submission = submission_for(&step, &format!("by {number}"));
            tokio::spawn(async move { engine.submit(&me, submission).await })
        })
        .collect();
    let mut accepted = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => accepted += 1,
            Err(err) => assert!(err.kept().is_some(), "{err}"),
        }
    }
    assert_eq!(accepted, 1);
    let events = harness.audit_trail(plan.id).await;
    assert_eq!(
        events
            .iter()
            .filter(|name| *name == "step_completed")
            .count(),
        1
    );
    assert_eq!(
        events
            .iter()
            .filter(|name| *name == "late_result_kept")
            .count(),
        5
    );
}

async fn accepts_a_result_without_a_token_for_the_current_claim(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness
        .submit(submission_without_token(step.step, "done"))
        .await
        .unwrap();
    assert_eq!(harness.step_statuses(plan.id).await, ["completed"]);
}

async fn a_result_for_an_unclaimed_step_claims_it_first(harness: &Harness) {
    let plan = harness.plan(1).await;
    let submitted = harness
        .submit(submission_without_token(plan.steps[0], "done"))
        .await
        .unwrap();
    assert_eq!(submitted.plan_status.as_str(), "completed");
    assert_eq!(
        harness.audit_trail_after(plan.id, 1).await,
        [
            "step_started",
            "plan_status_changed",
            "step_completed",
            "plan_completed"
        ]
    );
}

async fn rejects_an_unknown_token_for_a_claimed_step(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let unknown_token = Submission {
        token: Some(ClaimToken::new("unknown")),
        ..submission_for(&step, "done")
    };
    assert_eq!(
        code(harness.submit(unknown_token).await),
        "claim_superseded"
    );
    assert_eq!(harness.step_statuses(plan.id).await, ["in_progress"]);
}

async fn rejects_a_superseded_token_after_the_step_was_claimed_again(harness: &Harness) {
    let plan = harness.plan(1).await;
    let first = harness.claim(plan.id).await;
    let requeue = Modification::RequeueStep { step: first.step };
    harness.modify(plan.id, requeue).await.unwrap();
    let second = harness.claim(plan.id).await;
    assert_eq!((second.step, second.attempt), (first.step, 2));
    assert_ne!(second.token, first.token);
    assert_eq!(
        code(harness.submit(submission_for(&first, "late")).await),
        "claim_superseded"
    );
    harness.complete(&second, "in time").await;
}

async fn accepts_a_superseded_token_while_the_step_is_unclaimed(harness: &Harness) {
    let plan = harness.plan(1).await;
    let first = harness.claim(plan.id).await;
    let requeue = Modification::RequeueStep { step: first.step };
    harness.modify(plan.id, requeue).await.unwrap();
    harness.complete(&first, "after all").await;
    assert_eq!(harness.step_statuses(plan.id).await, ["completed"]);
}

async fn fails_a_step_requeued_on_its_last_attempt(harness: &Harness) {
    let mut draft = harness.draft(1);
    draft.steps[0].max_attempts = Some(2);
    let plan = harness.create(draft).await;
    for attempt in 1..=2 {
        let step = harness.claim(plan.id).await;
        assert_eq!(step.attempt, attempt);
        harness
            .modify(plan.id, Modification::RequeueStep { step: step.step })
            .await
            .unwrap();
    }
    assert_eq!(harness.step_statuses(plan.id).await, ["failed"]);
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "completed");
    assert_eq!(
        harness.status(plan.id).await.sheet.head.counts.progress(),
        0
    );
}

async fn reports_the_holders_of_claimed_steps_when_none_is_pending(harness: &Harness) {
    let plan = harness.plan(1).await;
    let session = SessionId::new("agent 7");
    let next = harness
        .engine
        .next_step(&harness.me, plan.id, Some(session.clone()), false)
        .await;
    claimed_step(next.unwrap());
    harness.advance(std::time::Duration::from_millis(1_500));
    let NextStep::NoPendingSteps { working, .. } = harness.next_step(plan.id).await else {
        panic!("step is not claimed")
    };
    assert_eq!(working[0].session, Some(session));
    assert_eq!(working[0].elapsed, std::time::Duration::from_millis(1_500));
    assert!(!working[0].stalled);
}

on_both_databases![
    assigns_steps_in_order_and_completes_the_plan_with_the_last_step,
    a_completed_plan_returns_its_formatting_notes,
    a_step_is_blocked_until_all_its_dependencies_are_met,
    peeking_claims_nothing,
    concurrent_callers_claim_different_steps,
    concurrent_submissions_complete_a_step_once,
    accepts_a_result_without_a_token_for_the_current_claim,
    a_result_for_an_unclaimed_step_claims_it_first,
    rejects_an_unknown_token_for_a_claimed_step,
    rejects_a_superseded_token_after_the_step_was_claimed_again,
    accepts_a_superseded_token_while_the_step_is_unclaimed,
    fails_a_step_requeued_on_its_last_attempt,
    reports_the_holders_of_claimed_steps_when_none_is_pending,
];
