//! Additional data in the response that assigns a step: branches, feedback of reviewers, and the
//! other steps that the session holds.

use onward_core::event::Decision;
use onward_core::id::SessionId;
use onward_core::{PlanId, StepId};
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::step::ReviewDecision;

use crate::branches::skip_to;
use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{claimed_step, error, submission_for, submission_without_token};

impl Harness {
    async fn next_in_session(&self, plan: PlanId, session: &str) -> NextStep {
        let session = Some(SessionId::new(session));
        let next = self.engine.next_step(&self.me, plan, session, false).await;
        next.expect("next step was requested")
    }

    /// Requests a review of a step and decides it.
    async fn decide(&self, step: &AssignedStep, decision: Decision, feedback: &str) {
        self.request_review(step).await.unwrap();
        let feedback = Some(feedback.to_owned());
        let review = ReviewDecision::new(step.step, decision, feedback);
        let decided = self.engine.decide_review(&self.me, review);
        decided.await.unwrap();
    }
}

fn conditions(step: &AssignedStep) -> Vec<(&str, Option<u32>)> {
    let branches = step.surroundings.branches.iter();
    branches
        .map(|outline| (outline.branch.condition.source(), outline.target))
        .collect()
}

async fn an_assigned_step_shows_its_branches(harness: &Harness) {
    let branches = vec![
        harness.branch(1, "confidence > 0.5", skip_to(3)),
        harness.branch(2, "result.verdict == 'no'", skip_to(4)),
    ];
    let plan = harness.plan_with_branches(4, branches).await;
    let first = harness.claim(plan.id).await;
    assert_eq!(conditions(&first), [("confidence > 0.5", Some(3))]);
    let mut submission = submission_for(&first, "done");
    submission.claim_next = true;
    let submitted = harness.submit(submission.clone()).await.unwrap();
    let repeated = harness.submit(submission).await.unwrap();
    assert_eq!(repeated, submitted);
    let second = claimed_step(submitted.next_step.unwrap());
    assert_eq!(conditions(&second), [("result.verdict == 'no'", Some(4))]);
}

async fn an_assigned_step_shows_the_feedback_on_the_previous_step(harness: &Harness) {
    let plan = harness.plan(5).await;
    let first = harness.claim(plan.id).await;
    assert_eq!(first.surroundings.feedback, [""; 0]);
    harness
        .decide(&first, Decision::Approve, "Cite the year.")
        .await;
    let second = harness.claim(plan.id).await;
    assert_eq!(second.surroundings.feedback, ["Cite the year."]);
    harness.decide(&second, Decision::Skip, "Not needed.").await;
    let third = harness.claim(plan.id).await;
    assert_eq!(third.surroundings.feedback, ["Not needed."]);
    let mut submission = submission_for(&third, "done");
    submission.claim_next = true;
    let submitted = harness.submit(submission).await.unwrap();
    let fourth = claimed_step(submitted.next_step.unwrap());
    assert_eq!(fourth.surroundings.feedback, [""; 0]);
    harness.decide(&fourth, Decision::Modify, "Shorter.").await;
    let mut again = submission_for(&harness.claim(plan.id).await, "short");
    again.claim_next = true;
    let submitted = harness.submit(again).await.unwrap();
    let fifth = claimed_step(submitted.next_step.unwrap());
    assert_eq!(fifth.surroundings.feedback, ["Shorter."]);
}

async fn a_response_names_the_steps_that_the_session_holds(harness: &Harness) {
    let plan = harness.plan(3).await;
    let orders = |held: &[onward_engine::next_step::HeldStep]| -> Vec<(StepId, u32)> {
        held.iter().map(|held| (held.step, held.order)).collect()
    };
    let first = claimed_step(harness.next_in_session(plan.id, "one").await);
    assert_eq!(first.held, []);
    let other = claimed_step(harness.next_in_session(plan.id, "two").await);
    assert_eq!(other.held, [], "another session holds the first step");
    let third = claimed_step(harness.next_in_session(plan.id, "one").await);
    assert_eq!(orders(&third.held), [(plan.steps[0], 1)]);
    assert_eq!(third.held[0].since, harness.now());
    let again = claimed_step(harness.next_in_session(plan.id, "one").await);
    assert_eq!((again.step, again.resumed), (plan.steps[0], true));
    assert_eq!(orders(&again.held), [(plan.steps[2], 3)]);
    let NextStep::NoPendingSteps { held, .. } = harness.next_step(plan.id).await else {
        panic!("all steps are claimed")
    };
    assert_eq!(held, [], "a caller without a session holds nothing");
}

async fn a_rejected_late_result_does_not_change_the_time_of_the_last_change(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.complete_steps(plan.id, 1).await;
    let before = harness.status(plan.id).await.sheet;
    harness.advance(std::time::Duration::from_secs(60));
    error(
        harness
            .submit(submission_without_token(plan.steps[0], "late"))
            .await,
    );
    let after = harness.status(plan.id).await.sheet;
    assert_eq!(after.updated_at, before.updated_at);
    assert!(after.head.seq > before.head.seq, "the audit trail names it");
    harness.complete_steps(plan.id, 1).await;
    let after = harness.status(plan.id).await.sheet;
    assert_eq!(after.updated_at, harness.now());
}

async fn a_decision_returns_the_branch_taken_and_the_reason_of_a_failure(harness: &Harness) {
    let branches = vec![harness.branch(1, "true", skip_to(3))];
    let plan = harness.plan_with_branches(3, branches).await;
    let first = harness.claim(plan.id).await;
    harness.request_review(&first).await.unwrap();
    let review = ReviewDecision::new(first.step, Decision::Approve, None);
    let approved = harness.engine.decide_review(&harness.me, review);
    let approved = approved.await.unwrap();
    assert_eq!(approved.taken_branch.unwrap().0, plan.branches[0]);
    assert_eq!(approved.failure, None);
    let last = harness.claim(plan.id).await;
    harness.request_review(&last).await.unwrap();
    let feedback = Some("wrong sea".to_owned());
    let review = ReviewDecision::new(last.step, Decision::Reject, feedback);
    let rejected = harness.engine.decide_review(&harness.me, review);
    let failure = rejected.await.unwrap().failure.unwrap().to_string();
    assert!(failure.contains("wrong sea"), "{failure}");
}

on_both_databases![
    an_assigned_step_shows_its_branches,
    an_assigned_step_shows_the_feedback_on_the_previous_step,
    a_response_names_the_steps_that_the_session_holds,
    a_rejected_late_result_does_not_change_the_time_of_the_last_change,
    a_decision_returns_the_branch_taken_and_the_reason_of_a_failure,
];
