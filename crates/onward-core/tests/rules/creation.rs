//! Making a plan: all or nothing.

use std::time::Duration;

use onward_core::command::{ActionSpec, CreatePlan, StepRef};
use onward_core::decide::create;
use onward_core::policy::{MAX_STEPS, OnStall};
use onward_core::{Code, PlanStatus, Refusal};

use crate::desk::{Desk, branch, id, plan_of, spec};

fn refusal(command: &CreatePlan) -> Refusal {
    create::decide(command)
        .map(|_| "a plan")
        .expect_err("should be refused")
}

fn issues(command: &CreatePlan) -> Vec<String> {
    match refusal(command) {
        Refusal::InvalidInput(issues) => issues.into_iter().map(|issue| issue.path).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plan_begins_in_planning_with_all_steps_pending() {
    let desk = Desk::with(3);
    assert_eq!(desk.status(), PlanStatus::Planning);
    assert_eq!(desk.plan.head().counts.pending, 3);
    assert_eq!(desk.plan.head().on_stall, OnStall::Mark);
    assert_eq!(
        desk.plan
            .steps()
            .iter()
            .map(|step| step.order)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

#[test]
fn creating_writes_plan_modified_with_action_created() {
    let desk = Desk::with(1);
    assert_eq!(desk.trail.len(), 1);
    assert_eq!(desk.trail[0].0.name(), "plan_modified");
    assert_eq!(desk.trail[0].0.action(), Some("created"));
}

#[test]
fn everything_that_does_not_fit_is_named_at_once() {
    let mut command = plan_of(2);
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
fn bounds_are_counted_in_characters_and_are_themselves_allowed() {
    let mut command = plan_of(1);
    command.name = "ü".repeat(200);
    command.research_question = "問".repeat(10_000);
    command.stall_threshold = Some(Duration::from_millis(1));
    command.steps[0].stall_threshold = Some(Duration::from_secs(365 * 24 * 60 * 60));
    assert!(create::decide(&command).is_ok());
    command.steps[0].stall_threshold = Some(Duration::from_secs(365 * 24 * 60 * 60 + 1));
    assert_eq!(issues(&command), ["steps[0].stallThresholdMs"]);
}

#[test]
fn a_plan_has_one_to_ten_thousand_steps() {
    assert_eq!(issues(&plan_of(0)), ["steps"]);
    let most = u32::try_from(MAX_STEPS).unwrap();
    assert!(create::decide(&plan_of(most)).is_ok());
    assert_eq!(issues(&plan_of(most + 1)), ["steps"]);
}

#[test]
fn a_branch_outside_the_plan_is_refused_with_the_historic_code() {
    for (after, action) in [
        (0, ActionSpec::Continue),
        (3, ActionSpec::Continue),
        (1, ActionSpec::SkipTo(StepRef::Order(3))),
        (1, ActionSpec::SkipTo(StepRef::Id(id(99)))),
        // Not after the step.
        (2, ActionSpec::SkipTo(StepRef::Order(2))),
        (2, ActionSpec::SkipTo(StepRef::Id(id(1)))),
    ] {
        let mut command = plan_of(2);
        command
            .branches
            .push(branch(1, after, "true", action.clone()));
        assert_eq!(
            refusal(&command).code(),
            Code::InvalidStepReference,
            "{after} {action:?}"
        );
    }
}

#[test]
fn a_condition_that_cannot_be_parsed_is_refused_with_its_position() {
    let mut command = plan_of(1);
    command
        .branches
        .push(branch(1, 1, "confidence >=", ActionSpec::Continue));
    let refusal = refusal(&command);
    assert_eq!(refusal.code(), Code::InvalidCondition);
    let Refusal::InvalidCondition { path, why } = &refusal else {
        panic!("{refusal:?}")
    };
    assert_eq!(path, "branchingConditions[0].conditionExpression");
    assert_eq!((why.line, why.column), (1, 14));
}

#[test]
fn a_step_has_at_most_a_hundred_branches() {
    let mut command = plan_of(1);
    command.branches = (0..100)
        .map(|n| branch(n, 1, "false", ActionSpec::Continue))
        .collect();
    assert!(create::decide(&command).is_ok());
    command
        .branches
        .push(branch(100, 1, "false", ActionSpec::Continue));
    assert_eq!(refusal(&command).code(), Code::LimitExceeded);
}

#[test]
fn steps_that_a_branch_would_add_are_checked_when_the_branch_is_made() {
    let mut command = plan_of(1);
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
fn no_two_steps_have_one_id() {
    let mut command = plan_of(2);
    command.steps[1].id = id(1);
    assert_eq!(issues(&command), ["steps[1].id"]);
    // Nor do those that a branch would add.
    let mut command = plan_of(2);
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
fn no_two_branches_have_one_id() {
    let mut command = plan_of(1);
    command.branches = vec![
        branch(1, 1, "true", ActionSpec::Continue),
        branch(1, 1, "false", ActionSpec::Continue),
    ];
    assert_eq!(issues(&command), ["branchingConditions[1].id"]);
}

#[test]
fn the_patterns_of_all_branches_together_have_their_bound() {
    let mut command = plan_of(100);
    let pattern = |n: u32| {
        let one = |tail: u32| format!("resultSummary.matches('{n}(a|b)*a(a|b){{{tail}}}')");
        [one(7), one(6), one(5)].join(" || ")
    };
    command.branches = (1..=100)
        .map(|n| branch(n, n, &pattern(n), ActionSpec::Continue))
        .collect();
    assert_eq!(refusal(&command).code(), Code::LimitExceeded);
    command.branches.truncate(10);
    assert!(create::decide(&command).is_ok());
}
