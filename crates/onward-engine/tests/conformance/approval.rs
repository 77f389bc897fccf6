//! Plans that a person approves before their first step is assigned, also with edits.

use onward_core::PlanId;
use onward_core::command::{CreatePlan, Modification};
use onward_core::event::Decision;
use onward_core::finding::Kind;
use onward_core::plan::PlanFailure;
use onward_core::step::ReviewScope;
use onward_core::{Refusal, StepId};
use onward_engine::Error;
use onward_engine::create::NewPlan;
use onward_engine::next_step::NextStep;
use onward_engine::step::{ReviewDecision, ReviewResponse};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, document};

fn draft(harness: &Harness, steps: u32) -> CreatePlan {
    CreatePlan {
        approval: Some(harness.engine.new_review_id()),
        ..harness.draft(steps)
    }
}

async fn create(harness: &Harness, steps: u32) -> NewPlan {
    let draft = draft(harness, steps);
    let created = harness.engine.create_plan(&harness.me, draft, None).await;
    created.expect("plan was created")
}

fn ids(plan: &NewPlan) -> Vec<StepId> {
    plan.created.steps.iter().map(|step| step.id).collect()
}

async fn decide(
    harness: &Harness,
    plan: &NewPlan,
    decision: Decision,
    feedback: Option<&str>,
    edits: Vec<Modification>,
) -> Result<ReviewResponse, Error> {
    let (review, step) = plan.approval.expect("plan requires approval");
    let decision = ReviewDecision {
        review: Some(review),
        edits,
        ..ReviewDecision::new(step, decision, feedback.map(str::to_owned))
    };
    harness.engine.decide_review(&harness.me, decision).await
}

async fn instructions(harness: &Harness, plan: PlanId) -> Vec<String> {
    let full = harness.engine.full_plan(&harness.me, plan).await.unwrap();
    let steps = full.plan.steps.iter();
    steps.map(|step| step.spec.instructions.clone()).collect()
}

async fn no_step_is_assigned_before_the_approval(harness: &Harness) {
    let plan = create(harness, 2).await;
    let id = plan.created.plan;
    assert_eq!(harness.plan_status(id).await.as_str(), "awaiting_review");
    let NextStep::AwaitingReview { step, review, .. } = harness.next_step(id).await else {
        panic!("no review is pending")
    };
    assert_eq!(plan.approval, Some((review.id, step)));
    assert_eq!(review.scope, ReviewScope::Start);
    let open = harness.engine.open_reviews(&harness.me, 10).await.unwrap();
    assert_eq!((open.len(), open[0].id), (1, review.id));
    let claimed = harness
        .engine
        .claim_notifications(&harness.me.tenant, &[Kind::Review], 10);
    assert_eq!(claimed.await.unwrap().notifications.len(), 1);

    let decided = decide(harness, &plan, Decision::Approve, None, Vec::new()).await;
    let decided = decided.unwrap();
    assert_eq!(decided.plan_status.as_str(), "executing");
    assert_eq!(decided.step_status.as_str(), "pending");
    let repeated = decide(harness, &plan, Decision::Approve, None, Vec::new()).await;
    assert_eq!(repeated.unwrap(), decided);
    let first = harness.claim(id).await;
    assert_eq!((first.order, first.attempt), (1, 1));
    harness.complete(&first, "done").await;
    harness.complete_steps(id, 1).await;
    assert_eq!(harness.plan_status(id).await.as_str(), "completed");
}

async fn edits_and_approval_are_one_transaction(harness: &Harness) {
    let plan = create(harness, 3).await;
    let (id, steps) = (plan.created.plan, ids(&plan));
    let update = |step: StepId, text: &str| Modification::UpdateInstructions {
        step,
        instructions: text.to_owned(),
    };
    let before = document(&harness.engine, &harness.me, id).await;
    let invalid = vec![update(steps[1], "changed"), update(steps[2], " ")];
    let rejected = decide(harness, &plan, Decision::Approve, None, invalid).await;
    let Err(Error::Rejected {
        refusal: Refusal::InvalidInput(issues),
        ..
    }) = rejected
    else {
        panic!("{rejected:?}")
    };
    assert_eq!(issues[0].path, "edits[1].instructions");
    assert_eq!(document(&harness.engine, &harness.me, id).await, before);

    let edits = || {
        vec![
            Modification::RemoveStep { step: steps[0] },
            update(steps[1], "changed"),
            Modification::AddSteps {
                steps: vec![harness.step("added")],
                insert_after: None,
            },
        ]
    };
    let decided = decide(harness, &plan, Decision::Approve, Some("ok"), edits()).await;
    assert_eq!(decided.unwrap().plan_status.as_str(), "executing");
    assert_eq!(instructions(harness, id).await, ["changed", "3", "added"]);
    let full = harness.engine.full_plan(&harness.me, id).await.unwrap();
    let last = full.events.last().unwrap();
    let commits = full.events.iter().filter(|entry| entry.seq > 3);
    assert!(
        commits
            .clone()
            .all(|entry| entry.commit_seq == last.commit_seq)
    );
    assert_eq!(harness.claim(id).await.step, steps[1]);
}

async fn a_repeated_approval_makes_no_further_edits(harness: &Harness) {
    let plan = create(harness, 1).await;
    let added = || {
        vec![Modification::AddSteps {
            steps: vec![harness.step("added")],
            insert_after: None,
        }]
    };
    let first = decide(harness, &plan, Decision::Approve, None, added()).await;
    let again = decide(harness, &plan, Decision::Approve, None, added()).await;
    assert_eq!(first.unwrap(), again.unwrap());
    let id = plan.created.plan;
    assert_eq!(instructions(harness, id).await, ["1", "added"]);
}

async fn edits_require_the_approval_of_a_plan(harness: &Harness) {
    let plan = create(harness, 2).await;
    let edits = || {
        vec![Modification::RemoveStep {
            step: ids(&plan)[1],
        }]
    };
    let rejected = decide(harness, &plan, Decision::Reject, None, edits()).await;
    assert_eq!(code(rejected), "invalid_input");
    let id = plan.created.plan;
    assert_eq!(harness.plan_status(id).await.as_str(), "awaiting_review");
    assert_eq!(instructions(harness, id).await, ["1", "2"]);
}

async fn a_rejection_reaches_the_agent(harness: &Harness) {
    let plan = create(harness, 2).await;
    let id = plan.created.plan;
    let message = Some("not worth it");
    let decided = decide(harness, &plan, Decision::Reject, message, Vec::new()).await;
    let reason = PlanFailure::Rejected(message.map(str::to_owned));
    assert_eq!(decided.unwrap().failure, Some(reason.clone()));
    let NextStep::Failed { reason: received } = harness.next_step(id).await else {
        panic!("the plan has not failed")
    };
    assert_eq!(received, reason);
}

async fn a_repeated_creation_returns_the_same_approval(harness: &Harness) {
    let draft = draft(harness, 1);
    let key = Some("key".to_owned());
    let engine = &harness.engine;
    let first = engine.create_plan(&harness.me, draft.clone(), key.clone());
    let first = first.await.unwrap();
    let mut again = draft.clone();
    again.approval = Some(engine.new_review_id());
    let again = engine.create_plan(&harness.me, again, key.clone()).await;
    assert_eq!(again.unwrap().approval, first.approval);
    let other = CreatePlan {
        approval: None,
        ..draft
    };
    let other = engine.create_plan(&harness.me, other, key).await;
    assert_eq!(code(other), "conflict");
}

async fn a_plan_that_awaits_approval_can_be_exported_and_imported(harness: &Harness) {
    let plan = create(harness, 2).await;
    let id = plan.created.plan;
    let exported = document(&harness.engine, &harness.me, id).await;
    harness.engine.delete_plan(&harness.me, id).await.unwrap();
    harness.engine.import(&harness.me, &exported).await.unwrap();
    assert_eq!(document(&harness.engine, &harness.me, id).await, exported);
    let decided = decide(harness, &plan, Decision::Approve, None, Vec::new()).await;
    decided.unwrap();
    assert_eq!(harness.claim(id).await.order, 1);
}

on_both_databases![
    no_step_is_assigned_before_the_approval,
    edits_and_approval_are_one_transaction,
    a_repeated_approval_makes_no_further_edits,
    edits_require_the_approval_of_a_plan,
    a_rejection_reaches_the_agent,
    a_repeated_creation_returns_the_same_approval,
    a_plan_that_awaits_approval_can_be_exported_and_imported,
];
