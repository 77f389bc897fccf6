//! Every command has an outcome, at any time and with any input; deciding is deterministic and
//! changes nothing.

use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef};
use onward_core::decide::create;
use onward_core::id::{PlanId, StepId};
use onward_core::{Command, Event, Plan, Refusal, Timestamp, decide};
use proptest::prelude::*;

use crate::ids::IdSource;
use crate::rng::Rng;
use crate::walk::{cases, hostile_walks};
use crate::{invalid_commands, plans};

type Outcome = Result<Vec<Event>, Refusal>;

/// Compares outcomes. A NaN percentage is not equal to itself, so the debug text is compared too.
fn is_same(a: &Outcome, b: &Outcome) -> bool {
    a == b || format!("{a:?}") == format!("{b:?}")
}

fn check_deterministic(
    plan: &Plan,
    command: &Command,
    now: Timestamp,
) -> Result<(), TestCaseError> {
    let copy = plan.clone();
    let first = decide(plan, command, now);
    let second = decide(&copy, command, now);
    prop_assert!(
        is_same(&first, &second),
        "{first:?}, then {second:?} for {command:?}"
    );
    prop_assert_eq!(&copy, plan);
    if let Err(refusal) = first {
        prop_assert!(!refusal.to_string().is_empty());
        prop_assert!(!refusal.hint().is_empty());
        prop_assert!(!refusal.code().as_str().is_empty());
    }
    Ok(())
}

/// A plan with up to three invalid parts, including duplicate ids.
fn invalid_plan(rng: &mut Rng<'_>) -> CreatePlan {
    let mut ids = IdSource::default();
    let mut plan = plans::create(&mut ids, rng);
    let orders = [0, 1, 2, 3, 9, u32::MAX - 1, u32::MAX];
    for _ in 0..rng.below(4) {
        let order = rng.pick(&orders).copied().unwrap_or(0);
        let text = invalid_commands::text(rng);
        let index = rng.below(plan.steps.len());
        let Some(step) = plan.steps.get_mut(index) else {
            continue;
        };
        match rng.below(9) {
            0 => step.depends_on.push(order),
            1 => step.id = StepId::from_u128(1),
            2 => step.instructions = text,
            3 => step.title = Some(text),
            4 => step.max_attempts = Some(order),
            5 => plan.name = text,
            6 => plan.research_question = text,
            7 => plan.steps.clear(),
            _ => plan.branches.push(BranchSpec {
                id: ids.branch(),
                after_order: order,
                condition: text,
                action: match rng.below(3) {
                    0 => ActionSpec::SkipTo(StepRef::Order(order)),
                    1 => ActionSpec::SkipTo(StepRef::Id(StepId::from_u128(1))),
                    _ => ActionSpec::AddSteps(plans::steps_to_insert(&mut ids, rng, 3)),
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
    fn every_command_has_a_deterministic_outcome(walk in hostile_walks()) {
        walk.run(|round| {
            check_deterministic(round.before, round.command, round.now)?;
            for now in [round.now, Timestamp::MIN, Timestamp::MAX] {
                check_deterministic(round.after(), round.command, now)?;
            }
            Ok(())
        })?;
    }

    #[test]
    fn every_creation_has_a_deterministic_outcome(
        values in prop::collection::vec(any::<u16>(), 160),
    ) {
        let command = invalid_plan(&mut Rng::new(&values));
        let outcome = create::decide(&command);
        prop_assert!(is_same(&outcome, &create::decide(&command)));
        let mut ids: Vec<StepId> = command.steps.iter().map(|step| step.id).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert!(outcome.is_err() || ids.len() == command.steps.len(), "duplicate id");
    }

    #[test]
    fn rejects_reused_step_ids(walk in hostile_walks()) {
        walk.run(|round| {
            if invalid_commands::reuses_step_ids(round.before, round.command) {
                prop_assert!(round.outcome.is_err(), "{:?}", round.outcome);
            }
            Ok(())
        })?;
    }
}
