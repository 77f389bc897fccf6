//! A plan is what its events say, and nothing else: replayed, followed by the head alone, followed by
//! one step alone, or with its indexes made anew, it is the same.

use onward_core::apply::Plan;
use onward_core::event::Change;
use onward_core::id::SkillExecutionId;
use onward_core::{Event, Step, Timestamp};
use proptest::prelude::*;

use crate::walk::{apply, cases, replayed, walks};

/// The plan after a reordering that changes nothing, for which the indexes are made anew.
fn indexed_anew(plan: &Plan, at: Timestamp) -> Result<Plan, TestCaseError> {
    let mut plan = plan.clone();
    let change = Change::StepsReordered {
        steps: plan.steps().iter().map(Step::id).collect(),
    };
    let rationale = None;
    apply(&mut plan, &[Event::PlanModified { change, rationale }], at)?;
    Ok(plan)
}

/// The plan after an event that changes nothing but what every event changes, and no index.
fn nudged(plan: &Plan, at: Timestamp) -> Result<Plan, TestCaseError> {
    let mut plan = plan.clone();
    let event = Event::SkillStarted {
        execution: SkillExecutionId::from_u128(0),
        skill: String::new(),
    };
    apply(&mut plan, &[event], at)?;
    Ok(plan)
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn replaying_the_trail_gives_the_plan(walk in walks()) {
        let mut seen = Vec::new();
        let world = walk.play(|moment| {
            seen.push((moment.world.trail.len(), moment.after().clone()));
            Ok(())
        })?;
        prop_assert_eq!(&replayed(&world.trail)?, &world.plan);
        let (first, rest) = world.trail.split_at(1);
        let mut plan = replayed(first)?;
        for (length, (event, at)) in (2..).zip(rest) {
            apply(&mut plan, std::slice::from_ref(event), *at)?;
            for (_, then) in seen.iter().filter(|(then, _)| *then == length) {
                prop_assert_eq!(&plan, then, "after {} events", length);
            }
        }
    }

    #[test]
    fn indexes_that_were_kept_equal_indexes_made_anew(walk in walks()) {
        walk.play(|moment| {
            moment.each_event(|_, event, after| {
                // A plan that is over is not reordered; its last event left the indexes alone.
                if !after.head().status().is_terminal() {
                    let anew = indexed_anew(after, moment.now)?;
                    let kept = nudged(after, moment.now)?;
                    prop_assert_eq!(kept, anew, "after {:?}", event);
                }
                Ok(())
            })
        })?;
    }

    #[test]
    fn the_head_follows_without_its_steps(walk in walks()) {
        walk.play(|moment| {
            let mut head = moment.before.head().clone();
            for event in moment.events() {
                head.apply(event, moment.now)
                    .map_err(|why| TestCaseError::fail(why.to_string()))?;
            }
            prop_assert_eq!(&head, moment.after().head());
            Ok(())
        })?;
    }

    #[test]
    fn a_step_follows_without_its_plan(walk in walks()) {
        walk.play(|moment| {
            for step in moment.before.steps() {
                let mut step = step.clone();
                for event in moment.events() {
                    step.apply(event, moment.now)
                        .map_err(|why| TestCaseError::fail(why.to_string()))?;
                }
                if let Some(after) = moment.after().step(step.id()) {
                    step.order = after.order;
                    prop_assert_eq!(&step, after);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_refused_command_changes_nothing(walk in walks()) {
        walk.play(|moment| {
            if moment.answer.is_err() {
                prop_assert_eq!(moment.before, moment.after());
            }
            Ok(())
        })?;
    }
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn every_beginning_of_a_trail_is_a_trail(walk in walks()) {
        let world = walk.play(|_| Ok(()))?;
        for length in 1..=world.trail.len() {
            let plan = replayed(&world.trail[..length])?;
            prop_assert_eq!(usize::try_from(plan.head().seq), Ok(length));
        }
        prop_assert!(replayed(&[]).is_err(), "nothing makes no plan");
        prop_assert!(
            world.trail.len() == 1 || replayed(&world.trail[1..]).is_err(),
            "a trail without its beginning makes no plan"
        );
    }
}
