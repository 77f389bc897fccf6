//! Gates of steps: result schema, evidence and required reviews, from the submission to the context
//! of later steps, exports and imports.

use std::sync::Arc;

use onward_core::command::CreatePlan;
use onward_core::event::Decision;
use onward_core::role::{Role, TenantPolicy};
use onward_core::step::{Evidence, EvidenceKind, Gates, ReviewBy, StepResult, StepState};
use onward_core::{Code, PlanId, StepStatus};
use onward_engine::Caller;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::step::ReviewDecision;
use onward_engine::submit::Submission;
use serde_json::json;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{claimed_step, code, submission_for};

/// Creates a plan of two steps; the first has these gates.
async fn gated(harness: &Harness, gates: Gates) -> PlanId {
    let mut first = harness.step("Collect the moons.");
    first.gates = Some(Arc::new(gates));
    let steps = vec![first, harness.step("Write it up.")];
    let id = harness.engine.new_plan_id();
    let command = CreatePlan::new(id, "Moons", "Which moons are there?", steps);
    let created = harness.engine.create_plan(&harness.me, command, None).await;
    created.expect("plan was created");
    id
}

fn all_gates(by: ReviewBy) -> Gates {
    Gates {
        result_schema: Some(json!({ "type": "object", "required": ["moons"] }).into()),
        acceptance_criteria: vec!["The list is complete.".to_owned()],
        review_by: Some(by),
    }
}

fn evidence(criterion: &str) -> Evidence {
    Evidence {
        criterion: criterion.to_owned(),
        kind: EvidenceKind::Url,
        value: "https://example.org/moons".to_owned(),
        outcome: "the same number".to_owned(),
    }
}

/// A submission that meets all gates.
fn complete_submission(step: &AssignedStep) -> Submission {
    Submission {
        result: StepResult {
            data: Some(json!({ "moons": ["Io"] }).into()),
            evidence: vec![evidence("1")],
            ..StepResult::from_summary("Four moons.")
        },
        ..submission_for(step, "")
    }
}

/// An agent that may not decide reviews.
fn agent(harness: &Harness) -> Caller {
    Caller {
        role: Role::Agent,
        policy: TenantPolicy::default(),
        ..harness.me.clone()
    }
}

async fn claim_in(harness: &Harness, plan: PlanId, session: &str) -> AssignedStep {
    let session = Some(onward_core::id::SessionId::new(session));
    let next = harness.engine.next_step(&harness.me, plan, session, false);
    claimed_step(next.await.expect("next step was requested"))
}

async fn a_rejected_submission_keeps_the_work_and_the_corrected_one_is_accepted(harness: &Harness) {
    let gates = Gates {
        review_by: None,
        ..all_gates(ReviewBy::Person)
    };
    let plan = gated(harness, gates.clone()).await;
    let step = harness.claim(plan).await;
    assert_eq!(step.gates.as_deref(), Some(&gates));
    let error = harness.submit(submission_for(&step, "Four moons.")).await;
    let error = error.expect_err("the result does not meet the gates");
    assert_eq!(error.code(), Code::InvalidInput);
    let kept = error.kept().expect("the work is kept");
    let kept = harness.engine.artifact(&harness.me, kept).await.unwrap();
    assert!(kept.content.contains("Four moons."));

    let accepted = harness.submit(complete_submission(&step)).await.unwrap();
    assert_eq!(accepted.step_status, StepStatus::Completed);
    let (_, stored) = harness.engine.step(&harness.me, step.step).await.unwrap();
    let StepState::Completed { result, .. } = stored.state else {
        panic!("step is not completed")
    };
    assert_eq!(result.evidence, [evidence("The list is complete.")]);
    assert_eq!(stored.spec.gates.as_deref(), Some(&gates));
}

async fn evidence_is_in_the_context_of_later_steps(harness: &Harness) {
    let gates = Gates {
        review_by: None,
        ..all_gates(ReviewBy::Person)
    };
    let plan = gated(harness, gates).await;
    let first = harness.claim(plan).await;
    harness.submit(complete_submission(&first)).await.unwrap();
    let second = harness.claim(plan).await;
    let context = harness.engine.step_context(&harness.me, second.step, None);
    let context = context.await.unwrap();
    let expected = [evidence("The list is complete.")];
    assert_eq!(context.results[0].evidence, expected);
    let context = harness.engine.plan_context(&harness.me, plan, None, None);
    let context = context.await.unwrap();
    assert_eq!(context.steps[0].evidence, expected);
    let small = harness
        .engine
        .step_context(&harness.me, second.step, Some(900));
    assert!(small.await.unwrap().truncated);
}

async fn a_result_that_requires_a_review_waits_for_a_person(harness: &Harness) {
    let plan = gated(harness, all_gates(ReviewBy::Person)).await;
    let step = harness.claim(plan).await;
    let submitted = harness.submit(complete_submission(&step)).await.unwrap();
    assert_eq!(submitted.step_status, StepStatus::AwaitingInput);
    let review = submitted.review.expect("the result is reviewed");
    assert_eq!(submitted.plan_status.as_str(), "executing");
    let again = harness.submit(complete_submission(&step)).await.unwrap();
    assert_eq!(again, submitted);

    let status = harness.status(plan).await;
    assert_eq!(status.derived.as_str(), "awaiting_review");
    assert_eq!(status.reviews.len(), 1);
    let open = harness.engine.open_reviews(&harness.me, 10).await.unwrap();
    assert_eq!(open[0].id, review);
    let result = open[0]
        .review
        .result
        .as_ref()
        .expect("a result is under review");
    assert_eq!(result.evidence, [evidence("The list is complete.")]);

    // The agent cannot pass on a decision.
    let by_agent = ReviewDecision {
        is_by_agent: true,
        ..ReviewDecision::new(step.step, Decision::Approve, None)
    };
    let refused = harness.engine.decide_review(&harness.me, by_agent).await;
    assert_eq!(code(refused), "forbidden");
    let approve = ReviewDecision {
        review: Some(review),
        ..ReviewDecision::new(step.step, Decision::Approve, None)
    };
    let approved = harness.engine.decide_review(&harness.me, approve).await;
    assert_eq!(approved.unwrap().step_status, StepStatus::Completed);
    let (_, stored) = harness.engine.step(&harness.me, step.step).await.unwrap();
    let StepState::Completed { result, .. } = stored.state else {
        panic!("step is not completed")
    };
    assert_eq!(result.summary, "Four moons.");
    assert!(result.data.is_some());
    let repeated = harness.submit(complete_submission(&step)).await.unwrap();
    assert_eq!(repeated.step_status, StepStatus::Completed);
}

async fn an_agent_in_another_session_reviews_a_result(harness: &Harness) {
    let plan = gated(harness, all_gates(ReviewBy::OtherSession)).await;
    let step = claim_in(harness, plan, "worker").await;
    harness.submit(complete_submission(&step)).await.unwrap();
    let decide = |session: &str| ReviewDecision {
        session: Some(onward_core::id::SessionId::new(session)),
        is_by_agent: true,
        ..ReviewDecision::new(step.step, Decision::Approve, None)
    };
    let agent = agent(harness);
    let own = harness.engine.decide_review(&agent, decide("worker")).await;
    assert_eq!(code(own), "forbidden");
    let other = harness
        .engine
        .decide_review(&agent, decide("reviewer"))
        .await;
    assert_eq!(other.unwrap().step_status, StepStatus::Completed);
}

async fn the_next_step_is_claimed_with_a_result_under_review(harness: &Harness) {
    let plan = gated(harness, all_gates(ReviewBy::Person)).await;
    let step = harness.claim(plan).await;
    let submission = Submission {
        claim_next: true,
        ..complete_submission(&step)
    };
    let submitted = harness.submit(submission).await.unwrap();
    let next = claimed_step(submitted.next_step.unwrap());
    assert_eq!(next.order, 2);
    harness.complete(&next, "done").await;
    // Only a decision lets the plan end.
    let next = harness.next_step(plan).await;
    assert!(matches!(next, NextStep::AwaitingReview { .. }));
}

async fn gates_and_evidence_survive_export_and_import(harness: &Harness) {
    let plan = gated(harness, all_gates(ReviewBy::OtherSession)).await;
    let step = harness.claim(plan).await;
    harness.submit(complete_submission(&step)).await.unwrap();
    let document = harness.engine.export(&harness.me, plan).await.unwrap();
    let exported = &document["steps"][0];
    assert_eq!(
        exported["acceptanceCriteria"],
        json!(["The list is complete."])
    );
    assert_eq!(exported["reviewBy"], json!("other_session"));
    assert_eq!(exported["resultSchema"]["required"], json!(["moons"]));
    let under_review = &exported["resultUnderReview"];
    assert_eq!(under_review["evidence"][0]["kind"], json!("url"));
    let before = harness.engine.full_plan(&harness.me, plan).await.unwrap();
    harness.engine.delete_plan(&harness.me, plan).await.unwrap();
    harness.engine.import(&harness.me, &document).await.unwrap();
    let after = harness.engine.full_plan(&harness.me, plan).await.unwrap();
    assert_eq!(after.plan.steps[0].spec, before.plan.steps[0].spec);
    let review = |full: &onward_engine::transfer::FullPlan| {
        let state = &full.plan.steps[0].state;
        let StepState::AwaitingInput { review, .. } = state else {
            panic!("{state:?}");
        };
        review.clone()
    };
    assert_eq!(review(&after), review(&before));
    let approve = ReviewDecision::new(step.step, Decision::Approve, None);
    harness
        .engine
        .decide_review(&harness.me, approve)
        .await
        .unwrap();
    let document = harness.engine.export(&harness.me, plan).await.unwrap();
    assert_eq!(document["steps"][0]["evidence"][0]["kind"], json!("url"));
}

async fn a_creation_with_other_gates_has_another_digest(harness: &Harness) {
    let create = |gates: Option<Gates>| {
        let mut step = harness.step("Collect the moons.");
        step.gates = gates.map(Arc::new);
        let id = harness.engine.new_plan_id();
        let command = CreatePlan::new(id, "Moons", "Which moons are there?", vec![step]);
        let key = Some("moons".to_owned());
        harness.engine.create_plan(&harness.me, command, key)
    };
    create(Some(all_gates(ReviewBy::Person))).await.unwrap();
    create(Some(all_gates(ReviewBy::Person))).await.unwrap();
    for other in [None, Some(all_gates(ReviewBy::OtherSession))] {
        assert_eq!(code(create(other).await), "conflict");
    }
}

/// The response is rebuilt from the audit trail, after the review was decided.
async fn a_repeated_submission_returns_the_result_under_review(harness: &Harness) {
    let plan = gated(harness, all_gates(ReviewBy::Person)).await;
    let first = claim_in(harness, plan, "one").await;
    let second = claim_in(harness, plan, "two").await;
    harness.submit(complete_submission(&first)).await.unwrap();
    let last = Submission {
        claim_next: true,
        ..submission_for(&second, "Written up.")
    };
    let response = harness.submit(last.clone()).await.unwrap();
    let Some(NextStep::AwaitingReview { review, .. }) = &response.next_step else {
        panic!("{response:?}");
    };
    let summary = review.result.as_ref().map(|result| result.summary.as_str());
    assert_eq!(summary, Some("Four moons."));
    let approve = ReviewDecision::new(first.step, Decision::Approve, None);
    let approved = harness.engine.decide_review(&harness.me, approve).await;
    assert_eq!(approved.unwrap().step_status, StepStatus::Completed);
    assert_eq!(harness.submit(last).await.unwrap(), response);
}

on_both_databases![
    a_repeated_submission_returns_the_result_under_review,
    a_rejected_submission_keeps_the_work_and_the_corrected_one_is_accepted,
    evidence_is_in_the_context_of_later_steps,
    a_result_that_requires_a_review_waits_for_a_person,
    an_agent_in_another_session_reviews_a_result,
    the_next_step_is_claimed_with_a_result_under_review,
    gates_and_evidence_survive_export_and_import,
    a_creation_with_other_gates_has_another_digest,
];
