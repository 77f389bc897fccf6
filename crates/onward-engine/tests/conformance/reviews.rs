//! Reviews: approve, reject, modify and skip.

use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::event::{DecidedBy, Decision, ReviewAction};
use onward_core::plan::PlanFailure;
use onward_core::{Event, PlanId, Timestamp};
use onward_engine::Error;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::peek::Peek;
use onward_engine::step::{OpenedReview, ReviewDecision, ReviewRequest};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{claimed_step, code, error, submission_for};

fn question(step: &AssignedStep) -> ReviewRequest {
    ReviewRequest {
        step: step.step,
        summary: "It is the Moon.".to_owned(),
        questions: vec!["And the Sun?".to_owned()],
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: Some(step.token.clone()),
        session: None,
    }
}

/// Claims the next step and requests a review.
async fn claim_and_request_review(harness: &Harness, plan: PlanId) -> (AssignedStep, OpenedReview) {
    let step = harness.claim(plan).await;
    let requested = harness
        .engine
        .request_review(&harness.me, question(&step))
        .await;
    (step, requested.expect("review was requested"))
}

async fn decide(
    harness: &Harness,
    step: &AssignedStep,
    decision: Decision,
    feedback: Option<&str>,
) -> Result<onward_engine::step::ReviewResponse, Error> {
    let feedback = feedback.map(str::to_owned);
    harness
        .engine
        .decide_review(
            &harness.me,
            ReviewDecision::new(step.step, decision, feedback),
        )
        .await
}

async fn a_pending_review_blocks_the_plan(harness: &Harness) {
    let plan = harness.plan(2).await;
    let (step, requested) = claim_and_request_review(harness, plan.id).await;
    assert_eq!((requested.plan, requested.step), (plan.id, step.step));
    assert_eq!(
        harness.plan_status(plan.id).await.as_str(),
        "awaiting_review"
    );
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["awaiting_input", "pending"]
    );
    let NextStep::AwaitingReview {
        step: reviewed,
        review,
        ..
    } = harness.next_step(plan.id).await
    else {
        panic!("no review is pending")
    };
    assert_eq!((reviewed, review.id), (step.step, requested.review));
    assert_eq!(review.summary, "It is the Moon.");
    assert_eq!(review.questions, ["And the Sun?"]);
    assert_eq!(review.requested_at, harness.now());
    let peek = harness.engine.peek(&harness.me, plan.id).await.unwrap();
    assert!(matches!(peek, Peek::None(NextStep::AwaitingReview { .. })));
}

async fn approval_completes_the_step_with_the_summary_and_evaluates_branches(harness: &Harness) {
    let to_last = ActionSpec::SkipTo(StepRef::Order(3));
    let branches = vec![harness.branch(1, "resultSummary == 'It is the Moon.'", to_last)];
    let plan = harness.plan_with_branches(3, branches).await;
    let (step, _) = claim_and_request_review(harness, plan.id).await;
    let reviewed = decide(harness, &step, Decision::Approve, Some("yes"))
        .await
        .unwrap();
    assert_eq!(reviewed.step_status.as_str(), "completed");
    assert_eq!(reviewed.plan_status.as_str(), "executing");
    assert_eq!(reviewed.instructions, None);
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["completed", "skipped", "pending"]
    );
    let status = harness.status(plan.id).await;
    let summary = status.completed[0].result_summary.as_deref();
    assert_eq!(summary, Some("It is the Moon."));
    assert_eq!(
        harness.audit_trail_after(plan.id, 3).await,
        [
            "user_reviewed review_requested",
            "plan_status_changed",
            "user_reviewed approve",
            "plan_status_changed",
            "step_completed",
            "branch_taken skip_to",
            "step_skipped",
        ]
    );
}

async fn approval_of_the_last_step_completes_the_plan(harness: &Harness) {
    let plan = harness.plan(1).await;
    let (step, _) = claim_and_request_review(harness, plan.id).await;
    let reviewed = decide(harness, &step, Decision::Approve, None)
        .await
        .unwrap();
    assert_eq!(reviewed.plan_status.as_str(), "completed");
}

async fn rejection_fails_the_step_and_the_plan(harness: &Harness) {
    let plan = harness.plan(2).await;
    let (step, _) = claim_and_request_review(harness, plan.id).await;
    let reviewed = decide(harness, &step, Decision::Reject, Some("wrong"))
        .await
        .unwrap();
    assert_eq!(reviewed.step_status.as_str(), "failed");
    assert_eq!(reviewed.plan_status.as_str(), "failed");
    let NextStep::Failed { reason } = harness.next_step(plan.id).await else {
        panic!("plan has not failed")
    };
    assert_eq!(reason, PlanFailure::Rejected(Some("wrong".to_owned())));
}

async fn modification_reassigns_the_step_with_the_feedback_exactly_once(harness: &Harness) {
    let plan = harness.plan(2).await;
    let (step, _) = claim_and_request_review(harness, plan.id).await;
    let reviewed = decide(harness, &step, Decision::Modify, Some("add tables"))
        .await
        .unwrap();
    assert_eq!(reviewed.step_status.as_str(), "in_progress");
    let instructions = "1\n\n---\n\nUser feedback: add tables";
    assert_eq!(reviewed.instructions.as_deref(), Some(instructions));
    let Peek::Step(peeked) = harness.engine.peek(&harness.me, plan.id).await.unwrap() else {
        panic!("step is not reassigned")
    };
    assert_eq!(peeked.id(), step.step);
    let again = harness.claim(plan.id).await;
    assert_eq!((again.step, again.attempt), (step.step, step.attempt));
    assert_eq!(again.token, step.token);
    assert_eq!(again.instructions, instructions);
    assert_eq!(harness.claim(plan.id).await.order, 2, "reassigned once");
    harness.complete(&again, "with tables").await;
}

async fn one_of_two_concurrent_callers_gets_the_modified_step(harness: &Harness) {
    let plan = harness.plan(2).await;
    let (step, _) = claim_and_request_review(harness, plan.id).await;
    decide(harness, &step, Decision::Modify, Some("more"))
        .await
        .unwrap();
    let request = || {
        let (engine, me, plan) = (harness.engine.clone(), harness.me.clone(), plan.id);
        tokio::spawn(async move { engine.next_step(&me, plan, None, false).await.unwrap() })
    };
    let (one, other) = (request(), request());
    let mut orders = [
        claimed_step(one.await.unwrap()).order,
        claimed_step(other.await.unwrap()).order,
    ];
    orders.sort_unstable();
    assert_eq!(orders, [1, 2]);
}

async fn modification_requires_feedback(harness: &Harness) {
    let plan = harness.plan(1).await;
    let (step, _) = claim_and_request_review(harness, plan.id).await;
    for feedback in [None, Some(""), Some(" \n")] {
        let rejected = decide(harness, &step, Decision::Modify, feedback).await;
        assert_eq!(code(rejected), "feedback_required");
    }
    assert_eq!(harness.step_statuses(plan.id).await, ["awaiting_input"]);
}

async fn a_skipped_step_counts_as_progress(harness: &Harness) {
    let plan = harness.plan(2).await;
    let (step, _) = claim_and_request_review(harness, plan.id).await;
    let reviewed = decide(harness, &step, Decision::Skip, None).await.unwrap();
    assert_eq!(reviewed.step_status.as_str(), "skipped");
    assert_eq!(reviewed.plan_status.as_str(), "executing");
    assert_eq!(
        harness.status(plan.id).await.sheet.head.counts.progress(),
        50
    );
}

async fn rejects_and_stores_a_result_for_a_step_awaiting_review(harness: &Harness) {
    let plan = harness.plan(1).await;
    let (step, _) = claim_and_request_review(harness, plan.id).await;
    let rejected = error(harness.submit(submission_for(&step, "anyway")).await);
    assert_eq!(rejected.code().as_str(), "illegal_transition");
    assert!(rejected.kept().is_some());
}

async fn accepts_results_for_other_claimed_steps_during_a_review(harness: &Harness) {
    let plan = harness.plan(3).await;
    let other = harness.claim(plan.id).await;
    let (step, _) = claim_and_request_review(harness, plan.id).await;
    let submitted = harness.complete(&other, "done").await;
    assert_eq!(submitted.plan_status.as_str(), "awaiting_review");
    let unclaimed = crate::operations::submission_without_token(plan.steps[2], "done");
    assert_eq!(code(harness.submit(unclaimed).await), "illegal_transition");
    decide(harness, &step, Decision::Approve, None)
        .await
        .unwrap();
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "executing");
}

async fn feedback_is_not_mistaken_for_a_review(harness: &Harness) {
    let plan = harness.plan(2).await.id;
    let (first, second) = (harness.claim(plan).await, harness.claim(plan).await);
    let request = |step| harness.engine.request_review(&harness.me, question(step));
    let requested = request(&first).await.unwrap();
    request(&second).await.unwrap();
    let feedback = format!("like {}: review_requested", requested.review);
    let (approve, feedback) = (Decision::Approve, Some(feedback.as_str()));
    decide(harness, &second, approve, feedback).await.unwrap();
    decide(harness, &first, approve, None).await.unwrap();
    let decided = harness
        .engine
        .review_decision(&harness.me, requested.review);
    let decided = decided.await.unwrap().expect("the review is decided");
    assert_eq!(decided.step, first.step);
    let hours = harness.engine.events_by_hour(&harness.me, Timestamp::MIN);
    let hours = hours.await.unwrap();
    let requests = hours.iter().filter(|count| count.name == "user_reviewed");
    assert_eq!(requests.map(|count| count.events).sum::<u64>(), 2);
}

async fn a_review_is_decided_once(harness: &Harness) {
    let plan = harness.plan(2).await;
    let (step, _) = claim_and_request_review(harness, plan.id).await;
    decide(harness, &step, Decision::Approve, None)
        .await
        .unwrap();
    for decision in Decision::ALL {
        let rejected = decide(harness, &step, decision, Some("feedback")).await;
        assert_eq!(code(rejected), "illegal_transition", "{decision}");
    }
}

async fn a_decision_by_link_is_recorded_and_made_once(harness: &Harness) {
    let plan = harness.plan(2).await;
    let (step, requested) = claim_and_request_review(harness, plan.id).await;
    let decision = ReviewDecision {
        review: Some(requested.review),
        link_recipient: Some("ann\u{0}".to_owned()),
        ..ReviewDecision::new(step.step, Decision::Approve, None)
    };
    let by_link = || harness.engine.decide_review(&harness.me, decision.clone());
    let [one, other] = <[_; 2]>::from(tokio::join!(by_link(), by_link()));
    assert_eq!(
        u32::from(one.is_ok()) + u32::from(other.is_ok()),
        1,
        "{one:?} {other:?}"
    );
    assert_eq!(code(by_link().await), "illegal_transition");
    let decided = harness
        .engine
        .review_decision(&harness.me, requested.review);
    let decided = decided.await.unwrap().expect("it was decided");
    let recipient = "ann\u{fffd}".to_owned();
    assert_eq!(decided.by, DecidedBy::Link { recipient });
    let full = harness.engine.full_plan(&harness.me, plan.id);
    let events = full.await.unwrap().events;
    let decisions = events.iter().filter(|entry| {
        let is_decision = |action: &ReviewAction| matches!(action, ReviewAction::Decided { .. });
        matches!(&entry.event, Event::UserReviewed { action, .. } if is_decision(action))
    });
    assert_eq!(decisions.count(), 1);
}

async fn rejects_a_review_of_a_step_that_is_not_in_progress(harness: &Harness) {
    let plan = harness.plan(3).await;
    let first = harness.claim(plan.id).await;
    let pending = ReviewRequest {
        step: plan.steps[2],
        token: None,
        ..question(&first)
    };
    let rejected = harness.engine.request_review(&harness.me, pending).await;
    assert_eq!(code(rejected), "illegal_transition");
    harness.complete(&first, "done").await;
    let rejected = harness
        .engine
        .request_review(&harness.me, question(&first))
        .await;
    assert_eq!(code(rejected), "illegal_transition");
}

async fn lists_pending_reviews_of_all_plans_oldest_first(harness: &Harness) {
    let mut expected = Vec::new();
    for _ in 0..3 {
        let plan = harness.plan(1).await;
        let (_, requested) = claim_and_request_review(harness, plan.id).await;
        expected.push(requested.review);
        harness.advance(std::time::Duration::from_millis(1));
    }
    let open = async |limit| {
        let open = harness
            .engine
            .open_reviews(&harness.me, limit)
            .await
            .unwrap();
        open.iter().map(|review| review.id).collect::<Vec<_>>()
    };
    assert_eq!(open(10).await, expected);
    assert_eq!(open(2).await, expected[..2]);
}

async fn rejects_modifications_of_a_plan_awaiting_review(harness: &Harness) {
    let plan = harness.plan(2).await;
    claim_and_request_review(harness, plan.id).await;
    let remove = Modification::RemoveStep {
        step: plan.steps[1],
    };
    assert_eq!(
        code(harness.modify(plan.id, remove).await),
        "plan_not_modifiable"
    );
}

on_both_databases![
    a_pending_review_blocks_the_plan,
    approval_completes_the_step_with_the_summary_and_evaluates_branches,
    approval_of_the_last_step_completes_the_plan,
    rejection_fails_the_step_and_the_plan,
    modification_reassigns_the_step_with_the_feedback_exactly_once,
    one_of_two_concurrent_callers_gets_the_modified_step,
    modification_requires_feedback,
    a_skipped_step_counts_as_progress,
    rejects_and_stores_a_result_for_a_step_awaiting_review,
    accepts_results_for_other_claimed_steps_during_a_review,
    a_review_is_decided_once,
    feedback_is_not_mistaken_for_a_review,
    a_decision_by_link_is_recorded_and_made_once,
    rejects_a_review_of_a_step_that_is_not_in_progress,
    lists_pending_reviews_of_all_plans_oldest_first,
    rejects_modifications_of_a_plan_awaiting_review,
];
