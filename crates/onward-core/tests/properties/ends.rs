//! What is over is over: a plan that ended takes notes and nothing else, and a step that ended keeps
//! what it ended with.

use onward_core::plan::PlanHead;
use onward_core::{Event, PlanStatus, StepStatus};
use proptest::prelude::*;

use crate::walk::{cases, walks};

fn only_notes(event: &Event) -> bool {
    matches!(
        event,
        Event::SkillStarted { .. } | Event::SkillCompleted { .. } | Event::LateResultKept { .. }
    )
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_plan_that_is_over_stays_as_it_is(walk in walks()) {
        walk.play(|moment| {
            let (before, after) = (moment.before, moment.after());
            if !before.head().status().is_terminal() {
                return Ok(());
            }
            for event in moment.events() {
                prop_assert!(only_notes(event), "{:?} on a plan that is over", event);
            }
            let head = PlanHead { seq: before.head().seq, ..after.head().clone() };
            prop_assert_eq!(&head, before.head());
            prop_assert_eq!(before.steps(), after.steps());
            Ok(())
        })?;
    }

    #[test]
    fn a_step_that_is_over_keeps_what_it_ended_with(walk in walks()) {
        walk.play(|moment| {
            let over = moment.before.steps().iter();
            for step in over.filter(|step| step.status().is_terminal()) {
                let after = moment.after().step(step.id());
                // The result, the claim, the reason and the instant are all part of the state.
                prop_assert_eq!(after.map(|step| &step.state), Some(&step.state));
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_end_of_a_plan_is_the_last_that_happens_to_it(walk in walks()) {
        walk.play(|moment| {
            let mut ended = false;
            for event in moment.events() {
                prop_assert!(!ended, "{:?} after the plan's end", event);
                ended = matches!(event, Event::PlanCompleted | Event::PlanFailed { .. });
            }
            let was = moment.before.head().status();
            let is = moment.after().head().status();
            prop_assert_eq!(ended, is.is_terminal() && !was.is_terminal());
            if is == PlanStatus::Completed {
                let open = moment.after().steps().iter().find(|step| !step.status().is_terminal());
                prop_assert!(open.is_none(), "a completed plan has an open step: {:?}", open);
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_step_ends_once_and_only_by_its_own_event(walk in walks()) {
        walk.play(|moment| {
            moment.each_event(|before, event, after| {
                for step in after.steps().iter().filter(|step| step.status().is_terminal()) {
                    let was = before.step(step.id()).map(|step| step.status());
                    let ends = matches!(
                        event,
                        Event::StepCompleted { .. }
                            | Event::StepFailed { .. }
                            | Event::StepSkipped { .. }
                    ) && event.step() == Some(step.id());
                    let was_over = was.is_some_and(StepStatus::is_terminal);
                    prop_assert!(was_over != ends, "{:?} and {:?}", step, event);
                }
                Ok(())
            })
        })?;
    }
}
