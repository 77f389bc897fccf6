//! Branches: the first matching condition decides, and its effect is stored.

use onward_core::PlanId;
use onward_core::branch::{Effect, NoEffect};
use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::plan::PlanFailure;
use onward_engine::next_step::NextStep;
use onward_engine::submit::SubmitResponse;
use serde_json::json;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, submission_for};

pub(crate) fn skip_to(order: u32) -> ActionSpec {
    ActionSpec::SkipTo(StepRef::Order(order))
}

/// Claims the next step and completes it with this confidence.
async fn complete_with_confidence(
    harness: &Harness,
    plan: PlanId,
    confidence: f64,
) -> SubmitResponse {
    let step = harness.claim(plan).await;
    let mut submission = submission_for(&step, "done");
    submission.result.confidence = Some(confidence);
    submission.result.data = Some(json!({ "verdict": "keep" }).into());
    harness.submit(submission).await.unwrap()
}

async fn takes_the_first_matching_branch_and_skips_the_rest(harness: &Harness) {
    let branches = vec![
        harness.branch(1, "confidence > 0.9", skip_to(3)),
        harness.branch(1, "result.verdict === \"keep\"", ActionSpec::Continue),
        harness.branch(1, "true", ActionSpec::Fail { reason: None }),
    ];
    let plan = harness.plan_with_branches(3, branches).await;
    let response = complete_with_confidence(harness, plan.id, 0.5).await;
    let matched: Vec<bool> = response
        .verdicts
        .iter()
        .map(|verdict| verdict.matched)
        .collect();
    assert_eq!(matched, [false, true]);
    assert_eq!(
        response.taken_branch,
        Some((plan.branches[1], Effect::Continued))
    );
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["completed", "pending", "pending"]
    );
}

async fn a_branch_skips_several_steps(harness: &Harness) {
    let branches = vec![harness.branch(1, "confidence >= 0.8", skip_to(5))];
    let plan = harness.plan_with_branches(6, branches).await;
    let response = complete_with_confidence(harness, plan.id, 0.8).await;
    let (_, effect) = response.taken_branch.unwrap();
    let (target, steps) = (plan.steps[4], plan.steps[1..4].to_vec());
    assert_eq!(effect, Effect::Skipped { target, steps });
    assert_eq!(response.progress, 67);
    let expected = [
        "completed",
        "skipped",
        "skipped",
        "skipped",
        "pending",
        "pending",
    ];
    assert_eq!(harness.step_statuses(plan.id).await, expected);
    assert_eq!(harness.claim(plan.id).await.order, 5);
}

async fn a_skipping_branch_leaves_steps_in_progress_unchanged(harness: &Harness) {
    let branches = vec![harness.branch(1, "true", skip_to(4))];
    let plan = harness.plan_with_branches(4, branches).await;
    let first = harness.claim(plan.id).await;
    harness.claim(plan.id).await;
    harness.complete(&first, "done").await;
    let expected = ["completed", "in_progress", "skipped", "pending"];
    assert_eq!(harness.step_statuses(plan.id).await, expected);
}

async fn a_skipped_step_unblocks_its_dependents(harness: &Harness) {
    let mut draft = harness.draft(4);
    draft.branches = vec![harness.branch(1, "true", skip_to(4))];
    draft.steps[3].depends_on = vec![2, 3];
    let plan = harness.create(draft).await;
    complete_with_confidence(harness, plan.id, 1.0).await;
    assert_eq!(harness.claim(plan.id).await.order, 4);
}

async fn reports_no_effect_for_a_branch_whose_target_is_not_pending(harness: &Harness) {
    let branches = vec![harness.branch(1, "true", skip_to(3))];
    let plan = harness.plan_with_branches(3, branches).await;
    let first = harness.claim(plan.id).await;
    harness.claim(plan.id).await;
    harness.claim(plan.id).await;
    let response = harness.complete(&first, "done").await;
    let reason = NoEffect::TargetNotPending;
    assert_eq!(
        response.taken_branch,
        Some((plan.branches[0], Effect::Nothing { reason }))
    );
}

async fn reports_no_effect_for_a_branch_whose_target_was_moved_before_it(harness: &Harness) {
    let branches = vec![harness.branch(1, "true", skip_to(3))];
    let plan = harness.plan_with_branches(3, branches).await;
    let first = harness.claim(plan.id).await;
    let [a, b, c] = [plan.steps[0], plan.steps[1], plan.steps[2]];
    let reversed = Modification::ReorderSteps {
        steps: vec![c, b, a],
    };
    harness.modify(plan.id, reversed).await.unwrap();
    let response = harness.complete(&first, "done").await;
    let reason = NoEffect::TargetNotAfter;
    assert_eq!(
        response.taken_branch,
        Some((plan.branches[0], Effect::Nothing { reason }))
    );
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["pending", "pending", "completed"]
    );
}

async fn a_branch_inserts_steps_directly_after_its_step(harness: &Harness) {
    let mut added = vec![harness.step("a"), harness.step("b")];
    // The plan has three steps, so `a` is 4 and `b` is 5.
    added[0].depends_on = vec![5];
    added[1].depends_on = vec![1, 2];
    let (a, b) = (added[0].id, added[1].id);
    let branches = vec![harness.branch(1, "true", ActionSpec::AddSteps(added))];
    let plan = harness.plan_with_branches(3, branches).await;
    let response = complete_with_confidence(harness, plan.id, 1.0).await;
    let Some((_, Effect::Added { steps })) = response.taken_branch else {
        panic!("no steps were added")
    };
    assert_eq!(steps.len(), 2);
    assert_eq!(response.progress, 20);
    let [one, two, three] = [plan.steps[0], plan.steps[1], plan.steps[2]];
    assert_eq!(harness.step_ids(plan.id).await, [one, a, b, two, three]);
    for expected in [two, b, a, three] {
        let step = harness.claim(plan.id).await;
        assert_eq!(step.step, expected);
        harness.complete(&step, "done").await;
    }
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "completed");
}

async fn a_plan_continues_when_a_branch_of_the_last_step_adds_steps(harness: &Harness) {
    let added = ActionSpec::AddSteps(vec![harness.step("more")]);
    let branches = vec![harness.branch(1, "true", added)];
    let plan = harness.plan_with_branches(1, branches).await;
    assert_eq!(
        complete_with_confidence(harness, plan.id, 1.0)
            .await
            .plan_status
            .as_str(),
        "executing"
    );
    harness.complete_steps(plan.id, 1).await;
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "completed");
}

async fn a_fail_branch_fails_the_plan_immediately(harness: &Harness) {
    let reason = Some("no sources".to_owned());
    let action = ActionSpec::Fail {
        reason: reason.clone(),
    };
    let plan = harness
        .plan_with_branches(3, vec![harness.branch(1, "true", action)])
        .await;
    let response = complete_with_confidence(harness, plan.id, 1.0).await;
    assert_eq!(response.plan_status.as_str(), "failed");
    let NextStep::Failed { reason: reported } = harness.next_step(plan.id).await else {
        panic!("plan has not failed")
    };
    assert_eq!(reported, PlanFailure::Branch(reason));
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["completed", "pending", "pending"]
    );
    let expected = ["step_completed", "branch_taken fail", "plan_failed"];
    assert_eq!(harness.audit_trail_after(plan.id, 3).await, expected);
}

async fn treats_a_condition_that_fails_to_evaluate_as_false_and_reports_the_error(
    harness: &Harness,
) {
    let branches = vec![harness.branch(1, "result.missing.deep > 3", skip_to(3))];
    let plan = harness.plan_with_branches(3, branches).await;
    let response = complete_with_confidence(harness, plan.id, 1.0).await;
    assert_eq!(response.taken_branch, None);
    assert!(!response.verdicts[0].matched);
    let error = response.verdicts[0].error.as_ref().unwrap().to_string();
    let events = harness
        .engine
        .audit_trail(&harness.me, plan.id, 3, 1)
        .await
        .unwrap();
    let details = events[0].details.to_string();
    assert!(
        details.contains(&json!(error).to_string()),
        "{details}: {error}"
    );
}

async fn evaluates_an_added_branch_after_existing_branches(harness: &Harness) {
    let branches = vec![harness.branch(2, "true", ActionSpec::Continue)];
    let plan = harness.plan_with_branches(3, branches).await;
    for action in [skip_to(3), ActionSpec::Fail { reason: None }] {
        let branch = harness.branch(1, "confidence > 0.5", action);
        harness
            .modify(plan.id, Modification::AddBranch { branch })
            .await
            .unwrap();
    }
    let response = complete_with_confidence(harness, plan.id, 1.0).await;
    assert_eq!(response.verdicts.len(), 1);
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["completed", "skipped", "pending"]
    );
}

async fn rejects_more_than_100_branches_per_step(harness: &Harness) {
    let branches = (0..100).map(|_| harness.branch(1, "false", ActionSpec::Continue));
    let plan = harness.plan_with_branches(2, branches.collect()).await;
    let branch = harness.branch(1, "true", ActionSpec::Continue);
    let rejected = harness
        .modify(plan.id, Modification::AddBranch { branch })
        .await;
    assert_eq!(code(rejected), "limit_exceeded");
    assert_eq!(
        complete_with_confidence(harness, plan.id, 1.0)
            .await
            .verdicts
            .len(),
        100
    );
}

on_both_databases![
    takes_the_first_matching_branch_and_skips_the_rest,
    a_branch_skips_several_steps,
    a_skipping_branch_leaves_steps_in_progress_unchanged,
    a_skipped_step_unblocks_its_dependents,
    reports_no_effect_for_a_branch_whose_target_is_not_pending,
    reports_no_effect_for_a_branch_whose_target_was_moved_before_it,
    a_branch_inserts_steps_directly_after_its_step,
    a_plan_continues_when_a_branch_of_the_last_step_adds_steps,
    a_fail_branch_fails_the_plan_immediately,
    treats_a_condition_that_fails_to_evaluate_as_false_and_reports_the_error,
    evaluates_an_added_branch_after_existing_branches,
    rejects_more_than_100_branches_per_step,
];
