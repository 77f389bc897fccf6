//! The plans of a round that have not been checked yet.

use std::collections::{HashSet, VecDeque};

use onward_core::{PlanId, Timestamp};
use onward_store::DuePlan;

/// A commit may be seen this many milliseconds after its time.
const OVERLAP_MS: i64 = 1_000;

/// The plans that are due. Those that become due during the round come in turn with those that were
/// due before, so that neither wait for all of the others.
pub(super) struct Queue {
    backlog: VecDeque<DuePlan>,
    fresh: VecDeque<DuePlan>,
    /// The plans that are queued or being checked.
    open: HashSet<PlanId>,
    /// Plans that are due by this instant are in the queue, or have been.
    until: Timestamp,
    takes_fresh: bool,
}

impl Queue {
    pub(super) fn new(backlog: Vec<DuePlan>, until: Timestamp) -> Self {
        Self {
            open: backlog.iter().map(|due| due.plan).collect(),
            backlog: backlog.into(),
            fresh: VecDeque::new(),
            until,
            takes_fresh: true,
        }
    }

    /// Adds the plans that have become due since, latest first. They come before plans that were added
    /// earlier, so that a stall does not wait for many others that became due together.
    pub(super) fn add(&mut self, fresh: Vec<DuePlan>, until: Timestamp) {
        for due in fresh.into_iter().rev() {
            if self.open.insert(due.plan) {
                self.fresh.push_front(due);
            }
        }
        self.until = until;
    }

    /// A plan was checked, or is not to be checked now.
    pub(super) fn done(&mut self, plan: PlanId) {
        self.open.remove(&plan);
    }

    /// The last instant by which all due plans have been seen: a commit may be seen after its time.
    pub(super) fn seen(&self) -> Timestamp {
        Timestamp::from_millis(self.until.as_millis().saturating_sub(OVERLAP_MS))
    }

    pub(super) fn next(&mut self) -> Option<DuePlan> {
        self.takes_fresh = !self.takes_fresh;
        let (first, second) = if self.takes_fresh {
            (&mut self.fresh, &mut self.backlog)
        } else {
            (&mut self.backlog, &mut self.fresh)
        };
        first.pop_front().or_else(|| second.pop_front())
    }

    /// Number of plans that have not been checked.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use onward_core::PlanId;

    use super::*;

    fn due(plan: u128) -> DuePlan {
        DuePlan {
            tenant: "t".into(),
            plan: PlanId::from_u128(plan),
            at: Timestamp::MIN,
            reachable_since: None,
        }
    }

    #[test]
    fn a_fresh_plan_does_not_wait_for_the_backlog_nor_the_backlog_for_fresh_plans() {
        let mut queue = Queue::new((0..100).map(due).collect(), Timestamp::MIN);
        queue.add((100..200).map(due).collect(), Timestamp::MAX);
        let first: Vec<PlanId> = std::iter::from_fn(|| queue.next())
            .take(4)
            .map(|due| due.plan)
            .collect();
        assert_eq!(first, [0, 100, 1, 101].map(PlanId::from_u128));
        queue.add(vec![due(200)], Timestamp::MAX);
        queue.next();
        let next = queue.next().map(|due| due.plan);
        assert_eq!(next, Some(PlanId::from_u128(200)), "the last one first");
        queue.done(first[1]);
        queue.add([0, 100].map(due).to_vec(), Timestamp::MAX);
        assert_eq!(
            queue.len(),
            201,
            "a plan is queued or checked once at a time"
        );
    }
}
