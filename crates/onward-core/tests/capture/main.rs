//! The comparison of an agent's task list with the plan that mirrors it, the plan that a list
//! continues, and the outline of an approved plan.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail on invalid data"
)]

mod continuation;

use onward_core::capture::{
    CapturedStep, Edit, Task, TaskChange, TaskList, TaskReport, TaskStatus, diff, outline,
};
use onward_core::{StepId, StepStatus};
use proptest::prelude::*;

fn task(title: &str, status: TaskStatus) -> Task {
    Task::new(title, status).unwrap()
}

/// The steps after the edits.
fn execute(mut steps: Vec<CapturedStep>, edits: &[Edit]) -> Vec<CapturedStep> {
    let find = |steps: &mut Vec<CapturedStep>, id: StepId| {
        steps.iter().position(|step| step.id == id).unwrap()
    };
    for edit in edits {
        match edit {
            Edit::Rename { step, title, .. } => {
                let index = find(&mut steps, *step);
                steps[index].title.clone_from(title);
            }
            Edit::Add(specs) => steps.extend(specs.iter().map(|spec| CapturedStep {
                id: spec.id,
                title: spec.title.clone().unwrap(),
                status: StepStatus::Pending,
                is_own: true,
                is_held: false,
                is_abandoned: false,
            })),
            Edit::Release(step) => {
                let index = find(&mut steps, *step);
                assert_eq!(steps[index].status, StepStatus::InProgress);
                steps[index].status = StepStatus::Pending;
            }
            Edit::Remove(step) => {
                let index = find(&mut steps, *step);
                assert_eq!(steps[index].status, StepStatus::Pending);
                steps.remove(index);
            }
            Edit::Reorder(order) => {
                let mut sorted = order.clone();
                sorted.sort();
                let mut all: Vec<StepId> = steps.iter().map(|step| step.id).collect();
                all.sort();
                assert_eq!(sorted, all, "the order contains every step once");
                steps.sort_by_key(|step| order.iter().position(|id| *id == step.id));
            }
            Edit::Complete(step) => {
                let index = find(&mut steps, *step);
                assert!(!steps[index].status.is_terminal());
                steps[index].status = StepStatus::Completed;
            }
            Edit::Start(step) => {
                let index = find(&mut steps, *step);
                let is_takeover = steps[index].is_abandoned;
                assert!(steps[index].status == StepStatus::Pending || is_takeover);
                steps[index].status = StepStatus::InProgress;
                steps[index].is_held = true;
                steps[index].is_abandoned = false;
            }
        }
    }
    steps
}

fn ids(first: u128) -> impl FnMut() -> StepId {
    let mut next = first;
    move || {
        next += 1;
        StepId::from_u128(next)
    }
}

fn status(status: TaskStatus) -> StepStatus {
    match status {
        TaskStatus::Pending => StepStatus::Pending,
        TaskStatus::InProgress => StepStatus::InProgress,
        TaskStatus::Completed => StepStatus::Completed,
    }
}

fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let word = prop::sample::select(vec![
        "Collect", "compare", "write it", "check", "a b c", "a b d",
    ]);
    let status = prop::sample::select(TaskStatus::ALL.to_vec());
    prop::collection::vec((word, status), 0..6).prop_map(|list| {
        list.into_iter()
            .map(|(word, status)| task(word, status))
            .collect()
    })
}

proptest! {
    #[test]
    fn the_open_steps_equal_the_list_after_every_report(lists in prop::collection::vec(tasks(), 1..5)) {
        let mut steps = Vec::new();
        let mut new_id = ids(0);
        for list in lists {
            let changes = diff(&steps, &list, &mut new_id);
            let before = steps.clone();
            steps = execute(steps, &changes.edits);
            prop_assert_eq!(changes.steps.len(), list.len());
            for (task, id) in list.iter().zip(&changes.steps) {
                let step = steps.iter().find(|step| step.id == *id).unwrap();
                prop_assert_eq!(step.status, status(task.status));
            }
            let open = |step: &&CapturedStep| !step.status.is_terminal();
            let listed: Vec<StepId> = changes.steps.iter().copied()
                .filter(|id| steps.iter().any(|step| step.id == *id)).collect();
            let actual: Vec<StepId> = steps.iter().filter(open).map(|step| step.id).collect();
            let expected: Vec<StepId> = listed.into_iter()
                .filter(|id| actual.contains(id)).collect();
            prop_assert_eq!(actual, expected, "open steps are exactly the open tasks, in order");
            for step in before.iter().filter(|step| step.status.is_terminal()) {
                prop_assert!(steps.contains(step), "a step that has ended does not change");
            }
            let again = diff(&steps, &list, &mut new_id);
            let is_reopened = list.iter().zip(&again.steps).any(|(_, id)| !changes.steps.contains(id));
            prop_assert!(again.edits.is_empty() || is_reopened, "{:?}", again.edits);
        }
    }
}

/// Steps that another session wrote.
fn of_another_session(list: &[(&str, StepStatus)]) -> Vec<CapturedStep> {
    let steps = list.iter().zip(1u128..).map(|((title, status), id)| {
        let title = (*title).to_owned();
        CapturedStep {
            id: StepId::from_u128(id),
            title,
            status: *status,
            is_own: false,
            is_held: false,
            is_abandoned: false,
        }
    });
    steps.collect()
}

proptest! {
    #[test]
    fn never_changes_or_removes_a_step_of_another_session(list in tasks()) {
        let before = of_another_session(&[
            ("Collect", StepStatus::InProgress),
            ("a b c", StepStatus::Pending),
            ("check", StepStatus::Completed),
        ]);
        let changes = diff(&before, &list, ids(100));
        for edit in &changes.edits {
            let is_other = |step: &StepId| before.iter().any(|known| known.id == *step);
            let changed = match edit {
                Edit::Rename { step, .. } | Edit::Release(step) | Edit::Remove(step) => Some(step),
                Edit::Start(step) => Some(step).filter(|step| {
                    before.iter().any(|known| known.id == **step && known.status == StepStatus::InProgress)
                }),
                Edit::Add(_) | Edit::Reorder(_) | Edit::Complete(_) => None,
            };
            prop_assert!(!changed.is_some_and(is_other), "{edit:?}");
        }
        let after = execute(before.clone(), &changes.edits);
        for step in before {
            prop_assert!(after.iter().any(|known| known.id == step.id && known.title == step.title));
        }
    }
}

#[test]
fn takes_over_a_step_in_progress_only_if_it_is_abandoned() {
    let mut steps = of_another_session(&[("Compare the phases", StepStatus::InProgress)]);
    let list = [task("Compare the phases", TaskStatus::InProgress)];
    assert_eq!(diff(&steps, &list, ids(10)).edits, []);
    steps[0].is_abandoned = true;
    let id = steps[0].id;
    assert_eq!(diff(&steps, &list, ids(10)).edits, [Edit::Start(id)]);
}

#[test]
fn completes_a_step_of_another_session_whose_task_was_reworded() {
    let steps = of_another_session(&[
        ("Add dark mode", StepStatus::InProgress),
        ("Run the tests", StepStatus::Pending),
    ]);
    let list = [
        task("Finish the dark mode toggle", TaskStatus::Completed),
        task("Run the e2e tests", TaskStatus::Pending),
    ];
    let changes = diff(&steps, &list, ids(10));
    let after = execute(steps, &changes.edits);
    let after: Vec<(&str, StepStatus)> = (after.iter())
        .map(|step| (step.title.as_str(), step.status))
        .collect();
    let expected = [
        ("Add dark mode", StepStatus::Completed),
        ("Run the tests", StepStatus::Pending),
        ("Run the e2e tests", StepStatus::Pending),
    ];
    assert_eq!(after, expected);
}

#[test]
fn keeps_an_own_step_that_another_session_holds() {
    let mut steps = of_another_session(&[("Compare", StepStatus::InProgress)]);
    steps[0].is_own = true;
    for list in [Vec::new(), vec![task("Compare", TaskStatus::Pending)]] {
        assert_eq!(diff(&steps, &list, ids(10)).edits, []);
    }
}

#[test]
fn a_task_with_another_number_is_another_step() {
    let mut steps = of_another_session(&[("Fix bug 0", StepStatus::Pending)]);
    steps[0].is_own = true;
    let changes = diff(&steps, &[task("Fix bug 1", TaskStatus::Pending)], ids(10));
    assert!(
        matches!(changes.edits[..], [Edit::Add(_), Edit::Remove(_)]),
        "{changes:?}"
    );
}

#[test]
fn a_task_of_another_list_with_the_same_number_is_not_linked_to_its_step() {
    let key = |title: &str| task(title, TaskStatus::Pending).with_key(Some("1".to_owned()));
    let mut list = TaskList::default();
    list.apply(&TaskReport::List(vec![key("Compare the phases")]));
    list.tasks[0].step = Some(StepId::from_u128(1));
    list.apply(&TaskReport::List(vec![key("Compare all the phases")]));
    assert!(list.tasks[0].step.is_some());
    list.apply(&TaskReport::List(vec![key("Export to CSV")]));
    assert_eq!(list.tasks[0].step, None);
}

#[test]
fn starting_and_stopping_a_task_uses_up_no_step() {
    let spec = task("Collect", TaskStatus::Pending).spec(StepId::from_u128(1));
    assert_eq!(
        spec.max_attempts,
        Some(onward_core::policy::MAX_MAX_ATTEMPTS)
    );
}

#[test]
fn a_task_that_is_opened_again_is_a_new_step() {
    let steps = execute(
        Vec::new(),
        &diff(&[], &[task("Collect", TaskStatus::Completed)], ids(0)).edits,
    );
    let changes = diff(&steps, &[task("Collect", TaskStatus::InProgress)], ids(10));
    let steps = execute(steps, &changes.edits);
    let statuses: Vec<StepStatus> = steps.iter().map(|step| step.status).collect();
    assert_eq!(statuses, [StepStatus::Completed, StepStatus::InProgress]);
}

#[test]
fn a_reported_task_is_created_once_and_changed_by_its_key() {
    let mut list = TaskList::default();
    let created = task("Collect", TaskStatus::Pending).with_key(Some("1".to_owned()));
    assert!(list.apply(&TaskReport::Created(created.clone())));
    assert!(!list.apply(&TaskReport::Created(created)));
    let change = |change: TaskChange| {
        TaskReport::Changed(TaskChange {
            key: "1".to_owned(),
            ..change
        })
    };
    assert!(list.apply(&change(TaskChange {
        title: Some("Collect all".to_owned()),
        status: Some(TaskStatus::InProgress),
        ..TaskChange::default()
    })));
    assert_eq!(list.tasks[0].title, "Collect all");
    assert_eq!(list.tasks[0].status, TaskStatus::InProgress);
    let unknown = TaskReport::Changed(TaskChange {
        key: "9".to_owned(),
        ..TaskChange::default()
    });
    assert!(!list.apply(&unknown));
    assert!(list.apply(&change(TaskChange {
        is_removed: true,
        ..TaskChange::default()
    })));
    assert!(list.tasks.is_empty());
}

#[test]
fn finds_the_steps_of_an_approved_plan() {
    let titles = |markdown: &str| -> Vec<String> {
        outline(markdown)
            .tasks
            .into_iter()
            .map(|task| task.title)
            .collect()
    };
    let numbered = "# Tides\n\n- background\n\n## Steps\n1. **Collect** `tables`\n   1. nested\n2) Compare\n```\n3. code\n```\n";
    assert_eq!(outline(numbered).name.as_deref(), Some("Tides"));
    assert_eq!(titles(numbered), ["Collect tables", "Compare"]);
    assert_eq!(titles("# T\n- [ ] a\n- [x] b\n  - c\n"), ["a", "b"]);
    assert_eq!(
        titles("# T\n## First\ntext\n## Second\n"),
        ["First", "Second"]
    );
    assert_eq!(titles("no structure"), Vec::<String>::new());
}
