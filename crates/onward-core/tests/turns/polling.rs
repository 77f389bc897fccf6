//! Polling is not looping: the same call with an answer that moves on, and waiting by the clock.

use onward_core::turn::Progress;
use serde_json::json;

use crate::desk::{Desk, Step, shell, tool};

const ADVANCED: Option<Progress> = Some(Progress::Advanced { call: 0 });

fn poll(output: &str) -> Step {
    shell("kubectl get pods", output)
}

#[test]
fn the_same_call_with_a_new_line_is_progress_however_short() {
    let mut desk = Desk::default();
    desk.see(&poll("web  Pending"));
    assert_eq!(desk.halves(&poll("web  Pending")), Some(2));
    assert_eq!(desk.why(&poll("web  Running")), ADVANCED);

    let mut off = Desk::parts(|parts| parts.polling = false);
    off.see(&poll("web  Pending"));
    assert_eq!(off.halves(&poll("web  Running")), Some(2));
}

#[test]
fn more_that_is_done_is_progress_and_less_is_not() {
    for form in [
        "copied {n}% of it",
        "{n}/90 files",
        "{n} of 90 files",
        "file {n} of 90",
    ] {
        let at = |n: u32| {
            poll(&format!(
                "the copy of the files\n{}\nis going on",
                form.replace("{n}", &n.to_string())
            ))
        };
        let mut desk = Desk::default();
        desk.see(&at(10));
        for n in 11..40 {
            assert_eq!(desk.why(&at(n)), ADVANCED, "{form} {n}");
        }
        assert_eq!(desk.halves(&at(5)), Some(1), "{form}, back");
        assert_eq!(desk.halves(&at(5)), Some(2), "{form}, still");
    }
}

#[test]
fn the_end_of_a_log_that_grows_is_progress() {
    let tail = |n: u32| {
        poll(&format!(
            " CC eth_{n}.o\n CC eth_{}.o\n CC eth_{}.o",
            n + 1,
            n + 2
        ))
    };
    let mut desk = Desk::default();
    desk.see(&tail(10));
    for n in [40, 70, 20, 90] {
        assert_eq!(desk.why(&tail(n)), ADVANCED, "{n}");
    }
}

#[test]
fn a_table_whose_numbers_go_up_and_down_counts_half() {
    let free = |used: u32| {
        poll(&format!(
            "      total  used\nMem:  32000  {used}\nSwap:  100  {used}"
        ))
    };
    let mut desk = Desk::default();
    desk.see(&free(900));
    assert_eq!(desk.halves(&free(905)), Some(1));
    assert_eq!(desk.halves(&free(899)), Some(1));
    assert_eq!(desk.halves(&free(905)), Some(2));
}

#[test]
fn walking_down_a_tree_is_no_circle() {
    let mut desk = Desk::default();
    let names = [
        "src", "main", "java", "org", "tides", "moon", "orbit", "model", "impl", "io",
    ];
    for name in names {
        assert_eq!(
            desk.halves(&tool("cd", json!(format!("cd {name}")), "")),
            Some(1)
        );
        desk.see(&tool(
            "ls",
            json!("ls -F"),
            &format!("{name}.java {name}s/"),
        ));
    }
    assert!(desk.detector.idle_steps() <= 1);
}

#[test]
fn while_a_background_task_runs_waiting_counts_by_the_clock() {
    let wait = |second: i64| shell("sleep 5", "").waiting_at(second);
    let mut desk = Desk::default();
    desk.see(&shell("make &", "[1] 4711").changed().waiting_at(0));
    for second in (5..60).step_by(5) {
        assert_eq!(desk.halves(&wait(second)), Some(0), "{second}");
    }
    assert_eq!(desk.halves(&wait(60)), Some(2));
    assert_eq!(desk.halves(&wait(119)), Some(0));
    assert_eq!(desk.halves(&wait(120)), Some(2));
    // Eight minutes of it are a stall all the same.
    let stalls = desk.stalls_after((125..1000).step_by(5).map(wait));
    assert_eq!(stalls, Some((480 - 120) / 5));

    let mut off = Desk::parts(|parts| parts.polling = false);
    off.see(&shell("make &", "[1] 4711").changed().waiting_at(0));
    assert_eq!(off.halves(&wait(5)), Some(2));
}

#[test]
fn asking_again_is_waiting_and_doing_nothing_is_not() {
    let mut desk = Desk::default();
    desk.see(&shell("make &", "[1] 4711").changed().waiting_at(0));
    desk.see(&shell("tail build.log", "CC main.o").waiting_at(1));
    assert_eq!(
        desk.halves(&shell("tail build.log", "CC main.o").waiting_at(20)),
        Some(0)
    );
    assert_eq!(desk.halves(&shell("true", "").waiting_at(25)), Some(2));
    assert_eq!(desk.halves(&shell("grep x y", "").waiting_at(26)), Some(2));
}

#[test]
fn waiting_without_a_clock_counts_half() {
    let mut desk = Desk::default();
    let mut step = shell("sleep 5", "").waiting_at(0);
    desk.see(&step);
    step = step.without_a_clock();
    assert_eq!(desk.halves(&step), Some(1));
}
