//! Terminal plans and steps: a terminal plan only records skills and late results, and a terminal
//! step keeps its state.

use onward_core::plan::PlanHead;
use onward_core::{Event, PlanStatus, StepStatus};
use proptest::prelude::*;

use crate::walk::{cases, walks};

fn is_record(event: &Event) -> bool {
    matches!(
        event,
        Event::SkillStarted { .. } | Event::SkillCompleted { .. } | Event::LateResultKept { .. }
    )
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_terminal_plan_does_not_change(walk in walks()) {
        walk.run(|round| {
            let (before, after) = (round.before, round.after());
            if !before.head().status().is_terminal() {
                return Ok(());
            }
            for event in round.events() {
                prop_assert!(is_record(event), "{:?} on a terminal plan", event);
            }
            let head = PlanHead { seq: before.head().seq, ..after.head().clone() };
            prop_assert_eq!(&head, before.head());
            prop_assert_eq!(before.steps(), after.steps());
            Ok(())
        })?;
    }

    #[test]
    fn a_terminal_step_keeps_its_state(walk in walks()) {
        walk.run(|round| {
            let steps = round.before.steps().iter();
            for step in steps.filter(|step| step.status().is_terminal()) {
                let after = round.after().step(step.id());
                // The state includes result, claim, reason and end time.
                prop_assert_eq!(after.map(|step| &step.state), Some(&step.state));
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_end_of_a_plan_is_the_last_event(walk in walks()) {
        walk.run(|round| {
            let mut ended = false;
            for event in round.events() {
                prop_assert!(!ended, "{:?} after the end of the plan", event);
                ended = matches!(event, Event::PlanCompleted | Event::PlanFailed { .. });
            }
            let was = round.before.head().status();
            let is = round.after().head().status();
            prop_assert_eq!(ended, is.is_terminal() && !was.is_terminal());
            if is == PlanStatus::Completed {
                let open = round.after().steps().iter().find(|step| !step.status().is_terminal());
                prop_assert!(open.is_none(), "open step in a completed plan: {:?}", open);
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_step_ends_once_by_its_own_event(walk in walks()) {
        walk.run(|round| {
            round.each_event(|before, event, after| {
                for step in after.steps().iter().filter(|step| step.status().is_terminal()) {
                    let was = before.step(step.id()).map(|step| step.status());
                    let ends = matches!(
                        event,
                        Event::StepCompleted { .. }
                            | Event::StepFailed { .. }
                            | Event::StepSkipped { .. }
                    ) && event.step() == Some(step.id());
                    let was_terminal = was.is_some_and(StepStatus::is_terminal);
                    prop_assert!(was_terminal != ends, "{:?} and {:?}", step, event);
                }
                Ok(())
            })
        })?;
    }
}
