//! Dependencies at creation: a plan is accepted exactly when every order exists and nobody waits for
//! themselves, however far around.

use std::collections::BTreeSet;

use onward_core::command::{CreatePlan, StepSpec};
use onward_core::decide::create;
use onward_core::event::Change;
use onward_core::id::{PlanId, StepId};
use onward_core::refusal::BadDependency;
use onward_core::{Event, Refusal, StepType};
use proptest::prelude::*;

use crate::walk::cases;

/// What each step of a plan depends on: mostly orders that exist, few enough that many a graph has
/// no cycle.
fn graphs() -> impl Strategy<Value = Vec<Vec<u32>>> {
    (1_usize..9).prop_flat_map(|total| {
        let last = u32::try_from(total).expect("small");
        let order = prop_oneof![
            60 => 1..=last,
            1 => Just(0),
            1 => Just(last + 1),
            1 => Just(u32::MAX),
        ];
        prop::collection::vec(prop::collection::vec(order, 0..3), total)
    })
}

fn plan_of(graph: &[Vec<u32>]) -> CreatePlan {
    let steps = (1..)
        .zip(graph)
        .map(|(id, depends_on)| StepSpec {
            depends_on: depends_on.clone(),
            ..StepSpec::new(StepId::from_u128(id), StepType::Custom, "find out")
        })
        .collect();
    CreatePlan::new(PlanId::from_u128(0), "a plan", "why?", steps)
}

fn needs(graph: &[Vec<u32>], order: u32) -> &[u32] {
    let place = usize::try_from(order)
        .ok()
        .and_then(|order| order.checked_sub(1));
    place
        .and_then(|place| graph.get(place))
        .map_or(&[], Vec::as_slice)
}

fn exists(graph: &[Vec<u32>], order: u32) -> bool {
    usize::try_from(order).is_ok_and(|order| (1..=graph.len()).contains(&order))
}

/// Whether one can come back to where one began, by walking along every path there is.
fn returns(graph: &[Vec<u32>], begin: u32) -> bool {
    let mut seen = BTreeSet::new();
    let mut left = needs(graph, begin).to_vec();
    while let Some(at) = left.pop() {
        if at == begin {
            return true;
        }
        if seen.insert(at) {
            left.extend(needs(graph, at));
        }
    }
    false
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn a_plan_is_made_exactly_when_its_dependencies_can_be_met(graph in graphs()) {
        let orders: Vec<u32> = (1..).take(graph.len()).collect();
        let known = graph.iter().flatten().all(|order| exists(&graph, *order));
        let acyclic = orders.iter().all(|order| !returns(&graph, *order));
        match create::decide(&plan_of(&graph)) {
            Ok(events) => {
                prop_assert!(known && acyclic, "accepted");
                let [Event::PlanModified { change: Change::Created(created), .. }] =
                    events.as_slice()
                else {
                    return Err(TestCaseError::fail(format!("{events:?}")));
                };
                for (step, depends_on) in created.steps.iter().zip(&graph) {
                    let meant: BTreeSet<StepId> = depends_on
                        .iter()
                        .map(|order| StepId::from_u128(u128::from(*order)))
                        .collect();
                    prop_assert_eq!(step.depends_on.len(), meant.len(), "no step twice");
                    let got: BTreeSet<StepId> = step.depends_on.iter().copied().collect();
                    prop_assert_eq!(got, meant);
                }
            }
            Err(Refusal::InvalidDependency(BadDependency::Unknown { step, order })) => {
                prop_assert!(!exists(&graph, order), "order {} exists", order);
                prop_assert!(needs(&graph, step).contains(&order), "step {} does not name it", step);
            }
            Err(Refusal::InvalidDependency(BadDependency::Cycle(round))) => {
                prop_assert!(round.len() > 1, "{:?} goes nowhere", round);
                prop_assert_eq!(round.first(), round.last(), "{:?} is open", round);
                for pair in round.windows(2) {
                    prop_assert!(
                        needs(&graph, pair[0]).contains(&pair[1]),
                        "{:?} is no cycle", round
                    );
                }
                let distinct: BTreeSet<&u32> = round.iter().collect();
                prop_assert_eq!(distinct.len() + 1, round.len(), "{:?} goes around twice", round);
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }
}
