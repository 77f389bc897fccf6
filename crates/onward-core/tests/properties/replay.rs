//! A plan is determined by its events: replaying the audit trail, applying events to the head or to
//! loaded steps alone, and rebuilding the indexes give the same state.

use std::time::Duration;

use onward_core::apply::Plan;
use onward_core::event::Change;
use onward_core::id::SkillExecutionId;
use onward_core::transition::Transition;
use onward_core::{Event, Step, Timestamp};
use proptest::prelude::*;

use crate::state::{apply, replay};
use crate::walk::{cases, walks};

/// The plan after a reordering that changes nothing, which rebuilds the indexes.
fn with_rebuilt_indexes(plan: &Plan, at: Timestamp) -> Result<Plan, TestCaseError> {
    let mut plan = plan.clone();
    let change = Change::StepsReordered {
        steps: plan.steps().iter().map(Step::id).collect(),
    };
    let rationale = None;
    apply(&mut plan, &[Event::PlanModified { change, rationale }], at)?;
    Ok(plan)
}

/// The plan after an event that changes only `seq` and the update time.
fn with_neutral_event(plan: &Plan, at: Timestamp) -> Result<Plan, TestCaseError> {
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
    fn replaying_the_audit_trail_gives_the_plan(walk in walks()) {
        let mut seen = Vec::new();
        let state = walk.run(|round| {
            seen.push((round.state.audit_trail.len(), round.after().clone()));
            Ok(())
        })?;
        prop_assert_eq!(&replay(&state.audit_trail)?, &state.plan);
        let (first, rest) = state.audit_trail.split_at(1);
        let mut plan = replay(first)?;
        for (length, (event, at)) in (2..).zip(rest) {
            apply(&mut plan, std::slice::from_ref(event), *at)?;
            for (_, then) in seen.iter().filter(|(then, _)| *then == length) {
                prop_assert_eq!(&plan, then, "after {} events", length);
            }
        }
    }

    #[test]
    fn updated_indexes_equal_rebuilt_indexes(walk in walks()) {
        walk.run(|round| {
            round.each_event(|_, event, after| {
                // A terminal plan cannot be reordered; its last event did not change the indexes.
                if !after.head().status().is_terminal() {
                    let rebuilt = with_rebuilt_indexes(after, round.now)?;
                    let kept = with_neutral_event(after, round.now)?;
                    prop_assert_eq!(kept, rebuilt, "after {:?}", event);
                }
                Ok(())
            })
        })?;
    }

    #[test]
    fn the_head_can_be_updated_without_the_steps(walk in walks()) {
        walk.run(|round| {
            let head = round.before.head().clone();
            let transition = Transition::new(head, Vec::new(), round.events(), round.now, Duration::MAX)
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&transition.head, round.after().head());
            Ok(())
        })?;
    }

    #[test]
    fn steps_can_be_updated_without_the_plan(walk in walks()) {
        walk.run(|round| {
            let (head, steps) = (round.before.head().clone(), round.before.steps().to_vec());
            let transition = Transition::new(head, steps, round.events(), round.now, Duration::MAX)
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&transition.head, round.after().head());
            for step in &transition.unchanged {
                prop_assert_eq!(Some(step), round.before.step(step.id()));
            }
            let changed = transition.changed.into_iter().map(|after| after.step);
            for mut step in changed.chain(transition.unchanged) {
                if let Some(after) = round.after().step(step.id()) {
                    step.order = after.order;
                    prop_assert_eq!(&step, after);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_rejected_command_changes_nothing(walk in walks()) {
        walk.run(|round| {
            if round.outcome.is_err() {
                prop_assert_eq!(round.before, round.after());
            }
            Ok(())
        })?;
    }
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn every_prefix_of_an_audit_trail_is_valid(walk in walks()) {
        let state = walk.run(|_| Ok(()))?;
        for length in 1..=state.audit_trail.len() {
            let plan = replay(&state.audit_trail[..length])?;
            prop_assert_eq!(usize::try_from(plan.head().seq), Ok(length));
        }
        prop_assert!(replay(&[]).is_err(), "an empty audit trail is not a plan");
        prop_assert!(
            state.audit_trail.len() == 1 || replay(&state.audit_trail[1..]).is_err(),
            "an audit trail without its creation event is not a plan"
        );
    }
}
