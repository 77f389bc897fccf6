//! Where plans and steps may go, from the tables of the law; and how the head, the counts and the
//! steps agree.

use onward_core::event::Event;
use onward_core::progress::Counts;
use onward_core::{PlanStatus as P, StepStatus as S, derive_plan_status};
use proptest::prelude::*;

use crate::walk::{cases, walks};

/// The moves of a plan, as the law lists them.
const PLAN_MOVES: [(P, P); 12] = [
    (P::Planning, P::Executing),
    (P::Planning, P::Failed),
    (P::Executing, P::AwaitingReview),
    (P::Executing, P::Stalled),
    (P::Executing, P::Completed),
    (P::Executing, P::Failed),
    (P::AwaitingReview, P::Executing),
    (P::AwaitingReview, P::Failed),
    (P::Stalled, P::Executing),
    (P::Stalled, P::Failed),
    // And where it stays: nothing else is legal.
    (P::Executing, P::Executing),
    (P::Planning, P::Planning),
];

/// The moves of a step, as the law lists them.
const STEP_MOVES: [(S, S); 11] = [
    (S::Pending, S::InProgress),
    (S::Pending, S::Skipped),
    (S::Pending, S::Failed),
    (S::InProgress, S::Completed),
    (S::InProgress, S::AwaitingInput),
    (S::InProgress, S::Failed),
    (S::InProgress, S::Pending),
    (S::AwaitingInput, S::Completed),
    (S::AwaitingInput, S::Failed),
    (S::AwaitingInput, S::InProgress),
    (S::AwaitingInput, S::Skipped),
];

/// The first rule that fits, said once more.
fn derived(steps: &[S]) -> P {
    if steps.is_empty() {
        P::Planning
    } else if steps.iter().all(|step| step.is_terminal()) {
        P::Completed
    } else if steps.contains(&S::AwaitingInput) {
        P::AwaitingReview
    } else if steps.iter().any(|step| *step != S::Pending) {
        P::Executing
    } else {
        P::Planning
    }
}

/// Halves up, by hand: the nearest whole number, the greater of two that are as near.
fn percent(done: usize, total: usize) -> usize {
    let mut nearest = 0;
    for candidate in 0..=100 {
        let far = (candidate * total).abs_diff(100 * done);
        if far <= (nearest * total).abs_diff(100 * done) {
            nearest = candidate;
        }
    }
    if total == 0 { 0 } else { nearest }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn plans_and_steps_move_only_as_the_law_says(walk in walks()) {
        walk.play(|moment| {
            moment.each_event(|before, event, after| {
                let moved = (before.head().status(), after.head().status());
                prop_assert!(
                    moved.0 == moved.1 || PLAN_MOVES.contains(&moved),
                    "{:?} by {:?}", moved, event
                );
                for step in after.steps() {
                    let moved = (before.step(step.id()).map(|was| was.status()), step.status());
                    match moved {
                        (Some(was), is) => prop_assert!(
                            was == is || STEP_MOVES.contains(&(was, is)),
                            "{:?} by {:?}", moved, event
                        ),
                        (None, is) => prop_assert_eq!(is, S::Pending),
                    }
                }
                Ok(())
            })
        })?;
    }

    #[test]
    fn the_counts_are_those_of_the_steps_after_every_event(walk in walks()) {
        walk.play(|moment| {
            moment.each_event(|_, event, after| {
                let statuses: Vec<S> = after.steps().iter().map(|step| step.status()).collect();
                let counts = after.head().counts;
                for status in S::ALL {
                    let counted = statuses.iter().filter(|is| **is == status).count();
                    prop_assert_eq!(
                        usize::try_from(counts.of(status)), Ok(counted),
                        "{} after {:?}", status, event
                    );
                }
                prop_assert!(counts.progress() <= 100);
                prop_assert_eq!(derive_plan_status(statuses.clone()), derived(&statuses));
                prop_assert_eq!(counts.derived_status(), derived(&statuses));
                Ok(())
            })
        })?;
    }

    #[test]
    fn the_stored_status_and_the_derived_one_agree_where_they_must(walk in walks()) {
        walk.play(|moment| {
            let (was, is) = (moment.before.head().status(), moment.after().head().status());
            let statuses: Vec<S> = moment.after().steps().iter().map(|s| s.status()).collect();
            if derived(&statuses) == P::Completed {
                prop_assert!(is.is_terminal(), "all steps are over, and the plan is {}", is);
            }
            prop_assert!(is != P::Planning || was == P::Planning, "back to planning");
            if is == P::Planning {
                prop_assert!(statuses.iter().all(|status| *status == S::Pending));
            }
            let awaiting = statuses.iter().filter(|status| **status == S::AwaitingInput).count();
            prop_assert!(awaiting <= 1, "{} steps await input", awaiting);
            if !is.is_terminal() {
                prop_assert_eq!(is == P::AwaitingReview, awaiting == 1);
            }
            Ok(())
        })?;
    }

    #[test]
    fn only_a_plan_that_is_planning_or_executing_is_modified(walk in walks()) {
        walk.play(|moment| {
            moment.each_event(|before, event, _| {
                if let Event::PlanModified { .. } = event {
                    let status = before.head().status();
                    prop_assert!(matches!(status, P::Planning | P::Executing), "it is {}", status);
                }
                Ok(())
            })
        })?;
    }

    #[test]
    fn a_failed_step_does_not_fail_its_plan(walk in walks()) {
        walk.play(|moment| {
            let by_policy = moment.events().iter().any(|event| matches!(
                event,
                Event::StepFailed { from: S::Pending | S::InProgress, .. }
            ));
            if by_policy {
                prop_assert!(moment.after().head().status() != P::Failed);
            }
            Ok(())
        })?;
    }

    #[test]
    fn progress_is_rounded_halves_up(
        completed in 0_u32..40, skipped in 0_u32..40, failed in 0_u32..40, open in 0_u32..40,
    ) {
        let counts = Counts { completed, skipped, failed, pending: open, ..Counts::default() };
        let whole = |number: u32| usize::try_from(number).expect("small");
        prop_assert_eq!(
            whole(counts.progress()),
            percent(whole(completed + skipped), whole(completed + skipped + failed + open))
        );
    }
}
