//! Progress in percent, and the plan status derived from step statuses.

use onward_core::{Counts, PlanStatus, StepStatus, derive_plan_status};

use StepStatus::{AwaitingInput, Completed, Failed, InProgress, Pending, Skipped};

#[test]
fn derives_the_plan_status_from_the_step_statuses() {
    for (steps, expected) in [
        (&[][..], PlanStatus::Planning),
        (&[Pending, Pending], PlanStatus::Planning),
        (&[Completed, Skipped, Failed], PlanStatus::Completed),
        (&[Failed, Failed], PlanStatus::Completed),
        (
            &[AwaitingInput, InProgress, Completed],
            PlanStatus::AwaitingReview,
        ),
        (&[AwaitingInput], PlanStatus::AwaitingReview),
        (&[InProgress, Pending], PlanStatus::Executing),
        (&[Completed, Pending], PlanStatus::Executing),
        (&[Skipped, Pending], PlanStatus::Executing),
        (&[Failed, Pending], PlanStatus::Executing),
    ] {
        assert_eq!(
            derive_plan_status(steps.iter().copied()),
            expected,
            "{steps:?}"
        );
    }
}

fn progress(completed: u32, skipped: u32, failed: u32, pending: u32) -> u32 {
    Counts {
        completed,
        skipped,
        failed,
        pending,
        ..Counts::default()
    }
    .progress()
}

#[test]
fn rounds_progress_half_up() {
    assert_eq!(progress(0, 0, 0, 0), 0);
    assert_eq!(progress(1, 0, 0, 2), 33);
    assert_eq!(progress(2, 0, 0, 1), 67);
    assert_eq!(progress(1, 0, 0, 7), 13); // 12.5
    assert_eq!(progress(1, 0, 0, 199), 1); // 0.5
    assert_eq!(progress(1, 0, 0, 200), 0); // 0.4975
    assert_eq!(progress(3, 0, 0, 1), 75);
    assert_eq!(progress(10_000, 0, 0, 0), 100);
}

#[test]
fn skipped_steps_count_as_progress_and_failed_steps_do_not() {
    assert_eq!(progress(1, 1, 0, 2), 50);
    assert_eq!(progress(1, 1, 2, 0), 50);
    assert_eq!(progress(0, 0, 4, 0), 0);
}

#[test]
fn counts_each_status_separately() {
    let counts: Counts = StepStatus::ALL
        .into_iter()
        .chain([Failed, Failed])
        .collect();
    assert_eq!(
        StepStatus::ALL.map(|status| counts.get(status)),
        [1, 1, 1, 1, 1, 3]
    );
    assert_eq!((counts.total(), counts.terminal()), (8, 5));
}

#[test]
fn counts_saturate_instead_of_overflowing() {
    let counts = Counts {
        pending: u32::MAX,
        completed: u32::MAX,
        ..Counts::default()
    };
    assert_eq!(counts.total(), u32::MAX);
    assert!(counts.progress() <= 100);
}
