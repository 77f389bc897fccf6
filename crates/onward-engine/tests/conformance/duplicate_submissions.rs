//! Duplicate submissions: the same result submitted again gets the same response with the same next
//! step, even after later changes to the plan.

use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::event::Decision;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::step::ReviewDecision;
use onward_engine::submit::{Submission, SubmitResponse};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{claimed_step, code, submission_for, submission_without_token};

fn submission_claiming_next(step: &AssignedStep) -> Submission {
    Submission {
        claim_next: true,
        ..submission_for(step, "done")
    }
}

async fn claims_the_next_step_in_the_same_commit(harness: &Harness) {
    let plan = harness.plan(3).await;
    let first = harness.claim(plan.id).await;
    let response = harness
        .submit(submission_claiming_next(&first))
        .await
        .unwrap();
    let second = claimed_step(response.next_step.unwrap());
    assert_eq!((second.step, second.attempt), (plan.steps[1], 1));
    assert_eq!(second.progress, 33);
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["completed", "in_progress", "pending"]
    );
    let whole = harness
        .engine
        .full_plan(&harness.me, plan.id)
        .await
        .unwrap();
    let commits: Vec<u64> = whole.events.iter().map(|entry| entry.commit_seq).collect();
    assert_eq!(commits, [1, 2, 2, 4, 4]);
}

async fn a_duplicate_submission_gets_the_same_response(harness: &Harness) {
    let plan = harness.plan(3).await;
    let first = harness.claim(plan.id).await;
    let response = harness
        .submit(submission_claiming_next(&first))
        .await
        .unwrap();
    let before = harness.audit_trail(plan.id).await;
    assert_eq!(
        harness
            .submit(submission_claiming_next(&first))
            .await
            .unwrap(),
        response
    );
    assert_eq!(
        harness.audit_trail(plan.id).await,
        before,
        "a duplicate records no events"
    );
}

async fn a_duplicate_gets_the_same_response_after_the_plan_has_advanced(harness: &Harness) {
    let plan = harness.plan(4).await;
    let first = harness.claim(plan.id).await;
    let response = harness
        .submit(submission_claiming_next(&first))
        .await
        .unwrap();
    let second = claimed_step(response.next_step.clone().unwrap());
    harness.advance(std::time::Duration::from_secs(60));
    harness.complete(&second, "done").await;
    let added = Modification::AddSteps {
        steps: harness.steps(2),
        insert_after: Some(0),
    };
    harness.modify(plan.id, added).await.unwrap();
    harness.claim(plan.id).await;
    assert_eq!(
        harness
            .submit(submission_claiming_next(&first))
            .await
            .unwrap(),
        response
    );
    harness
        .engine
        .abandon_plan(&harness.me, plan.id, None)
        .await
        .unwrap();
    assert_eq!(
        harness
            .submit(submission_claiming_next(&first))
            .await
            .unwrap(),
        response
    );
}

async fn a_duplicate_gets_the_same_response_after_its_step_was_edited(harness: &Harness) {
    let plan = harness.plan(3).await;
    let first = harness.claim(plan.id).await;
    let response = harness
        .submit(submission_claiming_next(&first))
        .await
        .unwrap();
    let edit = Modification::UpdateInstructions {
        step: first.step,
        instructions: "Edited after completion.".to_owned(),
    };
    harness.modify(plan.id, edit).await.unwrap();
    assert_eq!(
        harness
            .submit(submission_claiming_next(&first))
            .await
            .unwrap(),
        response
    );
    let (_, faults) = harness
        .engine
        .verify_plan(&harness.me, plan.id)
        .await
        .unwrap();
    assert_eq!(faults, [""; 0]);
}

async fn a_duplicate_gets_the_branch_that_was_taken(harness: &Harness) {
    let to_last = ActionSpec::SkipTo(StepRef::Order(4));
    let branches = vec![
        harness.branch(1, "result.missing > 1", ActionSpec::Continue),
        harness.branch(1, "true", to_last),
    ];
    let plan = harness.plan_with_branches(4, branches).await;
    let first = harness.claim(plan.id).await;
    let response = harness
        .submit(submission_claiming_next(&first))
        .await
        .unwrap();
    assert_eq!(response.verdicts.len(), 2);
    assert_eq!(response.taken_branch.as_ref().unwrap().0, plan.branches[1]);
    harness
        .complete(&claimed_step(response.next_step.clone().unwrap()), "done")
        .await;
    assert_eq!(
        harness
            .submit(submission_claiming_next(&first))
            .await
            .unwrap(),
        response
    );
}

async fn claim_next_on_the_last_step_returns_complete(harness: &Harness) {
    let plan = harness.plan(1).await;
    let only = harness.claim(plan.id).await;
    let response = harness
        .submit(submission_claiming_next(&only))
        .await
        .unwrap();
    assert!(
        matches!(response.next_step, Some(NextStep::Complete(_))),
        "{response:?}"
    );
    assert_eq!(response.plan_status.as_str(), "completed");
    assert_eq!(
        harness
            .submit(submission_claiming_next(&only))
            .await
            .unwrap(),
        response
    );
}

async fn claim_next_returns_no_pending_steps_for_the_original_and_the_duplicate(harness: &Harness) {
    let plan = harness.plan(2).await;
    let first = harness.claim(plan.id).await;
    harness.claim(plan.id).await;
    let response = harness
        .submit(submission_claiming_next(&first))
        .await
        .unwrap();
    assert!(
        matches!(response.next_step, Some(NextStep::NoPendingSteps { .. })),
        "{response:?}"
    );
    assert_eq!(
        harness
            .submit(submission_claiming_next(&first))
            .await
            .unwrap(),
        response
    );
}

/// The response claimed nothing, and later a step is available.
async fn a_duplicate_never_claims_a_step(harness: &Harness) {
    let repeats = async |first: &AssignedStep, response: &SubmitResponse, plan| {
        let trail = harness.audit_trail(plan).await;
        harness.advance(std::time::Duration::from_secs(60));
        let again = harness.submit(submission_claiming_next(first)).await;
        assert_eq!(again.unwrap(), *response);
        assert_eq!(harness.audit_trail(plan).await, trail);
    };
    // Another agent held the other step, which is ready again.
    let plan = harness.plan(2).await;
    let first = harness.claim(plan.id).await;
    let second = harness.claim(plan.id).await;
    harness.advance(std::time::Duration::from_secs(60));
    let response = harness.submit(submission_claiming_next(&first)).await;
    let response = response.unwrap();
    let next = response.next_step.as_ref();
    assert!(matches!(next, Some(NextStep::NoPendingSteps { .. })));
    let requeue = Modification::RequeueStep { step: second.step };
    harness.modify(plan.id, requeue).await.unwrap();
    repeats(&first, &response, plan.id).await;

    // Another step awaited review, and the plan continues after the decision.
    let plan = harness.plan(3).await;
    let first = harness.claim(plan.id).await;
    let second = harness.claim(plan.id).await;
    harness.request_review(&second).await.unwrap();
    let response = harness.submit(submission_claiming_next(&first)).await;
    let response = response.unwrap();
    let next = response.next_step.as_ref();
    assert!(matches!(next, Some(NextStep::AwaitingReview { .. })));
    let approve = ReviewDecision::new(second.step, Decision::Approve, None);
    let decided = harness.engine.decide_review(&harness.me, approve).await;
    decided.unwrap();
    repeats(&first, &response, plan.id).await;

    // A branch failed the plan.
    let fail = ActionSpec::Fail { reason: None };
    let branches = vec![harness.branch(1, "true", fail)];
    let plan = harness.plan_with_branches(2, branches).await;
    let first = harness.claim(plan.id).await;
    let response = harness.submit(submission_claiming_next(&first)).await;
    let response = response.unwrap();
    let next = response.next_step.as_ref();
    assert!(matches!(next, Some(NextStep::Failed { .. })));
    repeats(&first, &response, plan.id).await;
}

/// The duplicate must not claim, so it has no next step: `get_next_step` assigns it.
async fn a_duplicate_with_claim_next_claims_nothing_if_the_original_did_not(harness: &Harness) {
    let plan = harness.plan(2).await;
    let first = harness.claim(plan.id).await;
    let response = harness.complete(&first, "done").await;
    let again = harness.submit(submission_claiming_next(&first)).await;
    assert_eq!(again.unwrap(), response);
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["completed", "pending"]
    );
    assert_eq!(harness.claim(plan.id).await.step, plan.steps[1]);
}

async fn a_duplicate_for_an_unclaimed_step_needs_no_token(harness: &Harness) {
    let plan = harness.plan(2).await;
    let submission = Submission {
        claim_next: true,
        ..submission_without_token(plan.steps[0], "done")
    };
    let response = harness.submit(submission.clone()).await.unwrap();
    assert_eq!(harness.submit(submission).await.unwrap(), response);
}

async fn a_different_result_for_a_completed_step_is_not_a_duplicate(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    let mut first = submission_for(&step, "done");
    first.result.confidence = Some(0.5);
    harness.submit(first.clone()).await.unwrap();
    let mut other = first.clone();
    other.result.confidence = Some(0.6);
    assert_eq!(code(harness.submit(other).await), "illegal_transition");
    let mut other = first;
    other.result.data = Some(serde_json::json!({}).into());
    assert_eq!(code(harness.submit(other).await), "illegal_transition");
}

async fn a_duplicate_gets_the_same_response_from_another_engine(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    let response = harness
        .submit(submission_claiming_next(&step))
        .await
        .unwrap();
    let other = harness.another_engine().await;
    let again = other
        .submit(&harness.me, submission_claiming_next(&step))
        .await
        .unwrap();
    assert_eq!(again, response);
    other.close().await;
}

on_both_databases![
    claims_the_next_step_in_the_same_commit,
    a_duplicate_submission_gets_the_same_response,
    a_duplicate_gets_the_same_response_after_the_plan_has_advanced,
    a_duplicate_gets_the_same_response_after_its_step_was_edited,
    a_duplicate_gets_the_branch_that_was_taken,
    claim_next_on_the_last_step_returns_complete,
    claim_next_returns_no_pending_steps_for_the_original_and_the_duplicate,
    a_duplicate_never_claims_a_step,
    a_duplicate_with_claim_next_claims_nothing_if_the_original_did_not,
    a_duplicate_for_an_unclaimed_step_needs_no_token,
    a_different_result_for_a_completed_step_is_not_a_duplicate,
    a_duplicate_gets_the_same_response_from_another_engine,
];
