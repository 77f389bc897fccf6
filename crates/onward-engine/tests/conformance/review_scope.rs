//! Reviews of scope `step`, and several pending reviews at the same time.

use onward_core::PlanId;
use onward_core::event::Decision;
use onward_core::id::ReviewId;
use onward_core::plan::PlanState;
use onward_core::step::ReviewScope;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::step::{OpenedReview, ReviewDecision, ReviewRequest};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::code;

async fn request(harness: &Harness, step: &AssignedStep, scope: ReviewScope) -> OpenedReview {
    let request = ReviewRequest {
        step: step.step,
        summary: "It is the Moon.".to_owned(),
        questions: Vec::new(),
        scope,
        options: Default::default(),
        token: Some(step.token.clone()),
        session: None,
    };
    let opened = harness.engine.request_review(&harness.me, request).await;
    opened.expect("review was requested")
}

fn decision(step: &AssignedStep, review: ReviewId) -> ReviewDecision {
    ReviewDecision {
        review: Some(review),
        ..ReviewDecision::new(step.step, Decision::Approve, None)
    }
}

async fn status_and_derived(harness: &Harness, plan: PlanId) -> (&'static str, &'static str) {
    let status = harness.status(plan).await;
    (status.sheet.head.status().as_str(), status.derived.as_str())
}

async fn a_review_of_a_step_does_not_stop_the_plan(harness: &Harness) {
    let plan = harness.plan(2).await;
    let first = harness.claim(plan.id).await;
    let opened = request(harness, &first, ReviewScope::Step).await;
    assert_eq!(opened.plan_status.as_str(), "executing");
    let expected = ("executing", "awaiting_review");
    assert_eq!(status_and_derived(harness, plan.id).await, expected);
    let second = harness.claim(plan.id).await;
    assert_eq!(second.order, 2);
    let open = harness.engine.open_reviews(&harness.me, 10).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].review.scope, ReviewScope::Step);
    harness.complete(&second, "done").await;
    let NextStep::AwaitingReview { step, .. } = harness.next_step(plan.id).await else {
        panic!("no review is pending")
    };
    assert_eq!(step, first.step);
    let decided = harness
        .engine
        .decide_review(&harness.me, decision(&first, opened.review));
    assert_eq!(decided.await.unwrap().plan_status.as_str(), "completed");
}

async fn each_of_several_reviews_is_decided_by_its_own_id(harness: &Harness) {
    let plan = harness.plan(3).await;
    let first = harness.claim(plan.id).await;
    let second = harness.claim(plan.id).await;
    let of_first = request(harness, &first, ReviewScope::Plan).await;
    let of_second = request(harness, &second, ReviewScope::Plan).await;
    let status = harness.status(plan.id).await;
    let reviews: Vec<ReviewId> = status.reviews.iter().map(|open| open.id).collect();
    assert_eq!(reviews, [of_first.review, of_second.review]);
    let PlanState::AwaitingReview { reviews } = &status.sheet.head.state else {
        panic!("the plan does not await review")
    };
    assert_eq!(reviews.len(), 2);

    let engine = &harness.engine;
    let found = engine.step_of_review(&harness.me, of_second.review).await;
    assert_eq!(found.unwrap(), second.step);
    let wrong = engine.decide_review(&harness.me, decision(&first, of_second.review));
    assert_eq!(code(wrong.await), "illegal_transition");
    let decided = engine.decide_review(&harness.me, decision(&second, of_second.review));
    assert_eq!(
        decided.await.unwrap().plan_status.as_str(),
        "awaiting_review"
    );
    let gone = engine.step_of_review(&harness.me, of_second.review).await;
    assert_eq!(code(gone), "invalid_input");
    let NextStep::AwaitingReview { step, .. } = harness.next_step(plan.id).await else {
        panic!("no review is pending")
    };
    assert_eq!(step, first.step);
    let decided = engine.decide_review(&harness.me, decision(&first, of_first.review));
    let decided = decided.await.unwrap();
    assert_eq!(decided.plan_status.as_str(), "executing");
    let repeated = engine.decide_review(&harness.me, decision(&first, of_first.review));
    assert_eq!(repeated.await.unwrap(), decided);
}

async fn a_review_of_an_abandoned_plan_is_not_pending(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    request(harness, &step, ReviewScope::Step).await;
    let abandoned = harness
        .engine
        .abandon_plan(&harness.me, plan.id, None)
        .await;
    abandoned.unwrap();
    let open = harness.engine.open_reviews(&harness.me, 10).await.unwrap();
    assert!(open.is_empty());
    assert!(harness.status(plan.id).await.reviews.is_empty());
}

on_both_databases![
    a_review_of_a_step_does_not_stop_the_plan,
    each_of_several_reviews_is_decided_by_its_own_id,
    a_review_of_an_abandoned_plan_is_not_pending,
];
