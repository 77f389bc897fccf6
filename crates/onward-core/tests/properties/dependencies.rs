//! Dependencies at creation: a plan is accepted if and only if every order exists and there is no
//! cycle.

use std::collections::BTreeSet;

use onward_core::command::{CreatePlan, StepRef, StepSpec};
use onward_core::decide::create;
use onward_core::event::Change;
use onward_core::id::{PlanId, StepId};
use onward_core::refusal::BadDependency;
use onward_core::{Event, Refusal, StepType};
use proptest::prelude::*;

use crate::walk::cases;

/// The dependencies of each step: usually existing orders, and few enough that many graphs are
/// acyclic.
fn graphs() -> impl Strategy<Value = Vec<Vec<u32>>> {
    (1_usize..9).prop_flat_map(|total| {
        let last = u32::try_from(total).expect("total fits");
        let order = prop_oneof![
            60 => 1..=last,
            1 => Just(0),
            1 => Just(last + 1),
            1 => Just(u32::MAX),
        ];
        prop::collection::vec(prop::collection::vec(order, 0..3), total)
    })
}

fn create_plan(graph: &[Vec<u32>]) -> CreatePlan {
    let steps = (1..)
        .zip(graph)
        .map(|(id, depends_on)| StepSpec {
            depends_on: depends_on.clone(),
            ..StepSpec::new(StepId::from_u128(id), StepType::Custom, "test instructions")
        })
        .collect();
    CreatePlan::new(PlanId::from_u128(0), "test plan", "test question", steps)
}

fn dependencies(graph: &[Vec<u32>], order: u32) -> &[u32] {
    let index = usize::try_from(order)
        .ok()
        .and_then(|order| order.checked_sub(1));
    index
        .and_then(|index| graph.get(index))
        .map_or(&[], Vec::as_slice)
}

fn exists(graph: &[Vec<u32>], order: u32) -> bool {
    usize::try_from(order).is_ok_and(|order| (1..=graph.len()).contains(&order))
}

/// Whether a step depends on itself, by following every path.
fn is_in_cycle(graph: &[Vec<u32>], start: u32) -> bool {
    let mut seen = BTreeSet::new();
    let mut left = dependencies(graph, start).to_vec();
    while let Some(at) = left.pop() {
        if at == start {
            return true;
        }
        if seen.insert(at) {
            left.extend(dependencies(graph, at));
        }
    }
    false
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn accepts_exactly_the_plans_with_existing_acyclic_dependencies(graph in graphs()) {
        let orders: Vec<u32> = (1..).take(graph.len()).collect();
        let all_exist = graph.iter().flatten().all(|order| exists(&graph, *order));
        let acyclic = orders.iter().all(|order| !is_in_cycle(&graph, *order));
        match create::decide(&create_plan(&graph)) {
            Ok(events) => {
                prop_assert!(all_exist && acyclic, "accepted an invalid plan");
                let [Event::PlanModified { change: Change::Created(created), .. }] =
                    events.as_slice()
                else {
                    return Err(TestCaseError::fail(format!("{events:?}")));
                };
                for (step, depends_on) in created.steps.iter().zip(&graph) {
                    let expected: BTreeSet<StepId> = depends_on
                        .iter()
                        .map(|order| StepId::from_u128(u128::from(*order)))
                        .collect();
                    prop_assert_eq!(step.depends_on.len(), expected.len(), "duplicates");
                    let actual: BTreeSet<StepId> = step.depends_on.iter().copied().collect();
                    prop_assert_eq!(actual, expected);
                }
            }
            Err(Refusal::InvalidDependency(BadDependency::Unknown {
                step,
                needed: StepRef::Order(order),
            })) => {
                prop_assert!(!exists(&graph, order), "order {} exists", order);
                prop_assert!(
                    dependencies(&graph, step).contains(&order),
                    "step {} does not depend on it", step
                );
            }
            Err(Refusal::InvalidDependency(BadDependency::Cycle(cycle))) => {
                prop_assert!(cycle.len() > 1, "{:?} is too short", cycle);
                prop_assert_eq!(cycle.first(), cycle.last(), "{:?} is open", cycle);
                for pair in cycle.windows(2) {
                    prop_assert!(
                        dependencies(&graph, pair[0]).contains(&pair[1]),
                        "{:?} is not a cycle", cycle
                    );
                }
                let distinct: BTreeSet<&u32> = cycle.iter().collect();
                prop_assert_eq!(distinct.len() + 1, cycle.len(), "{:?} repeats a step", cycle);
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }
}
