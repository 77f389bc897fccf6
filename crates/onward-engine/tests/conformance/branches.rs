//! Branches: the first that is true decides, and what it does reaches the rows.

use onward_core::PlanId;
use onward_core::branch::{Effect, NoEffect};
use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::plan::PlanFailure;
use onward_engine::next::Next;
use onward_engine::submit::Submitted;
use serde_json::json;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, result};

fn to(order: u32) -> ActionSpec {
    ActionSpec::SkipTo(StepRef::Order(order))
}

/// Takes the next step on and hands it in with this confidence.
async fn sure(desk: &Desk, plan: PlanId, confidence: f64) -> Submitted {
    let step = desk.take(plan).await;
    let mut submission = result(&step, "done");
    submission.result.confidence = Some(confidence);
    submission.result.data = Some(json!({ "verdict": "keep" }));
    desk.submit(submission).await.unwrap()
}

async fn the_first_branch_that_is_true_decides_and_the_rest_is_not_tried(desk: &Desk) {
    let branches = vec![
        desk.branch(1, "confidence > 0.9", to(3)),
        desk.branch(1, "result.verdict === \"keep\"", ActionSpec::Continue),
        desk.branch(1, "true", ActionSpec::Fail { reason: None }),
    ];
    let plan = desk.branching(3, branches).await;
    let answer = sure(desk, plan.id, 0.5).await;
    let matched: Vec<bool> = answer
        .verdicts
        .iter()
        .map(|verdict| verdict.matched)
        .collect();
    assert_eq!(matched, [false, true]);
    assert_eq!(answer.taken, Some((plan.branches[1], Effect::Continued)));
    assert_eq!(
        desk.statuses(plan.id).await,
        ["completed", "pending", "pending"]
    );
}

async fn a_branch_passes_over_several_steps(desk: &Desk) {
    let branches = vec![desk.branch(1, "confidence >= 0.8", to(5))];
    let plan = desk.branching(6, branches).await;
    let answer = sure(desk, plan.id, 0.8).await;
    let (_, effect) = answer.taken.unwrap();
    let (target, steps) = (plan.steps[4], plan.steps[1..4].to_vec());
    assert_eq!(effect, Effect::Skipped { target, steps });
    assert_eq!(answer.progress, 67);
    let expected = [
        "completed",
        "skipped",
        "skipped",
        "skipped",
        "pending",
        "pending",
    ];
    assert_eq!(desk.statuses(plan.id).await, expected);
    assert_eq!(desk.take(plan.id).await.order, 5);
}

async fn a_branch_leaves_what_is_under_way_between_alone(desk: &Desk) {
    let branches = vec![desk.branch(1, "true", to(4))];
    let plan = desk.branching(4, branches).await;
    let first = desk.take(plan.id).await;
    desk.take(plan.id).await;
    desk.hand_in(&first, "done").await;
    let expected = ["completed", "in_progress", "skipped", "pending"];
    assert_eq!(desk.statuses(plan.id).await, expected);
}

async fn a_skipped_step_frees_those_that_wait_for_it(desk: &Desk) {
    let mut draft = desk.draft(4);
    draft.branches = vec![desk.branch(1, "true", to(4))];
    draft.steps[3].depends_on = vec![2, 3];
    let plan = desk.create(draft).await;
    sure(desk, plan.id, 1.0).await;
    assert_eq!(desk.take(plan.id).await.order, 4);
}

async fn a_branch_whose_target_is_no_longer_pending_does_nothing_and_says_so(desk: &Desk) {
    let branches = vec![desk.branch(1, "true", to(3))];
    let plan = desk.branching(3, branches).await;
    let first = desk.take(plan.id).await;
    desk.take(plan.id).await;
    desk.take(plan.id).await;
    let answer = desk.hand_in(&first, "done").await;
    let why = NoEffect::TargetNotPending;
    assert_eq!(
        answer.taken,
        Some((plan.branches[0], Effect::Nothing { why }))
    );
}

async fn a_branch_whose_target_is_no_longer_behind_it_does_nothing_and_says_so(desk: &Desk) {
    let branches = vec![desk.branch(1, "true", to(3))];
    let plan = desk.branching(3, branches).await;
    let first = desk.take(plan.id).await;
    let [a, b, c] = [plan.steps[0], plan.steps[1], plan.steps[2]];
    let turned = Modification::ReorderSteps {
        steps: vec![c, b, a],
    };
    desk.modify(plan.id, turned).await.unwrap();
    let answer = desk.hand_in(&first, "done").await;
    let why = NoEffect::TargetNotAfter;
    assert_eq!(
        answer.taken,
        Some((plan.branches[0], Effect::Nothing { why }))
    );
    assert_eq!(
        desk.statuses(plan.id).await,
        ["pending", "pending", "completed"]
    );
}

async fn a_branch_adds_steps_right_behind_its_own(desk: &Desk) {
    let mut added = vec![desk.step("a"), desk.step("b")];
    // Orders as they will be: `a` is 2, `b` is 3, the old second step is 4.
    added[0].depends_on = vec![3];
    added[1].depends_on = vec![1, 4];
    let (a, b) = (added[0].id, added[1].id);
    let branches = vec![desk.branch(1, "true", ActionSpec::AddSteps(added))];
    let plan = desk.branching(3, branches).await;
    let answer = sure(desk, plan.id, 1.0).await;
    let Some((_, Effect::Added { steps })) = answer.taken else {
        panic!("steps were added")
    };
    assert_eq!(steps.len(), 2);
    assert_eq!(answer.progress, 20);
    let [one, two, three] = [plan.steps[0], plan.steps[1], plan.steps[2]];
    assert_eq!(desk.order(plan.id).await, [one, a, b, two, three]);
    for expected in [two, b, a, three] {
        let step = desk.take(plan.id).await;
        assert_eq!(step.step, expected);
        desk.hand_in(&step, "done").await;
    }
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "completed");
}

async fn a_last_step_whose_branch_adds_steps_does_not_end_the_plan(desk: &Desk) {
    let added = ActionSpec::AddSteps(vec![desk.step("more")]);
    let branches = vec![desk.branch(1, "true", added)];
    let plan = desk.branching(1, branches).await;
    assert_eq!(
        sure(desk, plan.id, 1.0).await.plan_status.as_str(),
        "executing"
    );
    desk.work_off(plan.id, 1).await;
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "completed");
}

async fn a_branch_fails_the_plan_at_once(desk: &Desk) {
    let reason = Some("no sources".to_owned());
    let action = ActionSpec::Fail {
        reason: reason.clone(),
    };
    let plan = desk
        .branching(3, vec![desk.branch(1, "true", action)])
        .await;
    let answer = sure(desk, plan.id, 1.0).await;
    assert_eq!(answer.plan_status.as_str(), "failed");
    let Next::Failed { reason: told } = desk.ask(plan.id).await else {
        panic!("the plan was given up")
    };
    assert_eq!(told, PlanFailure::Branch(reason));
    assert_eq!(
        desk.statuses(plan.id).await,
        ["completed", "pending", "pending"]
    );
    let expected = ["step_completed", "branch_taken fail", "plan_failed"];
    assert_eq!(desk.trail_behind(plan.id, 2).await, expected);
}

async fn a_condition_that_cannot_be_evaluated_counts_as_false_and_says_why(desk: &Desk) {
    let branches = vec![desk.branch(1, "result.missing.deep > 3", to(3))];
    let plan = desk.branching(3, branches).await;
    let answer = sure(desk, plan.id, 1.0).await;
    assert_eq!(answer.taken, None);
    assert!(!answer.verdicts[0].matched);
    assert!(
        answer.verdicts[0]
            .error
            .as_ref()
            .unwrap()
            .contains("missing")
    );
    let trail = desk.engine.trail(&desk.me, plan.id, 2, 1).await.unwrap();
    assert!(trail[0].details.to_string().contains("missing"));
}

async fn a_branch_that_is_added_is_tried_after_those_that_were_there(desk: &Desk) {
    let branches = vec![desk.branch(2, "true", ActionSpec::Continue)];
    let plan = desk.branching(3, branches).await;
    for action in [to(3), ActionSpec::Fail { reason: None }] {
        let branch = desk.branch(1, "confidence > 0.5", action);
        desk.modify(plan.id, Modification::AddBranch { branch })
            .await
            .unwrap();
    }
    let answer = sure(desk, plan.id, 1.0).await;
    assert_eq!(answer.verdicts.len(), 1);
    assert_eq!(
        desk.statuses(plan.id).await,
        ["completed", "skipped", "pending"]
    );
}

async fn a_step_takes_no_more_than_100_branches(desk: &Desk) {
    let branches = (0..100).map(|_| desk.branch(1, "false", ActionSpec::Continue));
    let plan = desk.branching(2, branches.collect()).await;
    let branch = desk.branch(1, "true", ActionSpec::Continue);
    let refused = desk
        .modify(plan.id, Modification::AddBranch { branch })
        .await;
    assert_eq!(code(refused), "limit_exceeded");
    assert_eq!(sure(desk, plan.id, 1.0).await.verdicts.len(), 100);
}

on_both_databases![
    the_first_branch_that_is_true_decides_and_the_rest_is_not_tried,
    a_branch_passes_over_several_steps,
    a_branch_leaves_what_is_under_way_between_alone,
    a_skipped_step_frees_those_that_wait_for_it,
    a_branch_whose_target_is_no_longer_pending_does_nothing_and_says_so,
    a_branch_whose_target_is_no_longer_behind_it_does_nothing_and_says_so,
    a_branch_adds_steps_right_behind_its_own,
    a_last_step_whose_branch_adds_steps_does_not_end_the_plan,
    a_branch_fails_the_plan_at_once,
    a_condition_that_cannot_be_evaluated_counts_as_false_and_says_why,
    a_branch_that_is_added_is_tried_after_those_that_were_there,
    a_step_takes_no_more_than_100_branches,
];
