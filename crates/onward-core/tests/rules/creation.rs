//! Plan creation: validation of steps, branches and limits. A plan is created completely or not at
//! all.

use std::time::Duration;

use onward_core::command::{ActionSpec, CreatePlan, StepRef};
use onward_core::decide::create;
use onward_core::policy::{MAX_STEPS, OnStall};
use onward_core::{Code, PlanStatus, Refusal};

use crate::harness::{Harness, branch, create_plan, id, spec};

fn rejection(command: &CreatePlan) -> Refusal {
    create::decide(command)
        .map(|_| "created")
        .expect_err("command is rejected")
}

fn issues(command: &CreatePlan) -> Vec<String> {
    match rejection(command) {
        Refusal::InvalidInput(issues) => issues.into_iter().map(|issue| issue.path).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_plan_is_planning_and_all_its_steps_are_pending() {
    let harness = Harness::with_steps(3);
    assert_eq!(harness.status(), PlanStatus::Planning);
    assert_eq!(harness.plan.head().counts.pending, 3);
    assert_eq!(harness.plan.head().on_stall, OnStall::Mark);
    assert_eq!(
        harness
            .plan
            .steps()
            .iter()
            .map(|step| step.order)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

#[test]
fn emits_plan_modified_with_action_created() {
    let harness = Harness::with_steps(1);
    assert_eq!(harness.audit_trail.len(), 1);
    assert_eq!(harness.audit_trail[0].0.name(), "plan_modified");
    assert_eq!(harness.audit_trail[0].0.action(), Some("created"));
}

#[test]
fn reports_all_invalid_fields_together() {
    let mut command = create_plan(2);
    command.name = "x".repeat(201);
    command.research_question = " ".to_owned();
    command.stall_threshold = Some(Duration::ZERO);
    command.steps[1].instructions.clear();
    command.steps[1].max_attempts = Some(0);
    assert_eq!(
        issues(&command),
        [
            "name",
            "researchQuestion",
            "stallThresholdMs",
            "steps[1].instructions",
            "steps[1].maxAttempts"
        ]
    );
}

#[test]
fn limits_are_inclusive_and_count_characters() {
    let mut command = create_plan(1);
    command.name = "ü".repeat(200);
    command.research_question = "問".repeat(10_000);
    command.stall_threshold = Some(Duration::from_millis(1));
    command.steps[0].stall_threshold = Some(Duration::from_secs(365 * 24 * 60 * 60));
    assert!(create::decide(&command).is_ok());
    command.steps[0].stall_threshold = Some(Duration::from_secs(365 * 24 * 60 * 60 + 1));
    assert_eq!(issues(&command), ["steps[0].stallThresholdMs"]);
}

#[test]
fn requires_one_to_ten_thousand_steps() {
    assert_eq!(issues(&create_plan(0)), ["steps"]);
    let most = u32::try_from(MAX_STEPS).unwrap();
    assert!(create::decide(&create_plan(most)).is_ok());
    assert_eq!(issues(&create_plan(most + 1)), ["steps"]);
}

#[test]
fn rejects_a_branch_with_an_invalid_step_reference() {
    for (after, action) in [
        (0, ActionSpec::Continue),
        (3, ActionSpec::Continue),
        (1, ActionSpec::SkipTo(StepRef::Order(3))),
        (1, ActionSpec::SkipTo(StepRef::Id(id(99)))),
        // The target is not after the step.
        (2, ActionSpec::SkipTo(StepRef::Order(2))),
        (2, ActionSpec::SkipTo(StepRef::Id(id(1)))),
    ] {
        let mut command = create_plan(2);
        command
            .branches
            .push(branch(1, after, "true", action.clone()));
        assert_eq!(
            rejection(&command).code(),
            Code::InvalidStepReference,
            "{after} {action:?}"
        );
    }
}

#[test]
fn rejects_an_invalid_condition_with_its_position() {
    let mut command = create_plan(1);
    command
        .branches
        .push(branch(1, 1, "confidence >=", ActionSpec::Continue));
    let rejection = rejection(&command);
    assert_eq!(rejection.code(), Code::InvalidCondition);
    let Refusal::InvalidCondition { path, error } = &rejection else {
        panic!("{rejection:?}")
    };
    assert_eq!(path, "branchingConditions[0].conditionExpression");
    assert_eq!((error.line, error.column), (1, 14));
}

#[test]
fn limits_branches_per_step_to_100() {
    let mut command = create_plan(1);
    command.branches = (0..100)
        .map(|n| branch(n, 1, "false", ActionSpec::Continue))
        .collect();
    assert!(create::decide(&command).is_ok());
    command
        .branches
        .push(branch(100, 1, "false", ActionSpec::Continue));
    assert_eq!(rejection(&command).code(), Code::LimitExceeded);
}

#[test]
fn checks_the_steps_of_an_add_steps_branch_at_creation() {
    let mut command = create_plan(1);
    let mut empty = spec(9);
    empty.instructions.clear();
    command
        .branches
        .push(branch(1, 1, "true", ActionSpec::AddSteps(vec![empty])));
    assert_eq!(
        issues(&command),
        ["branchingConditions[0].actionParams.steps[0].instructions"]
    );
    command.branches[0].action = ActionSpec::AddSteps(Vec::new());
    assert_eq!(
        issues(&command),
        ["branchingConditions[0].actionParams.steps"]
    );
}

#[test]
fn rejects_duplicate_step_ids() {
    let mut command = create_plan(2);
    command.steps[1].id = id(1);
    assert_eq!(issues(&command), ["steps[1].id"]);
    // The same applies to steps that a branch would add.
    let mut command = create_plan(2);
    let adding = |n: u32, step: u32| branch(n, 1, "true", ActionSpec::AddSteps(vec![spec(step)]));
    command.branches = vec![adding(1, 2), adding(2, 8), adding(3, 8)];
    assert_eq!(
        issues(&command),
        [
            "branchingConditions[0].actionParams.steps[0].id",
            "branchingConditions[2].actionParams.steps[0].id"
        ]
    );
}

#[test]
fn rejects_duplicate_branch_ids() {
    let mut command = create_plan(1);
    command.branches = vec![
        branch(1, 1, "true", ActionSpec::Continue),
        branch(1, 1, "false", ActionSpec::Continue),
    ];
    assert_eq!(issues(&command), ["branchingConditions[1].id"]);
}

#[test]
fn limits_the_compiled_patterns_of_all_branches_in_total() {
    let mut command = create_plan(100);
    let pattern = |n: u32| {
        let one = |tail: u32| format!("resultSummary.matches('{n}(a|b)*a(a|b){{{tail}}}')");
        [one(7), one(6), one(5)].join(" || ")
    };
    command.branches = (1..=100)
        .map(|n| branch(n, n, &pattern(n), ActionSpec::Continue))
        .collect();
    assert_eq!(rejection(&command).code(), Code::LimitExceeded);
    command.branches.truncate(10);
    assert!(create::decide(&command).is_ok());
}
