//! Whatever is asked, by whomever, at whatever time the clock shows: there is an answer, it is the
//! same when asked again, and asking changes nothing.

use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef};
use onward_core::decide::create;
use onward_core::id::{PlanId, StepId};
use onward_core::{Command, Event, Plan, Refusal, Timestamp, decide};
use proptest::prelude::*;

use crate::dice::Dice;
use crate::walk::{Fresh, cases, wild_walks};
use crate::{nonsense, plans};

type Answer = Result<Vec<Event>, Refusal>;

/// A report may say that it is at NaN percent, which is not equal to itself.
fn same(one: &Answer, other: &Answer) -> bool {
    one == other || format!("{one:?}") == format!("{other:?}")
}

fn asked_twice(plan: &Plan, command: &Command, now: Timestamp) -> Result<(), TestCaseError> {
    let copy = plan.clone();
    let first = decide(plan, command, now);
    let second = decide(&copy, command, now);
    prop_assert!(
        same(&first, &second),
        "{first:?} and then {second:?} for {command:?}"
    );
    prop_assert_eq!(&copy, plan);
    if let Err(refusal) = first {
        prop_assert!(!refusal.to_string().is_empty());
        prop_assert!(!refusal.hint().is_empty());
        prop_assert!(!refusal.code().as_str().is_empty());
    }
    Ok(())
}

/// A plan of which any part may be spoilt, ids that are not fresh included.
fn spoilt(dice: &mut Dice<'_>) -> CreatePlan {
    let mut fresh = Fresh::default();
    let mut plan = plans::sound(&mut fresh, dice);
    let orders = [0, 1, 2, 3, 9, u32::MAX - 1, u32::MAX];
    for _ in 0..dice.below(4) {
        let order = dice.pick(&orders).copied().unwrap_or(0);
        let text = nonsense::text(dice);
        let place = dice.below(plan.steps.len());
        let Some(step) = plan.steps.get_mut(place) else {
            continue;
        };
        match dice.below(9) {
            0 => step.depends_on.push(order),
            1 => step.id = StepId::from_u128(1),
            2 => step.instructions = text,
            3 => step.title = Some(text),
            4 => step.max_attempts = Some(order),
            5 => plan.name = text,
            6 => plan.research_question = text,
            7 => plan.steps.clear(),
            _ => plan.branches.push(BranchSpec {
                id: fresh.branch(),
                after_order: order,
                condition: text,
                action: match dice.below(3) {
                    0 => ActionSpec::SkipTo(StepRef::Order(order)),
                    1 => ActionSpec::SkipTo(StepRef::Id(StepId::from_u128(1))),
                    _ => ActionSpec::AddSteps(plans::inserted(&mut fresh, dice, 1, 3)),
                },
            }),
        }
    }
    CreatePlan {
        plan: PlanId::from_u128(0),
        ..plan
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn every_command_has_an_answer_and_always_the_same(walk in wild_walks()) {
        walk.play(|moment| {
            asked_twice(moment.before, moment.command, moment.now)?;
            for now in [moment.now, Timestamp::MIN, Timestamp::MAX] {
                asked_twice(moment.after(), moment.command, now)?;
            }
            Ok(())
        })?;
    }

    #[test]
    fn every_plan_that_somebody_asks_for_has_an_answer(
        rolls in prop::collection::vec(any::<u16>(), 160),
    ) {
        let command = spoilt(&mut Dice::new(&rolls));
        let answer = create::decide(&command);
        prop_assert!(same(&answer, &create::decide(&command)));
        let mut ids: Vec<StepId> = command.steps.iter().map(|step| step.id).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert!(answer.is_err() || ids.len() == command.steps.len(), "an id twice");
    }

    #[test]
    fn an_id_that_is_not_fresh_is_refused(walk in wild_walks()) {
        walk.play(|moment| {
            if nonsense::brings_known_ids(moment.before, moment.command) {
                prop_assert!(moment.answer.is_err(), "{:?}", moment.answer);
            }
            Ok(())
        })?;
    }
}
