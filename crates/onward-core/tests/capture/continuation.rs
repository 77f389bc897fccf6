//! Which lists continue a plan, and which are another task.

use onward_core::capture::{
    CapturedStep, Task, TaskStatus, continues_plan, names_plan, rewrites_plan,
};
use onward_core::{PlanId, StepId, StepStatus};

use TaskStatus::{Completed, InProgress, Pending};

type List<'a> = &'a [(&'a str, TaskStatus)];

fn steps(list: List<'_>) -> Vec<CapturedStep> {
    let steps = list
        .iter()
        .zip(1u128..)
        .map(|((title, status), id)| CapturedStep {
            id: StepId::from_u128(id),
            title: (*title).to_owned(),
            status: match status {
                Pending => StepStatus::Pending,
                InProgress => StepStatus::InProgress,
                Completed => StepStatus::Completed,
            },
            is_own: false,
            is_held: false,
            is_abandoned: false,
        });
    steps.collect()
}

fn tasks(list: List<'_>) -> Vec<Task> {
    let tasks = list.iter().map(|(title, status)| Task::new(title, *status));
    tasks.map(Option::unwrap).collect()
}

#[track_caller]
fn assert_continues(plan: List<'_>, list: List<'_>, expected: bool) {
    let continues = continues_plan(&steps(plan), &tasks(list), &[]);
    assert_eq!(continues, expected, "{plan:?}\n{list:?}");
}

const DARK_MODE: List<'static> = &[
    ("Explore the code", Completed),
    ("Add dark mode", InProgress),
    ("Run the tests", Pending),
];

#[test]
fn a_list_with_the_same_common_tasks_is_another_task() {
    let csv = [
        ("Explore the code", Completed),
        ("Export to CSV", InProgress),
        ("Run the tests", Pending),
    ];
    assert_continues(DARK_MODE, &csv, false);
    let unstarted = csv.map(|(title, _)| (title, Pending));
    assert_continues(DARK_MODE, &unstarted, false);
}

#[test]
fn a_list_of_common_tasks_only_is_another_task() {
    let common = [("Explore the code", Pending), ("Run the tests", Pending)];
    assert_continues(DARK_MODE, &common, false);
    assert_continues(&common, &common, false);
}

#[test]
fn a_list_with_reworded_specific_tasks_continues_the_plan() {
    for title in [
        "Add dark mode",
        "Finish the dark mode toggle",
        "Dark mode: fix the colours",
    ] {
        let list = [(title, InProgress), ("Run all tests again", Pending)];
        assert_continues(DARK_MODE, &list, true);
    }
}

#[test]
fn a_list_continues_no_finished_step() {
    let done = [("Add dark mode", Completed), ("Run the tests", Pending)];
    assert_continues(&done, &[("Add dark mode", Pending)], false);
    assert_continues(DARK_MODE, &[("Add dark mode", Completed)], false);
}

#[test]
fn a_list_with_an_unknown_specific_task_is_another_task() {
    let list = [
        ("Add dark mode", Pending),
        ("Translate the settings to Welsh", Pending),
    ];
    assert_continues(DARK_MODE, &list, false);
}

#[test]
fn titles_that_differ_in_numbers_or_letters_are_other_tasks() {
    let list = |module, bug| {
        [
            (format!("Read module {module}"), Completed),
            (format!("Fix the flaky scheduler {bug}"), InProgress),
            (format!("Run tests {bug}"), Pending),
        ]
    };
    fn borrowed(list: &[(String, TaskStatus)]) -> Vec<(&str, TaskStatus)> {
        let list = list.iter().map(|(title, status)| (title.as_str(), *status));
        list.collect()
    }
    let (first, second) = (list("A", 0), list("B", 1));
    assert_continues(&borrowed(&first), &borrowed(&second), false);
    assert_continues(&borrowed(&first), &borrowed(&first), true);
    assert_continues(&[("Fix bug 0", Pending)], &[("Fix bug 0", Pending)], false);
}

#[test]
fn other_lists_of_the_project_make_their_words_common() {
    let plan = steps(&[("Add dark mode to the dashboard", Pending)]);
    let list = tasks(&[("Restyle the dashboard", Pending)]);
    let list = [list, tasks(&[("Dashboard: dark mode", Pending)])].concat();
    let other = vec!["Restyle the dashboard of the admins".to_owned()];
    assert!(continues_plan(
        &plan,
        &tasks(&[("Dashboard: dark mode", Pending)]),
        &[]
    ));
    assert!(!continues_plan(
        &plan,
        &list[..1],
        std::slice::from_ref(&other)
    ));
    assert!(continues_plan(&plan, &list[1..], &[other]));
}

#[test]
fn a_repetition_of_a_list_does_not_make_its_words_common() {
    let titles = ["Collect tide tables", "Compare the phases of the moon"];
    let plan = steps(&titles.map(|title| (title, Pending)));
    let list = tasks(&titles.map(|title| (title, Pending)));
    let other = titles.map(str::to_owned).to_vec();
    assert!(continues_plan(&plan, &list, &[other]));
}

#[test]
fn lists_in_other_languages_with_common_tasks_are_other_tasks() {
    for (plan, list) in [
        (
            [
                "Code untersuchen",
                "Dunkelmodus hinzufügen",
                "Tests ausführen",
            ],
            [
                "Code untersuchen",
                "CSV-Export hinzufügen",
                "Tests ausführen",
            ],
        ),
        (
            ["阅读代码", "添加深色模式", "运行测试"],
            ["阅读代码", "导出表格文件", "运行测试"],
        ),
    ] {
        let plan = plan.map(|title| (title, Pending));
        assert_continues(&plan, &list.map(|title| (title, Pending)), false);
        assert_continues(&plan, &plan, true);
    }
}

#[track_caller]
fn assert_rewrites(plan: List<'_>, list: List<'_>, expected: bool) {
    let rewrites = rewrites_plan(&steps(plan), &tasks(list));
    assert_eq!(rewrites, expected, "{plan:?}\n{list:?}");
}

#[test]
fn the_session_itself_may_rewrite_its_list() {
    let reworded = [
        ("Finish dark mode", InProgress),
        ("Write to the users", Pending),
    ];
    assert_rewrites(DARK_MODE, &reworded, true);
    let extended = [
        ("Add dark mode", Completed),
        ("Translate to Welsh", Pending),
    ];
    assert_rewrites(DARK_MODE, &extended, true);
    let common = [("a", Pending), ("b", Pending), ("c", Pending)];
    assert_rewrites(&common, &[("a", Completed), ("b", InProgress)], true);
}

#[test]
fn another_list_of_the_session_replaces_no_open_step() {
    let csv = [
        ("Explore the code", Completed),
        ("Export to CSV", InProgress),
        ("Run the tests", Pending),
    ];
    assert_rewrites(DARK_MODE, &csv, false);
    let done = [("Add dark mode", Completed), ("Run the tests", Pending)];
    assert_rewrites(&done, &csv, false);
    let common = [("a", Pending), ("b", Pending), ("c", Pending)];
    assert_rewrites(&common, &[("x", Pending), ("y", Pending)], false);
}

#[test]
fn a_prompt_names_a_plan_by_its_id_or_its_whole_name() {
    let id = PlanId::from_u128(0x0197_f1a0_0000_7000_8000_0000_0000_0001);
    let names = |prompt: &str, name: &str| names_plan(prompt, id, name);
    assert!(names(
        "continue plan 0197f1a0-0000-7000-8000-000000000001",
        "Tides"
    ));
    assert!(names("resume with 0197f1a0", "Tides"));
    assert!(!names("resume with 0197", "Tides"));
    assert!(names("Please finish \"add Dark  mode\"!", "Add dark mode…"));
    assert!(!names("Please finish the mode", "Add dark mode"));
    assert!(!names("Fix the tests again", "Fix the tests"));
    assert!(!names("adding dark modes", "Add dark mode"));
}
