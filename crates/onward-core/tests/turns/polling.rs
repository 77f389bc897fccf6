//! Polling is not a loop: repeated calls with advancing output, and waiting measured in time.

use onward_core::turn::{Progress, Verdict};
use serde_json::json;

use crate::harness::{Harness, Step, shell, tool};

const ADVANCED: Option<Progress> = Some(Progress::Advanced { call: 0 });

fn poll(output: &str) -> Step {
    shell("kubectl get pods", output)
}

#[test]
fn a_repeated_call_with_a_new_line_is_progress_of_any_length() {
    let mut harness = Harness::default();
    harness.observe(&poll("web  Pending"));
    assert_eq!(harness.idle_halves(&poll("web  Pending")), Some(2));
    assert_eq!(harness.progress(&poll("web  Running")), ADVANCED);

    let mut off = Harness::with_parts(|parts| parts.polling = false);
    off.observe(&poll("web  Pending"));
    assert_eq!(off.idle_halves(&poll("web  Running")), Some(2));
}

#[test]
fn an_increasing_counter_is_progress_and_a_decreasing_one_is_not() {
    for form in [
        "copied {n}% of it",
        "{n}/90 files",
        "{n} of 90 files",
        "file {n} of 90",
    ] {
        let at = |n: u32| {
            poll(&format!(
                "copying the files\n{}\nin progress",
                form.replace("{n}", &n.to_string())
            ))
        };
        let mut harness = Harness::default();
        harness.observe(&at(10));
        for n in 11..40 {
            assert_eq!(harness.progress(&at(n)), ADVANCED, "{form} {n}");
        }
        assert_eq!(harness.idle_halves(&at(5)), Some(1), "{form}, decreased");
        assert_eq!(harness.idle_halves(&at(5)), Some(2), "{form}, unchanged");
    }
}

#[test]
fn a_growing_log_is_progress() {
    let tail = |n: u32| {
        poll(&format!(
            " CC eth_{n}.o\n CC eth_{}.o\n CC eth_{}.o",
            n + 1,
            n + 2
        ))
    };
    let mut harness = Harness::default();
    harness.observe(&tail(10));
    for n in [40, 70, 20, 90] {
        assert_eq!(harness.progress(&tail(n)), ADVANCED, "{n}");
    }
}

#[test]
fn a_table_with_fluctuating_numbers_counts_half() {
    let free = |used: u32| {
        poll(&format!(
            "      total  used\nMem:  32000  {used}\nSwap:  100  {used}"
        ))
    };
    let mut harness = Harness::default();
    harness.observe(&free(900));
    assert_eq!(harness.progress(&free(905)), ADVANCED);
    assert_eq!(harness.idle_halves(&free(899)), Some(1));
    assert_eq!(harness.idle_halves(&free(905)), Some(2));
}

#[test]
fn a_number_that_moves_in_one_direction_is_progress() {
    let mut harness = Harness::default();
    harness.observe(&poll("(integer) 44954"));
    for length in [41_072, 39_000, 20_631, 7] {
        assert_eq!(
            harness.progress(&poll(&format!("(integer) {length}"))),
            ADVANCED
        );
    }
}

#[test]
fn another_random_number_is_not_progress_indefinitely() {
    let mut seed = 12_345_u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        (seed >> 16) & 0x7fff
    };
    let numbers = (0..40).map(|_| shell("echo $RANDOM", &random().to_string()));
    let stalled = Harness::default().stalls_after(numbers);
    assert!(stalled.is_some_and(|steps| steps <= 20), "{stalled:?}");
    let ids = (0..40).map(|_| shell("uuidgen", &format!("{:08x}-{0:04x}-4a", random())));
    assert!(
        Harness::default()
            .stalls_after(ids)
            .is_some_and(|steps| steps <= 20)
    );
}

#[test]
fn waiting_with_a_pause_is_a_stall_after_half_an_hour() {
    let look = || shell("sleep 60; gh run view 7", "in progress");
    let mut harness = Harness::default();
    let stalled = harness.stalls_after((0..60).map(|nth| look().at(nth * 65)));
    // The first look is new, and each later one takes 65 seconds.
    assert_eq!(stalled, Some(1 + 1_800_usize.div_ceil(65)));
    // Without a clock, the pause is the clock.
    let stalled = Harness::default().stalls_after((0..60).map(|_| look()));
    assert_eq!(stalled, Some(1 + 30));
    // A change resets the time.
    let mut harness = Harness::default();
    for nth in 0..40 {
        let output = if nth < 20 {
            "in progress"
        } else {
            "almost done"
        };
        let step = shell("sleep 60; gh run view 7", output).at(nth * 65);
        assert!(!matches!(harness.observe(&step), Verdict::Stalled { .. }));
    }
    let mut off = Harness::with_parts(|parts| parts.waiting = false);
    assert_eq!(
        off.stalls_after((0..60).map(|nth| look().at(nth * 65))),
        Some(9)
    );
}

#[test]
fn polling_without_a_pause_counts_in_steps() {
    for command in ["gh run view 7", "sleep 1; gh run view 7"] {
        let looks = (0..20).map(|nth| shell(command, "in progress").at(nth * 4));
        assert_eq!(Harness::default().stalls_after(looks), Some(9), "{command}");
    }
    // A command that returns before its pause has passed does not wait.
    let looks = (0..20).map(|nth| shell("sleep 60; true", "").failed().at(nth * 4));
    assert!(Harness::default().stalls_after(looks).is_some());
}

#[test]
fn walking_down_a_directory_tree_is_not_a_loop() {
    let mut harness = Harness::default();
    let names = [
        "src", "main", "java", "org", "tides", "moon", "orbit", "model", "impl", "io",
    ];
    for name in names {
        assert_eq!(
            harness.idle_halves(&tool("cd", json!(format!("cd {name}")), "")),
            Some(0)
        );
        harness.observe(&tool(
            "ls",
            json!("ls -F"),
            &format!("{name}.java {name}s/"),
        ));
    }
    assert!(harness.detector.idle_steps() <= 1);
}

#[test]
fn waiting_for_a_background_task_is_measured_in_time() {
    let wait = |second: i64| shell("sleep 2", "").with_task_at(second);
    let mut harness = Harness::default();
    harness.observe(&shell("make &", "[1] 4711").changed().with_task_at(0));
    for second in (5..60).step_by(5) {
        assert_eq!(harness.idle_halves(&wait(second)), Some(0), "{second}");
    }
    assert_eq!(harness.idle_halves(&wait(60)), Some(2));
    assert_eq!(harness.idle_halves(&wait(119)), Some(0));
    assert_eq!(harness.idle_halves(&wait(120)), Some(2));
    // Eight minutes of waiting are a stall.
    let stalls = harness.stalls_after((125..1000).step_by(5).map(wait));
    assert_eq!(stalls, Some((480 - 120) / 5));

    let mut off = Harness::with_parts(|parts| parts.waiting = false);
    off.observe(&shell("make &", "[1] 4711").changed().with_task_at(0));
    assert_eq!(off.idle_halves(&wait(5)), Some(2));
}

#[test]
fn polling_counts_as_waiting_and_a_no_op_does_not() {
    let mut harness = Harness::default();
    harness.observe(&shell("make &", "[1] 4711").changed().with_task_at(0));
    harness.observe(&shell("tail build.log", "CC main.o").with_task_at(1));
    assert_eq!(
        harness.idle_halves(&shell("tail build.log", "CC main.o").with_task_at(20)),
        Some(0)
    );
    assert_eq!(
        harness.idle_halves(&shell("true", "").with_task_at(25)),
        Some(2)
    );
    assert_eq!(
        harness.idle_halves(&shell("grep x y", "").with_task_at(26)),
        Some(0)
    );
}

#[test]
fn waiting_without_timestamps_counts_half() {
    let mut harness = Harness::default();
    let mut step = shell("sleep 2", "").with_task_at(0);
    harness.observe(&step);
    step = step.without_time();
    assert_eq!(harness.idle_halves(&step), Some(1));
}
