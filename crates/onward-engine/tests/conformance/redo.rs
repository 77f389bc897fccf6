//! Redone steps and forked plans: rows, lists, contexts, export and import.

use onward_core::branch::Action;
use onward_core::command::{ActionSpec, ForkPlan, Modification, StepRef};
use onward_core::plan::ForkedFrom;
use onward_core::{PlanId, StepId};
use onward_engine::create::NewPlan;
use onward_engine::next_step::NextStep;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{assert_reimported, code, document, submission_for};

fn redo(step: StepId, cascade: bool) -> Modification {
    Modification::RedoStep {
        step,
        reason: "wrong source".to_owned(),
        cascade,
        ids: Vec::new(),
    }
}

/// A chain: each step depends on the previous one.
async fn chain(harness: &Harness, steps: u32) -> (PlanId, Vec<StepId>) {
    let mut draft = harness.draft(steps);
    for (order, step) in (1u32..).zip(&mut draft.steps).skip(1) {
        step.depends_on = vec![order - 1];
    }
    let plan = harness.create(draft).await;
    (plan.id, plan.steps)
}

async fn depends_on(harness: &Harness, plan: PlanId, step: StepId) -> Vec<u32> {
    let page = harness.engine.list_steps(&harness.me, plan, None, 0, 100);
    let page = page.await.unwrap();
    page.depends_on.get(&step).cloned().unwrap_or_default()
}

async fn a_superseded_step_has_no_notes_for_the_output(harness: &Harness) {
    let (plan, steps) = chain(harness, 2).await;
    for (number, redone) in [(1, Some(steps[0])), (2, None), (3, None)] {
        let step = harness.claim(plan).await;
        let mut submission = submission_for(&step, "found");
        let notes = format!("as table {number}");
        submission.result.formatting_notes = Some(notes);
        harness.submit(submission).await.unwrap();
        if let Some(redone) = redone {
            harness.modify(plan, redo(redone, false)).await.unwrap();
        }
    }
    let NextStep::Complete(notes) = harness.next_step(plan).await else {
        panic!("the plan is not completed")
    };
    let notes: Vec<&str> = notes
        .steps
        .iter()
        .map(|(_, _, note)| note.as_str())
        .collect();
    assert_eq!(notes, ["as table 2", "as table 3"]);
}

async fn a_redone_step_is_superseded_by_the_step_after_it(harness: &Harness) {
    let (plan, steps) = chain(harness, 3).await;
    harness.complete_steps(plan, 2).await;
    let modified = harness.modify(plan, redo(steps[0], false)).await.unwrap();
    let ids = harness.step_ids(plan).await;
    let successor = ids[1];
    assert_eq!(ids, [steps[0], successor, steps[1], steps[2]]);
    let changed: Vec<_> = (modified.steps.iter())
        .map(|line| (line.id, line.supersedes, line.superseded_by))
        .collect();
    assert_eq!(
        changed,
        [
            (steps[0], None, Some(successor)),
            (successor, Some(steps[0]), None)
        ]
    );
    let counts = modified.head.counts;
    assert_eq!(
        (counts.completed, counts.pending, counts.superseded),
        (1, 2, 1)
    );
    assert_eq!((counts.progress(), counts.total()), (33, 3));
    // Step 2 is completed and keeps its result; step 3 depends only on it.
    assert_eq!(depends_on(harness, plan, steps[1]).await, [1]);
    let status = harness.status(plan).await;
    assert_eq!(status.completed.len(), 1);
    assert_eq!(status.sheet.head.counts, counts);
    let next = harness.claim(plan).await;
    assert_eq!((next.step, next.supersedes), (successor, Some(steps[0])));
    assert!(next.instructions.ends_with("wrong source"));
    harness.complete(&next, "again").await;
    harness.complete_steps(plan, 1).await;
    assert_eq!(harness.plan_status(plan).await.as_str(), "completed");
}

async fn pending_steps_wait_for_the_successor(harness: &Harness) {
    let (plan, steps) = chain(harness, 3).await;
    harness.complete_steps(plan, 1).await;
    harness.modify(plan, redo(steps[0], false)).await.unwrap();
    assert_eq!(depends_on(harness, plan, steps[1]).await, [2]);
    let next = harness.claim(plan).await;
    assert_eq!(next.order, 2);
    let none = harness.next_step(plan).await;
    assert!(
        matches!(
            none,
            onward_engine::next_step::NextStep::NoPendingSteps { blocked: 2, .. }
        ),
        "{none:?}"
    );
    harness.complete(&next, "again").await;
    assert_eq!(harness.claim(plan).await.step, steps[1]);
}

async fn cascade_redoes_the_completed_dependents(harness: &Harness) {
    let (plan, steps) = chain(harness, 4).await;
    harness.complete_steps(plan, 3).await;
    let modified = harness.modify(plan, redo(steps[0], true)).await.unwrap();
    assert_eq!((modified.steps.len(), modified.omitted), (6, 0));
    let ids = harness.step_ids(plan).await;
    assert_eq!([ids[0], ids[2], ids[4], ids[6]], steps[..]);
    for (step, expected) in [(ids[3], 2), (ids[5], 4), (ids[6], 6), (ids[4], 3)] {
        assert_eq!(depends_on(harness, plan, step).await, [expected]);
    }
    for expected in [ids[1], ids[3], ids[5], ids[6]] {
        let step = harness.claim(plan).await;
        assert_eq!(step.step, expected);
        harness.complete(&step, "again").await;
    }
    assert_eq!(harness.plan_status(plan).await.as_str(), "completed");
}

async fn branches_move_to_the_successor(harness: &Harness) {
    let mut added = harness.step("added");
    added.depends_on = vec![1, 3];
    let branches = vec![
        harness.branch(1, "false", ActionSpec::AddSteps(vec![added])),
        harness.branch(1, "true", ActionSpec::SkipTo(StepRef::Order(3))),
    ];
    let plan = harness.plan_with_branches(4, branches).await;
    harness.complete_steps(plan.id, 2).await;
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["completed", "skipped", "completed", "pending"]
    );
    // Also the target of the branch.
    harness
        .modify(plan.id, redo(plan.steps[2], false))
        .await
        .unwrap();
    harness
        .modify(plan.id, redo(plan.steps[0], false))
        .await
        .unwrap();
    harness
        .modify(plan.id, redo(plan.steps[1], false))
        .await
        .unwrap();
    let step = harness.claim(plan.id).await;
    assert_eq!(step.surroundings.branches.len(), 2);
    let response = harness.complete(&step, "again").await;
    assert!(response.taken_branch.is_some());
    assert_eq!(
        harness.step_statuses(plan.id).await,
        [
            "completed",
            "completed",
            "skipped",
            "skipped",
            "completed",
            "pending",
            "pending"
        ]
    );
}

async fn a_branch_that_added_steps_is_not_repeated(harness: &Harness) {
    let added = ActionSpec::AddSteps(vec![harness.step("added")]);
    let branches = vec![harness.branch(1, "true", added)];
    let plan = harness.plan_with_branches(2, branches).await;
    harness.complete_steps(plan.id, 1).await;
    harness
        .modify(plan.id, redo(plan.steps[0], false))
        .await
        .unwrap();
    harness.complete_steps(plan.id, 1).await;
    assert_eq!(harness.step_ids(plan.id).await.len(), 4);
}

async fn a_redo_changes_only_the_references_of_branches(harness: &Harness) {
    let mut dependent = harness.step("dependent");
    dependent.depends_on = vec![3];
    let added = ActionSpec::AddSteps(vec![harness.step("added"), dependent]);
    let branches = vec![harness.branch(1, "true", added)];
    let plan = harness.plan_with_branches(2, branches).await;
    harness.complete_steps(plan.id, 2).await;
    let ids = harness.step_ids(plan.id).await;
    let reason = Some(format!("step \"{}\" is wrong", ids[1]));
    let fail = ActionSpec::Fail {
        reason: reason.clone(),
    };
    let branch = harness.branch(4, "false", fail);
    let add = Modification::AddBranch { branch };
    harness.modify(plan.id, add).await.unwrap();
    harness.modify(plan.id, redo(ids[1], false)).await.unwrap();
    let successor = harness.step_ids(plan.id).await[2];
    let stored = harness.engine.full_plan(&harness.me, plan.id).await;
    let branches = stored.unwrap().plan.branches;
    let [Action::AddSteps { steps }, fail] = [&branches[0].action, &branches[1].action] else {
        panic!("{branches:?}");
    };
    let steps: Vec<_> = (steps.iter())
        .map(|step| (step.id, step.depends_on.clone()))
        .collect();
    assert_eq!(steps, [(ids[1], vec![]), (ids[2], vec![successor])]);
    assert_eq!(*fail, Action::Fail { reason });
    let checked = harness.engine.verify(&harness.me).await.unwrap();
    assert_eq!(checked.inconsistencies, []);
}

async fn contexts_contain_only_the_latest_result(harness: &Harness) {
    let (plan, steps) = chain(harness, 2).await;
    let first = harness.claim(plan).await;
    harness.complete(&first, "outdated").await;
    harness.modify(plan, redo(steps[0], false)).await.unwrap();
    let again = harness.claim(plan).await;
    harness.complete(&again, "current").await;
    let context = harness
        .engine
        .plan_context(&harness.me, plan, None, Some(40_000))
        .await
        .unwrap();
    let summaries: Vec<_> = (context.steps.iter())
        .filter_map(|entry| entry.summary.as_deref())
        .collect();
    assert_eq!(summaries, ["current"]);
    let context = harness
        .engine
        .step_context(&harness.me, steps[1], Some(40_000))
        .await
        .unwrap();
    let summaries: Vec<_> = (context.results.iter())
        .filter_map(|entry| entry.summary.as_deref())
        .collect();
    assert_eq!(summaries, ["current"]);
}

async fn rejects_invalid_requests_without_changes(harness: &Harness) {
    let (plan, steps) = chain(harness, 2).await;
    assert_eq!(
        code(harness.modify(plan, redo(steps[0], false)).await),
        "illegal_transition"
    );
    harness.complete_steps(plan, 1).await;
    let without_reason = Modification::RedoStep {
        step: steps[0],
        reason: String::new(),
        cascade: false,
        ids: Vec::new(),
    };
    assert_eq!(
        code(harness.modify(plan, without_reason).await),
        "invalid_input"
    );
    harness.modify(plan, redo(steps[0], false)).await.unwrap();
    let trail = harness.audit_trail(plan).await;
    assert_eq!(
        code(harness.modify(plan, redo(steps[0], false)).await),
        "illegal_transition"
    );
    let successor = harness.step_ids(plan).await[1];
    let remove = Modification::RemoveStep { step: successor };
    assert_eq!(
        code(harness.modify(plan, remove).await),
        "step_not_removable"
    );
    assert_eq!(harness.audit_trail(plan).await, trail);
}

async fn an_exported_plan_keeps_its_superseded_steps(harness: &Harness) {
    let branches = vec![harness.branch(1, "true", ActionSpec::SkipTo(StepRef::Order(3)))];
    let plan = harness.plan_with_branches(4, branches).await;
    harness.complete_steps(plan.id, 2).await;
    for step in [plan.steps[2], plan.steps[0]] {
        harness.modify(plan.id, redo(step, false)).await.unwrap();
    }
    assert_reimported(harness, plan.id).await;
    // The branches are those of the successor.
    let step = harness.claim(plan.id).await;
    assert_eq!(step.surroundings.branches.len(), 1);
    assert!(
        harness
            .complete(&step, "again")
            .await
            .taken_branch
            .is_some()
    );
}

fn fork_command(harness: &Harness, from_order: u32) -> ForkPlan {
    ForkPlan {
        plan: harness.engine.new_plan_id(),
        from_order,
        name: None,
        research_question: None,
        design_rationale: None,
        session: None,
        approval: None,
    }
}

async fn fork(harness: &Harness, source: PlanId, from_order: u32, key: Option<&str>) -> NewPlan {
    let command = fork_command(harness, from_order);
    let forked = harness
        .engine
        .fork_plan(&harness.me, source, command, key.map(str::to_owned));
    forked.await.unwrap()
}

async fn a_fork_takes_over_results_and_both_plans_refer_to_each_other(harness: &Harness) {
    let (plan, _) = chain(harness, 4).await;
    harness.complete_steps(plan, 4).await;
    let before = document(&harness.engine, &harness.me, plan).await;
    let fork = fork(harness, plan, 3, None).await;
    let id = fork.created.plan;
    assert_eq!(fork.taken_over.len(), 2);
    assert_eq!(
        harness.step_statuses(id).await,
        ["completed", "completed", "pending", "pending"]
    );
    assert_eq!(
        harness.step_result(id, 1).await,
        harness.step_result(plan, 1).await
    );
    let status = harness.status(id).await;
    let source = ForkedFrom {
        plan,
        step_order: 3,
    };
    assert_eq!(status.sheet.brief.forked_from, Some(source));
    assert_eq!(status.sheet.head.status().as_str(), "executing");
    assert_eq!(harness.status(plan).await.forks, [id]);
    // The source is unchanged.
    assert_eq!(document(&harness.engine, &harness.me, plan).await, before);
    let step = harness.claim(id).await;
    assert_eq!(step.order, 3);
    harness.complete(&step, "again").await;
    harness.complete_steps(id, 1).await;
    assert_eq!(harness.plan_status(id).await.as_str(), "completed");
    let exported = document(&harness.engine, &harness.me, id).await;
    harness.engine.delete_plan(&harness.me, id).await.unwrap();
    assert_eq!(harness.status(plan).await.forks, []);
    harness.engine.import(&harness.me, &exported).await.unwrap();
    assert_eq!(harness.status(plan).await.forks, [id]);
}

async fn a_failed_plan_can_be_forked_from_its_first_step(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness
        .engine
        .abandon_plan(&harness.me, plan.id, None)
        .await
        .unwrap();
    let fork = fork(harness, plan.id, 1, None).await;
    assert_eq!(fork.taken_over, []);
    assert_eq!(
        harness.plan_status(fork.created.plan).await.as_str(),
        "planning"
    );
}

async fn a_repeated_fork_returns_the_same_plan(harness: &Harness) {
    let plan = harness.plan(3).await;
    harness.complete_steps(plan.id, 2).await;
    let first = fork(harness, plan.id, 2, Some("key")).await;
    let again = fork(harness, plan.id, 2, Some("key")).await;
    assert_eq!(first, again);
    let other = fork_command(harness, 3);
    let other = harness
        .engine
        .fork_plan(&harness.me, plan.id, other, Some("key".to_owned()));
    assert_eq!(code(other.await), "conflict");
}

async fn rejects_a_fork_of_a_missing_plan_or_step(harness: &Harness) {
    let plan = harness.plan(2).await;
    let unknown = harness.engine.new_plan_id();
    for (source, order, expected) in [
        (unknown, 1, "plan_not_found"),
        (plan.id, 3, "INVALID_STEP_REFERENCE"),
        (plan.id, 0, "INVALID_STEP_REFERENCE"),
    ] {
        let command = fork_command(harness, order);
        let rejected = harness
            .engine
            .fork_plan(&harness.me, source, command, None)
            .await;
        assert_eq!(code(rejected), expected);
    }
    let other = harness.create_tenant("other").await;
    let command = fork_command(harness, 1);
    let rejected = harness
        .engine
        .fork_plan(&other, plan.id, command, None)
        .await;
    assert_eq!(code(rejected), "plan_not_found");
}

on_both_databases!(
    a_superseded_step_has_no_notes_for_the_output,
    a_redone_step_is_superseded_by_the_step_after_it,
    pending_steps_wait_for_the_successor,
    cascade_redoes_the_completed_dependents,
    branches_move_to_the_successor,
    a_branch_that_added_steps_is_not_repeated,
    a_redo_changes_only_the_references_of_branches,
    contexts_contain_only_the_latest_result,
    rejects_invalid_requests_without_changes,
    an_exported_plan_keeps_its_superseded_steps,
    a_fork_takes_over_results_and_both_plans_refer_to_each_other,
    a_failed_plan_can_be_forked_from_its_first_step,
    a_repeated_fork_returns_the_same_plan,
    rejects_a_fork_of_a_missing_plan_or_step,
);
