//! Background tasks: tracked from the step that reports them until they end, or until there is no
//! activity for too long.

use onward_core::Timestamp;
use onward_core::turn::{ExternalChange, Progress, ProgressDetector, TurnPolicy};
use serde_json::json;

use crate::harness::{Harness, Step, answer, sentence, shell, tool};

const CHANGED: Option<Progress> = Some(Progress::Changed);

fn start(command: &str, task: &str) -> Step {
    let input = json!({ "command": command, "run_in_background": true });
    let output = format!(
        "Command running in background with ID: {task}. Output is being written to: /x/{task}.output."
    );
    tool("Bash", input, &output)
}

fn poll_task(task: &str, status: &str) -> Step {
    let output = format!("<task_id>{task}</task_id>\n<status>{status}</status>");
    tool("TaskOutput", json!({ "task_id": task }), &output)
}

fn sleep() -> Step {
    shell("sleep 2", "")
}

#[test]
fn waiting_for_a_task_is_measured_in_time() {
    let mut harness = Harness::default();
    assert_eq!(harness.progress(&start("make", "b1").at(0)), CHANGED);
    for second in (5..60).step_by(5) {
        assert_eq!(
            harness.idle_halves(&sleep().at(second)),
            Some(0),
            "{second}"
        );
    }
    assert_eq!(harness.idle_halves(&sleep().at(60)), Some(2));
    assert_eq!(harness.idle_halves(&sleep().at(65)), Some(0));
    // A no-op is not waiting, even if a task is running.
    assert_eq!(harness.idle_halves(&shell("true", "").at(66)), Some(2));

    let mut off = Harness::with_parts(|parts| parts.waiting = false);
    off.observe(&start("make", "b1").at(0));
    assert_eq!(off.idle_halves(&sleep().at(5)), Some(2));
}

#[test]
fn the_start_and_end_of_a_task_are_progress_once_under_both_rules() {
    for mut harness in [Harness::default(), Harness::plain()] {
        let short = tool("Bash", json!({ "is_background": true }), "");
        assert_eq!(harness.progress(&short), CHANGED);
        assert_eq!(harness.progress(&short), None);
        assert_eq!(harness.progress(&poll_task("b1", "running")), CHANGED);
        assert_eq!(harness.progress(&poll_task("b1", "running")), None);
        let done = tool(
            "TaskOutput",
            json!({ "task_id": "b1" }),
            "<status>completed</status>",
        );
        assert_eq!(harness.progress(&done), CHANGED);
        assert_eq!(harness.progress(&done), None);
    }
}

#[test]
fn after_the_end_of_a_task_waiting_counts_in_steps() {
    for end in [
        poll_task("b1", "completed"),
        tool("KillShell", json!({ "shell_id": "b1" }), "killed"),
    ] {
        let mut harness = Harness::default();
        harness.observe(&start("make", "b1").at(0));
        assert_eq!(harness.idle_halves(&sleep().at(5)), Some(0));
        assert_eq!(harness.progress(&end.at(10)), CHANGED);
        assert_eq!(harness.idle_halves(&sleep().at(15)), Some(2));
    }
    // Another task is still running.
    let mut harness = Harness::default();
    harness.observe(&start("make", "b1").and(start("make docs", "b2")).at(0));
    harness.observe(&poll_task("b2", "failed").at(5));
    assert_eq!(harness.idle_halves(&sleep().at(10)), Some(0));
    harness.observe(&poll_task("b1", "killed").at(15));
    assert_eq!(harness.idle_halves(&sleep().at(20)), Some(2));
}

#[test]
fn a_notification_resets_the_idle_count_and_ends_its_task() {
    let at = |second: i64| Some(Timestamp::from_millis(second * 1000));
    let mut harness = Harness::default();
    harness.observe(&start("make", "b1").at(0));
    for second in [60, 120, 180] {
        harness.observe(&sleep().at(second));
    }
    assert_eq!(harness.detector.idle_steps(), 3);
    harness.detector.record_task_notification(None, at(190));
    assert_eq!(harness.detector.idle_steps(), 0);
    assert_eq!(
        harness.idle_halves(&sleep().at(195)),
        Some(0),
        "still running"
    );
    harness
        .detector
        .record_task_notification(Some("b2"), at(200));
    assert_eq!(
        harness.idle_halves(&sleep().at(205)),
        Some(0),
        "another task ended"
    );
    harness
        .detector
        .record_task_notification(Some("b1"), at(210));
    assert_eq!(harness.idle_halves(&sleep().at(215)), Some(2));
}

#[test]
fn a_task_without_activity_no_longer_suppresses_stall_detection() {
    // The limit is one minute per step of the threshold.
    let mut harness = Harness::default();
    harness.observe(&start("npm run dev", "b1").at(0));
    let new_output =
        |nth: usize, second: i64| shell(&format!("cat {nth}"), &sentence(nth)).at(second);
    harness.observe(&new_output(1, 470));
    assert_eq!(harness.idle_halves(&sleep().at(479)), Some(0));
    assert_eq!(harness.idle_halves(&sleep().at(480)), Some(2));
    assert_eq!(harness.idle_halves(&sleep().at(485)), Some(2));
    // Polling the task counts as activity.
    harness.observe(&poll_task("b1", "running").at(490));
    assert_eq!(harness.idle_halves(&sleep().at(495)), Some(0));
    harness.observe(&new_output(2, 960));
    assert_eq!(harness.idle_halves(&sleep().at(969)), Some(0));
    assert_eq!(harness.idle_halves(&sleep().at(970)), Some(2));

    // A server that was started long ago does not hide a loop.
    let mut harness = Harness::default();
    harness.observe(&start("npm run dev", "b1").at(0));
    harness.observe(&new_output(1, 600));
    let again = (0..20).map(|nth| new_output(1, 601 + nth));
    assert_eq!(harness.stalls_after(again), Some(8));
}

#[test]
fn without_timestamps_a_task_expires_after_twice_the_threshold() {
    let mut harness = Harness::default();
    harness.observe(&start("make", "b1"));
    for nth in 0..14 {
        harness.observe(&shell(&format!("cat {nth}"), &sentence(nth)));
    }
    assert_eq!(harness.idle_halves(&sleep()), Some(1));
    assert_eq!(harness.idle_halves(&sleep()), Some(2));
    // Only waiting is a stall after twice the threshold.
    let mut harness = Harness::default();
    harness.observe(&start("make", "b1"));
    assert_eq!(harness.stalls_after((0..50).map(|_| sleep())), Some(16));
}

#[test]
fn starting_the_same_task_again_is_not_progress() {
    let mut harness = Harness::default();
    harness.observe(&start("make", "b0").at(0));
    let again = (1..20).map(|nth| start("make", &format!("b{nth}")).at(nth));
    assert_eq!(harness.stalls_after(again), Some(8));
    // The repeated start does not count as waiting, but its task is tracked.
    assert_eq!(harness.idle_halves(&sleep().at(30)), Some(0));
    assert_eq!(harness.progress(&start("make test", "c1").at(31)), CHANGED);

    let mut off = Harness::with_parts(|parts| parts.repeats = false);
    off.observe(&start("make", "b0").at(0));
    assert_eq!(off.progress(&start("make", "b1").at(1)), CHANGED);
}

#[test]
fn a_fingerprint_timeout_does_not_lose_a_task() {
    let mut harness = Harness::default();
    harness.observe(&shell("cat a", &sentence(1)).at(0));
    harness.observe(&start("make", "b1").at(1).external(ExternalChange::TimedOut));
    assert_eq!(harness.idle_halves(&sleep().at(5)), Some(0));
}

#[test]
fn a_new_turn_has_no_tasks() {
    let mut harness = Harness::default();
    harness.observe(&start("make", "b1").at(0));
    harness.observe(&answer());
    assert_eq!(harness.idle_halves(&sleep().at(5)), Some(2));
}

#[test]
fn tasks_are_stored_in_the_state_and_limited() {
    let mut harness = Harness::default();
    for nth in 0..30 {
        harness.observe(&start(&format!("make {nth}"), &format!("b{nth}")).at(nth));
    }
    let state = harness.detector.state();
    assert_eq!(state.tasks.len(), 16);
    let mut resumed = Harness::default();
    resumed.detector = ProgressDetector::resume(TurnPolicy::default(), state);
    assert_eq!(resumed.detector, harness.detector);
    for nth in 14..30 {
        assert_eq!(resumed.idle_halves(&sleep().at(40)), Some(0), "{nth}");
        let task = format!("b{nth}");
        resumed.detector.record_task_notification(Some(&task), None);
    }
    assert_eq!(resumed.idle_halves(&sleep().at(40)), Some(2));
}
