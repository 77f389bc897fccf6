//! Tasks in the background: known from the step that shows them until they are over, or until nobody has
//! heard of them for too long.

use onward_core::Timestamp;
use onward_core::turn::{Outside, Progress, ProgressDetector, TurnPolicy};
use serde_json::json;

use crate::desk::{Desk, Step, answer, sentence, shell, tool};

const CHANGED: Option<Progress> = Some(Progress::Changed);

fn start(command: &str, task: &str) -> Step {
    let input = json!({ "command": command, "run_in_background": true });
    let output = format!(
        "Command running in background with ID: {task}. Output is being written to: /x/{task}.output."
    );
    tool("Bash", input, &output)
}

fn ask(task: &str, status: &str) -> Step {
    let output = format!("<task_id>{task}</task_id>\n<status>{status}</status>");
    tool("TaskOutput", json!({ "task_id": task }), &output)
}

fn sleep() -> Step {
    shell("sleep 5", "")
}

#[test]
fn later_steps_know_of_a_task_and_wait_by_the_clock() {
    let mut desk = Desk::default();
    assert_eq!(desk.why(&start("make", "b1").at(0)), CHANGED);
    for second in (5..60).step_by(5) {
        assert_eq!(desk.halves(&sleep().at(second)), Some(0), "{second}");
    }
    assert_eq!(desk.halves(&sleep().at(60)), Some(2));
    assert_eq!(desk.halves(&sleep().at(65)), Some(0));
    // Doing nothing is no waiting, whatever runs.
    assert_eq!(desk.halves(&shell("true", "").at(66)), Some(2));

    let mut off = Desk::parts(|parts| parts.polling = false);
    off.see(&start("make", "b1").at(0));
    assert_eq!(off.halves(&sleep().at(5)), Some(2));
}

#[test]
fn that_a_task_begins_or_ends_is_a_change_once_by_either_rule() {
    for mut desk in [Desk::default(), Desk::plain()] {
        let short = tool("Bash", json!({ "is_background": true }), "");
        assert_eq!(desk.why(&short), CHANGED);
        assert_eq!(desk.why(&short), None);
        assert_eq!(desk.why(&ask("b1", "running")), CHANGED);
        assert_eq!(desk.why(&ask("b1", "running")), None);
        let done = tool(
            "TaskOutput",
            json!({ "task_id": "b1" }),
            "<status>completed</status>",
        );
        assert_eq!(desk.why(&done), CHANGED);
        assert_eq!(desk.why(&done), None);
    }
}

#[test]
fn when_it_is_over_waiting_counts_by_steps_again() {
    for over in [
        ask("b1", "completed"),
        tool("KillShell", json!({ "shell_id": "b1" }), "killed"),
    ] {
        let mut desk = Desk::default();
        desk.see(&start("make", "b1").at(0));
        assert_eq!(desk.halves(&sleep().at(5)), Some(0));
        assert_eq!(desk.why(&over.at(10)), CHANGED);
        assert_eq!(desk.halves(&sleep().at(15)), Some(2));
    }
    // Another one that runs is still waited for.
    let mut desk = Desk::default();
    desk.see(&start("make", "b1").and(start("make docs", "b2")).at(0));
    desk.see(&ask("b2", "failed").at(5));
    assert_eq!(desk.halves(&sleep().at(10)), Some(0));
    desk.see(&ask("b1", "killed").at(15));
    assert_eq!(desk.halves(&sleep().at(20)), Some(2));
}

#[test]
fn a_notice_resets_the_count_and_ends_the_task_that_it_names() {
    let at = |second: i64| Some(Timestamp::from_millis(second * 1000));
    let mut desk = Desk::default();
    desk.see(&start("make", "b1").at(0));
    for second in [60, 120, 180] {
        desk.see(&sleep().at(second));
    }
    assert_eq!(desk.detector.idle_steps(), 3);
    desk.detector.hear_of_task(None, at(190));
    assert_eq!(desk.detector.idle_steps(), 0);
    assert_eq!(desk.halves(&sleep().at(195)), Some(0), "it still runs");
    desk.detector.hear_of_task(Some("b2"), at(200));
    assert_eq!(
        desk.halves(&sleep().at(205)),
        Some(0),
        "another one is over"
    );
    desk.detector.hear_of_task(Some("b1"), at(210));
    assert_eq!(desk.halves(&sleep().at(215)), Some(2));
}

#[test]
fn a_task_that_nobody_hears_of_is_not_believed_for_ever() {
    // As long as one may wait for it: a minute for each step of the threshold.
    let mut desk = Desk::default();
    desk.see(&start("npm run dev", "b1").at(0));
    let news = |nth: usize, second: i64| shell(&format!("cat {nth}"), &sentence(nth)).at(second);
    desk.see(&news(1, 470));
    assert_eq!(desk.halves(&sleep().at(479)), Some(0));
    assert_eq!(desk.halves(&sleep().at(480)), Some(2));
    assert_eq!(desk.halves(&sleep().at(485)), Some(2));
    // Whoever asks hears of it again.
    desk.see(&ask("b1", "running").at(490));
    assert_eq!(desk.halves(&sleep().at(495)), Some(0));
    desk.see(&news(2, 960));
    assert_eq!(desk.halves(&sleep().at(969)), Some(0));
    assert_eq!(desk.halves(&sleep().at(970)), Some(2));

    // A loop is not hidden by a server that was started long ago.
    let mut desk = Desk::default();
    desk.see(&start("npm run dev", "b1").at(0));
    desk.see(&news(1, 600));
    let again = (0..20).map(|nth| news(1, 601 + nth));
    assert_eq!(desk.stalls_after(again), Some(8));
}

#[test]
fn without_a_clock_a_task_is_believed_for_twice_the_threshold() {
    let mut desk = Desk::default();
    desk.see(&start("make", "b1"));
    for nth in 0..14 {
        desk.see(&shell(&format!("cat {nth}"), &sentence(nth)));
    }
    assert_eq!(desk.halves(&sleep()), Some(1));
    assert_eq!(desk.halves(&sleep()), Some(2));
    // So nothing but waiting is a stall after as many steps as that, and no later.
    let mut desk = Desk::default();
    desk.see(&start("make", "b1"));
    assert_eq!(desk.stalls_after((0..50).map(|_| sleep())), Some(16));
}

#[test]
fn the_very_same_thing_started_again_is_no_progress() {
    let mut desk = Desk::default();
    desk.see(&start("make", "b0").at(0));
    let again = (1..20).map(|nth| start("make", &format!("b{nth}")).at(nth));
    assert_eq!(desk.stalls_after(again), Some(8));
    // Neither is it waiting, and what was started is known all the same.
    assert_eq!(desk.halves(&sleep().at(30)), Some(0));
    assert_eq!(desk.why(&start("make test", "c1").at(31)), CHANGED);

    let mut off = Desk::parts(|parts| parts.repeats = false);
    off.see(&start("make", "b0").at(0));
    assert_eq!(off.why(&start("make", "b1").at(1)), CHANGED);
}

#[test]
fn a_late_look_at_the_outside_does_not_lose_a_task() {
    let mut desk = Desk::default();
    desk.see(&shell("cat a", &sentence(1)).at(0));
    desk.see(&start("make", "b1").at(1).outside(Outside::Late));
    assert_eq!(desk.halves(&sleep().at(5)), Some(0));
}

#[test]
fn a_new_turn_knows_of_no_task() {
    let mut desk = Desk::default();
    desk.see(&start("make", "b1").at(0));
    desk.see(&answer());
    assert_eq!(desk.halves(&sleep().at(5)), Some(2));
}

#[test]
fn tasks_are_put_away_with_the_rest_and_are_not_too_many() {
    let mut desk = Desk::default();
    for nth in 0..30 {
        desk.see(&start(&format!("make {nth}"), &format!("b{nth}")).at(nth));
    }
    let state = desk.detector.state();
    assert_eq!(state.tasks.len(), 16);
    let mut resumed = Desk::default();
    resumed.detector = ProgressDetector::resume(TurnPolicy::default(), state);
    assert_eq!(resumed.detector, desk.detector);
    for nth in 14..30 {
        assert_eq!(resumed.halves(&sleep().at(40)), Some(0), "{nth}");
        let notice = format!("b{nth}");
        resumed.detector.hear_of_task(Some(&notice), None);
    }
    assert_eq!(resumed.halves(&sleep().at(40)), Some(2));
}
