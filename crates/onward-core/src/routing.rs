//! Routing: project, labels and priority. They decide which agents claim a step, and in which order.
//!
//! Order of the steps of a plan: priority, then position. Order of the steps of a project: priority
//! of the plan, priority of the step, age of the plan, position. The labels of a plan are for lists
//! only; the labels of a step must all be offered by the agent that claims it.

use std::cmp::Reverse;

use crate::id::PlanId;
use crate::time::Timestamp;

/// The priority of plans and steps without one.
pub const DEFAULT_PRIORITY: u8 = 5;
/// The highest priority.
pub const MAX_PRIORITY: u8 = 9;
/// Maximum labels of a plan or a step.
pub const MAX_LABELS: usize = 20;
/// Maximum characters in a label.
pub const MAX_LABEL: usize = 50;
/// Maximum characters in a project key.
pub const MAX_PROJECT_KEY: usize = 100;

/// The project of a plan, its labels and its priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routing {
    /// The project.
    pub project_key: Option<String>,
    /// The labels, sorted, without duplicates.
    pub labels: Vec<String>,
    /// The priority, 0 to 9.
    pub priority: u8,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            project_key: None,
            labels: Vec::new(),
            priority: DEFAULT_PRIORITY,
        }
    }
}

/// A step in the queue of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedStep {
    /// Its plan.
    pub plan: PlanId,
    /// The priority of the plan.
    pub plan_priority: u32,
    /// The priority of the step.
    pub priority: u32,
    /// When the plan was created.
    pub plan_created_at: Timestamp,
    /// The order of the step in its plan.
    pub order: u32,
}

impl QueuedStep {
    /// The key by which the steps of a project are assigned. The id of the plan distinguishes plans
    /// of the same age.
    pub fn claim_order(&self) -> (Reverse<u32>, Reverse<u32>, Timestamp, PlanId, u32) {
        (
            Reverse(self.plan_priority),
            Reverse(self.priority),
            self.plan_created_at,
            self.plan,
            self.order,
        )
    }
}

/// The labels as they are stored: trimmed, sorted, without duplicates. Equal sets of labels are then
/// equal lists.
pub fn sorted_labels(labels: &[String]) -> Vec<String> {
    let mut sorted: Vec<String> = labels.iter().map(|label| label.trim().to_owned()).collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

/// Whether an agent that offers these labels may claim a step with `labels`. `None` offers all.
pub fn covers(offered: Option<&[String]>, labels: &[String]) -> bool {
    let is_offered = |label: &String| {
        offered.is_none_or(|offered| offered.iter().any(|offer| offer.trim() == label))
    };
    labels.iter().all(is_offered)
}

/// The position of a priority in an ascending order: the highest priority is 0.
pub(crate) const fn rank(priority: u8) -> u8 {
    MAX_PRIORITY.saturating_sub(priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_queue_is_ordered_by_priorities_then_age_then_position() {
        let step = |plan_priority, priority, created_at, plan, order| QueuedStep {
            plan: PlanId::from_u128(plan),
            plan_priority,
            priority,
            plan_created_at: Timestamp::from_millis(created_at),
            order,
        };
        let steps = [
            step(6, 1, 9, 2, 2),
            step(5, 6, 9, 2, 2),
            step(5, 5, 8, 2, 2),
            step(5, 5, 9, 1, 2),
            step(5, 5, 9, 2, 1),
            step(5, 5, 9, 2, 2),
        ];
        assert!(steps.is_sorted_by(|a, b| a.claim_order() < b.claim_order()));
    }

    #[test]
    fn equal_sets_are_equal_lists() {
        let sorted = sorted_labels(&labels(&["linux", " gpu", "linux "]));
        assert_eq!(sorted, labels(&["gpu", "linux"]));
    }

    #[test]
    fn a_step_needs_all_its_labels() {
        let offered = labels(&["gpu", "linux"]);
        for (step, expected) in [
            (&[][..], true),
            (&["gpu"], true),
            (&["gpu", "linux"], true),
            (&["gpu", "arm"], false),
        ] {
            assert_eq!(covers(Some(&offered), &labels(step)), expected, "{step:?}");
            assert!(covers(None, &labels(step)));
        }
        assert!(covers(Some(&[]), &[]) && !covers(Some(&[]), &offered));
    }
}
