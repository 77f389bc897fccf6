//! Labels and priorities of steps, and the project, labels and priority of a plan.

use onward_core::command::{CreatePlan, Modification, PlanUpdate, StartNext, StepUpdate};
use onward_core::decide::create;
use onward_core::routing::Routing;
use onward_core::{Command, Refusal};

use crate::harness::{Harness, create_plan, id, modify};

fn labels(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn claim(harness: &mut Harness, offered: Option<&[&str]>) -> Option<u32> {
    let command = Command::StartNext(StartNext {
        token: harness.next_token(),
        session: None,
        include_stalled: false,
        labels: offered.map(labels),
    });
    let events = harness.execute(&command).unwrap();
    let step = onward_core::decide::start_next::assigned_step(&events)?;
    harness.plan.step(step).map(|step| step.order)
}

fn paths(command: &CreatePlan) -> Vec<String> {
    let Err(Refusal::InvalidInput(issues)) = create::decide(command) else {
        panic!("expected invalid input");
    };
    issues.into_iter().map(|issue| issue.path).collect()
}

#[test]
fn the_highest_priority_is_assigned_first_and_then_the_lowest_order() {
    let mut plan = create_plan(4);
    plan.steps[1].priority = 6;
    plan.steps[2].priority = 9;
    plan.steps[3].priority = 6;
    let mut harness = Harness::new(plan);
    let claimed: Vec<_> = (0..4).map(|_| claim(&mut harness, None)).collect();
    assert_eq!(claimed, [Some(3), Some(2), Some(4), Some(1)]);
}

#[test]
fn a_step_is_assigned_only_to_a_caller_that_offers_all_its_labels() {
    let mut plan = create_plan(3);
    plan.steps[0].labels = labels(&["linux", "gpu", "linux"]);
    plan.steps[1].labels = labels(&["gpu"]);
    let mut harness = Harness::new(plan);
    let first = &harness.plan.step(id(1)).unwrap().spec;
    assert_eq!(first.labels, labels(&["gpu", "linux"]));
    assert_eq!(claim(&mut harness, Some(&["linux"])), Some(3));
    assert_eq!(claim(&mut harness, Some(&["linux"])), None);
    assert_eq!(claim(&mut harness, Some(&["gpu"])), Some(2));
    assert_eq!(claim(&mut harness, Some(&["gpu"])), None);
    assert_eq!(claim(&mut harness, None), Some(1));
}

#[test]
fn labels_and_priority_of_a_pending_step_can_be_changed() {
    let mut harness = Harness::with_steps(2);
    let update = StepUpdate {
        labels: Some(labels(&["gpu"])),
        priority: Some(9),
        ..StepUpdate::default()
    };
    let step = id(2);
    harness.run(&modify(Modification::UpdateStep { step, update }));
    assert_eq!(claim(&mut harness, Some(&["gpu"])), Some(2));
    assert_eq!(claim(&mut harness, Some(&[])), Some(1));
}

#[test]
fn a_plan_update_changes_only_the_given_values() {
    let mut plan = create_plan(1);
    plan.routing = Routing {
        project_key: Some(" site ".to_owned()),
        labels: labels(&["web", "urgent"]),
        priority: 7,
    };
    let mut harness = Harness::new(plan);
    let routing = |harness: &Harness| harness.plan.head().routing.clone();
    assert_eq!(routing(&harness).project_key.as_deref(), Some("site"));
    let update = PlanUpdate {
        priority: Some(0),
        ..PlanUpdate::default()
    };
    harness.run(&modify(Modification::UpdatePlan { update }));
    assert_eq!(
        routing(&harness),
        Routing {
            project_key: Some("site".to_owned()),
            labels: labels(&["urgent", "web"]),
            priority: 0,
        }
    );
    let update = PlanUpdate {
        project_key: Some(String::new()),
        labels: Some(Vec::new()),
        priority: None,
    };
    harness.run(&modify(Modification::UpdatePlan { update }));
    let expected = Routing {
        priority: 0,
        ..Routing::default()
    };
    assert_eq!(routing(&harness), expected);
}

#[test]
fn invalid_values_are_rejected_with_their_paths() {
    let mut plan = create_plan(1);
    plan.routing = Routing {
        project_key: Some("x".repeat(101)),
        labels: vec!["x".to_owned(); 21],
        priority: 10,
    };
    plan.steps[0].labels = labels(&["gpu", " "]);
    plan.steps[0].priority = 200;
    let expected = [
        "projectKey",
        "labels",
        "priority",
        "steps[0].labels[1]",
        "steps[0].priority",
    ];
    assert_eq!(paths(&plan), expected);
}

#[test]
fn a_redone_step_and_a_fork_keep_labels_and_priority() {
    let mut plan = create_plan(1);
    plan.steps[0].labels = labels(&["gpu"]);
    plan.steps[0].priority = 8;
    let mut harness = Harness::new(plan);
    let submit = harness.submit(1, None);
    let add = modify(Modification::AddSteps {
        steps: vec![crate::harness::spec(2)],
        insert_after: None,
    });
    harness.run(&add);
    harness.run(&submit);
    let redo = modify(Modification::RedoStep {
        step: id(1),
        reason: "wrong source".to_owned(),
        cascade: false,
        ids: vec![id(9)],
    });
    harness.run(&redo);
    let spec = &harness.plan.step(id(9)).unwrap().spec;
    assert_eq!((spec.labels.clone(), spec.priority), (labels(&["gpu"]), 8));
}
