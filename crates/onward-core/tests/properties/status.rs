//! Status transitions, compared with a second copy of the tables; and consistency of head, counts
//! and steps.

use onward_core::event::{Change, Event};
use onward_core::plan::PlanState;
use onward_core::progress::Counts;
use onward_core::step::{ReviewScope, StepState};
use onward_core::{PlanStatus as P, Step, StepId, StepStatus as S, derive_plan_status};
use proptest::prelude::*;

use crate::walk::{cases, walks};

/// The legal status changes of a plan.
const PLAN_TRANSITIONS: [(P, P); 13] = [
    (P::Planning, P::Executing),
    (P::Planning, P::AwaitingReview),
    (P::Planning, P::Failed),
    (P::Executing, P::AwaitingReview),
    (P::Executing, P::Stalled),
    (P::Executing, P::Completed),
    (P::Executing, P::Failed),
    (P::AwaitingReview, P::Executing),
    (P::AwaitingReview, P::Failed),
    (P::Stalled, P::Executing),
    (P::Stalled, P::Failed),
    // An event that does not change the status.
    (P::Executing, P::Executing),
    (P::Planning, P::Planning),
];

/// The legal status changes of a step.
const STEP_TRANSITIONS: [(S, S); 13] = [
    (S::Pending, S::InProgress),
    (S::Pending, S::Skipped),
    (S::Pending, S::Failed),
    (S::Pending, S::AwaitingInput),
    (S::InProgress, S::Completed),
    (S::InProgress, S::AwaitingInput),
    (S::InProgress, S::Failed),
    (S::InProgress, S::Pending),
    (S::AwaitingInput, S::Completed),
    (S::AwaitingInput, S::Pending),
    (S::AwaitingInput, S::Failed),
    (S::AwaitingInput, S::InProgress),
    (S::AwaitingInput, S::Skipped),
];

/// The plan status, derived naively from the step statuses.
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

/// The percentage, rounded half up by search.
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
    fn plans_and_steps_follow_the_transition_tables(walk in walks()) {
        walk.run(|round| {
            round.each_event(|before, event, after| {
                let transition = (before.head().status(), after.head().status());
                prop_assert!(
                    transition.0 == transition.1 || PLAN_TRANSITIONS.contains(&transition),
                    "{:?} by {:?}", transition, event
                );
                for step in after.steps() {
                    let transition = (before.step(step.id()).map(|was| was.status()), step.status());
                    match transition {
                        (Some(was), is) => prop_assert!(
                            was == is || STEP_TRANSITIONS.contains(&(was, is)),
                            "{:?} by {:?}", transition, event
                        ),
                        (None, is) => prop_assert_eq!(is, S::Pending),
                    }
                }
                Ok(())
            })
        })?;
    }

    #[test]
    fn counts_match_the_steps_after_every_event(walk in walks()) {
        walk.run(|round| {
            round.each_event(|_, event, after| {
                let statuses: Vec<S> = after.steps().iter().map(|step| step.status()).collect();
                let counts = after.head().counts;
                let active = after.steps().iter().filter(|step| step.superseded_by.is_none());
                let active: Vec<S> = active.map(|step| step.status()).collect();
                prop_assert_eq!(usize::try_from(counts.total()), Ok(active.len()));
                prop_assert_eq!(usize::try_from(counts.last_order()), Ok(statuses.len()));
                for status in S::ALL {
                    let counted = active.iter().filter(|is| **is == status).count();
                    prop_assert_eq!(
                        usize::try_from(counts.get(status)), Ok(counted),
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
    fn the_stored_status_is_consistent_with_the_steps(walk in walks()) {
        walk.run(|round| {
            let (was, is) = (round.before.head().status(), round.after().head().status());
            let statuses: Vec<S> = round.after().steps().iter().map(|s| s.status()).collect();
            if derived(&statuses) == P::Completed {
                prop_assert!(is.is_terminal(), "all steps are terminal, but the plan is {}", is);
            }
            prop_assert!(is != P::Planning || was == P::Planning, "back to planning");
            if is == P::Planning {
                prop_assert!(statuses.iter().all(|status| *status == S::Pending));
            }
            let stops = |step: &Step| matches!(
                &step.state,
                StepState::AwaitingInput { review, .. } if review.scope != ReviewScope::Step
            );
            let mut stopping: Vec<StepId> = round
                .after()
                .steps()
                .iter()
                .filter(|step| stops(step))
                .map(Step::id)
                .collect();
            if let PlanState::AwaitingReview { reviews } = &round.after().head().state {
                let mut listed: Vec<StepId> = reviews.iter().map(|review| review.step).collect();
                listed.sort();
                stopping.sort();
                prop_assert_eq!(listed, stopping);
            } else if !is.is_terminal() {
                prop_assert_eq!(stopping, Vec::new());
            }
            Ok(())
        })?;
    }

    #[test]
    fn only_a_planning_or_executing_plan_is_modified(walk in walks()) {
        walk.run(|round| {
            round.each_event(|before, event, _| {
                if let Event::PlanModified { change, .. } = event {
                    let status = before.head().status();
                    if matches!(change, Change::BudgetSet { .. }) {
                        prop_assert!(!status.is_terminal(), "the plan is {}", status);
                        return Ok(());
                    }
                    prop_assert!(matches!(status, P::Planning | P::Executing), "the plan is {}", status);
                }
                Ok(())
            })
        })?;
    }

    #[test]
    fn a_failed_step_does_not_fail_its_plan(walk in walks()) {
        walk.run(|round| {
            let has_failed_step = round.events().iter().any(|event| matches!(
                event,
                Event::StepFailed { from: S::Pending | S::InProgress, .. }
            ));
            if has_failed_step {
                prop_assert!(round.after().head().status() != P::Failed);
            }
            Ok(())
        })?;
    }

    #[test]
    fn rounds_progress_half_up(
        completed in 0_u32..40, skipped in 0_u32..40, failed in 0_u32..40, open in 0_u32..40,
    ) {
        let counts = Counts { completed, skipped, failed, pending: open, ..Counts::default() };
        let to_usize = |number: u32| usize::try_from(number).expect("number fits");
        prop_assert_eq!(
            to_usize(counts.progress()),
            percent(to_usize(completed + skipped), to_usize(completed + skipped + failed + open))
        );
    }
}
