//! The due plans of the nodes of a distributed database.

use onward_core::Timestamp;
use onward_store::{DuePlan, NodeRead};

use crate::engine::Engine;

impl Engine {
    /// The due plans of all nodes, one of each node in turn.
    pub(super) fn in_turn(&self, nodes: Vec<NodeRead<Vec<DuePlan>>>) -> Vec<DuePlan> {
        in_turn(nodes, self.now())
    }
}

fn in_turn(nodes: Vec<NodeRead<Vec<DuePlan>>>, now: Timestamp) -> Vec<DuePlan> {
    let mut nodes: Vec<_> = nodes
        .into_iter()
        .map(|node| {
            let reachable_since = node.reachable_since(now);
            node.read.into_iter().map(move |due| DuePlan {
                reachable_since,
                ..due
            })
        })
        .collect();
    let mut all = Vec::with_capacity(nodes.iter().map(ExactSizeIterator::len).sum());
    loop {
        let before = all.len();
        all.extend(nodes.iter_mut().filter_map(Iterator::next));
        if all.len() == before {
            return all;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onward_core::PlanId;

    use super::*;

    #[test]
    fn nodes_take_turns_and_only_plans_of_a_recovered_node_were_unreachable() {
        let node = |plans: &[u128], back_for| NodeRead {
            read: plans
                .iter()
                .map(|plan| DuePlan {
                    tenant: "t".into(),
                    plan: PlanId::from_u128(*plan),
                    at: Timestamp::MIN,
                    reachable_since: None,
                })
                .collect(),
            back_for,
        };
        let now = Timestamp::from_millis(5_000);
        let nodes = vec![
            node(&[1, 2, 3], None),
            node(&[4], Some(Duration::from_secs(2))),
        ];
        let found: Vec<_> = in_turn(nodes, now)
            .into_iter()
            .map(|due| (due.plan, due.reachable_since.map(Timestamp::as_millis)))
            .collect();
        let expected = [(1, None), (4, Some(3_000)), (2, None), (3, None)];
        assert_eq!(
            found,
            expected.map(|(plan, at)| (PlanId::from_u128(plan), at))
        );
    }
}
