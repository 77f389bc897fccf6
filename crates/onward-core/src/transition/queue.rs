//! The effect of a command's events on the queue of the plan's project.
//!
//! The queue of a project contains the ready steps of its plans, except plans that cannot assign
//! steps now (awaiting review, ended, budget exhausted). A program that stores plans copies the
//! project and the priority of a plan to its steps, so that one index provides the queue. It copies
//! them again when either changes, and when steps join the queue. The order of the queue is in
//! [`routing`](crate::routing).

use crate::branch::Effect;
use crate::event::{Change, Event};
use crate::plan::{PlanHead, PlanStatus};

/// A change to the queue of a plan's project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueChange {
    /// No change.
    Unchanged,
    /// Copy the project and the priority of the plan to its open steps. Without a project, the steps
    /// are in no queue.
    Enqueue,
    /// Remove the steps of the plan, because it assigns none.
    Dequeue,
}

impl QueueChange {
    /// The change for a plan that is stored for the first time: a new or an imported plan.
    pub fn for_new_plan(head: &PlanHead) -> Self {
        if head.assigns_steps() && head.routing.project_key.is_some() {
            Self::Enqueue
        } else {
            Self::Unchanged
        }
    }

    /// The change for a stored plan. `head` is the head with the events applied.
    pub fn after_events(head: &PlanHead, events: &[Event]) -> Self {
        let is_rerouted = events.iter().any(changes_routing);
        let has_queue = head.routing.project_key.is_some() || is_rerouted;
        if events.is_empty() || !has_queue {
            return Self::Unchanged;
        }
        if !head.assigns_steps() {
            return Self::Dequeue;
        }
        if is_rerouted || events.iter().any(adds_to_queue) {
            Self::Enqueue
        } else {
            Self::Unchanged
        }
    }
}

fn changes_routing(event: &Event) -> bool {
    matches!(
        event,
        Event::PlanModified {
            change: Change::PlanUpdated { .. },
            ..
        }
    )
}

/// Whether the plan has new steps, or may assign steps again: after a review, or with another
/// budget.
fn adds_to_queue(event: &Event) -> bool {
    matches!(
        event,
        Event::PlanModified {
            change: Change::StepsAdded { .. }
                | Change::StepRedone { .. }
                | Change::BudgetSet { .. },
            ..
        } | Event::BranchTaken {
            effect: Effect::Added { .. },
            ..
        } | Event::PlanStatusChanged {
            from: PlanStatus::AwaitingReview,
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::budget::{Budget, BudgetState, Exhausted, Limit, Used};
    use crate::event::{RequeueReason, ResumedBy};
    use crate::id::{BranchId, ClaimToken, PlanId, ReviewId, StepId};
    use crate::plan::{Origin, PendingReview, PlanFailure, PlanState};
    use crate::policy::OnStall;
    use crate::progress::Counts;
    use crate::routing::Routing;
    use crate::step::Claim;
    use crate::time::Timestamp;

    const STEP: StepId = StepId::from_u128(1);
    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn head(project: Option<&str>, state: PlanState) -> PlanHead {
        PlanHead {
            id: PlanId::from_u128(1),
            origin: Origin::default(),
            state,
            counts: Counts::default(),
            seq: 2,
            stall_threshold: None,
            on_stall: OnStall::default(),
            on_dependency_failure: Default::default(),
            last_session: None,
            routing: Routing {
                project_key: project.map(str::to_owned),
                ..Routing::default()
            },
            budget: None,
        }
    }

    fn executing(project: Option<&str>) -> PlanHead {
        head(project, PlanState::Executing)
    }

    fn awaiting_review(project: Option<&str>) -> PlanHead {
        let review = ReviewId::from_u128(1);
        let reviews = vec![PendingReview { step: STEP, review }];
        head(project, PlanState::AwaitingReview { reviews })
    }

    fn modified(change: Change) -> Event {
        Event::PlanModified {
            change,
            rationale: None,
        }
    }

    fn rerouted() -> Event {
        let routing = Routing::default();
        modified(Change::PlanUpdated { routing })
    }

    fn started() -> Event {
        let claim = Claim {
            attempt: 1,
            token: ClaimToken::new("token"),
            session: None,
        };
        Event::StepStarted { step: STEP, claim }
    }

    fn branch_taken(effect: Effect) -> Event {
        Event::BranchTaken {
            branch: BranchId::from_u128(1),
            step: STEP,
            effect,
        }
    }

    fn status_changed(from: PlanStatus) -> Event {
        let to = PlanStatus::Executing;
        Event::PlanStatusChanged { from, to }
    }

    /// One event of each kind after which steps join the queue.
    fn additions() -> Vec<Event> {
        vec![
            modified(Change::StepsAdded {
                after: 1,
                steps: Arc::default(),
            }),
            modified(Change::StepRedone {
                step: STEP,
                reason: "wrong source".to_owned(),
                successors: Arc::default(),
            }),
            modified(Change::BudgetSet {
                budget: None,
                used: Used::default(),
            }),
            branch_taken(Effect::Added {
                steps: Arc::default(),
            }),
            status_changed(PlanStatus::AwaitingReview),
        ]
    }

    /// Events that neither add steps to the queue nor change the routing.
    fn others() -> Vec<Event> {
        vec![
            started(),
            Event::StepRequeued {
                step: STEP,
                attempt: 2,
                reason: RequeueReason::Manual,
            },
            Event::PlanStalled { stalls: Vec::new() },
            Event::PlanResumed {
                by: ResumedBy::User,
            },
            status_changed(PlanStatus::Planning),
            branch_taken(Effect::Continued),
            modified(Change::StepRemoved { step: STEP }),
            modified(Change::StepRequeued { step: STEP }),
            modified(Change::StepsReordered {
                steps: Arc::default(),
            }),
        ]
    }

    #[test]
    fn enqueues_new_steps_and_plans_that_assign_steps_again() {
        for event in additions() {
            let change =
                |head: PlanHead| QueueChange::after_events(&head, std::slice::from_ref(&event));
            assert_eq!(change(executing(Some("site"))), QueueChange::Enqueue);
            assert_eq!(change(executing(None)), QueueChange::Unchanged, "{event:?}");
            let in_review = awaiting_review(Some("site"));
            assert_eq!(change(in_review), QueueChange::Dequeue, "{event:?}");
            // The position of the event in the commit does not matter.
            let events = [started(), event.clone(), started()];
            let change = QueueChange::after_events(&executing(Some("site")), &events);
            assert_eq!(change, QueueChange::Enqueue, "{event:?}");
        }
    }

    #[test]
    fn copies_the_routing_after_every_update_of_the_plan() {
        let events = [rerouted()];
        // The update may have removed a plan without a project from one.
        for project in [Some("site"), None] {
            let change = |head: PlanHead| QueueChange::after_events(&head, &events);
            assert_eq!(change(executing(project)), QueueChange::Enqueue);
            assert_eq!(change(awaiting_review(project)), QueueChange::Dequeue);
        }
    }

    #[test]
    fn keeps_the_queue_after_other_events() {
        for event in others() {
            let events = [event];
            for head in [
                executing(Some("site")),
                executing(None),
                head(Some("site"), PlanState::Planning),
                head(Some("site"), PlanState::Stalled { marked_at: NOW }),
            ] {
                let change = QueueChange::after_events(&head, &events);
                assert_eq!(change, QueueChange::Unchanged, "{events:?}");
            }
        }
    }

    #[test]
    fn dequeues_a_plan_that_assigns_no_steps_after_every_event() {
        let exhausted = |budget| PlanHead {
            budget: Some(budget),
            ..executing(Some("site"))
        };
        let limits = Budget {
            max_steps: Some(1),
            ..Budget::default()
        };
        let used = Used {
            steps: 1,
            ..Used::default()
        };
        let recorded = Exhausted {
            limit: Limit::Tokens,
            max: 10,
            used: 10,
        };
        let heads = [
            awaiting_review(Some("site")),
            head(Some("site"), PlanState::Completed { ended_at: NOW }),
            head(
                Some("site"),
                PlanState::Failed {
                    reason: PlanFailure::Abandoned(None),
                    ended_at: NOW,
                },
            ),
            exhausted(BudgetState {
                used,
                ..BudgetState::new(limits)
            }),
            exhausted(BudgetState {
                exhausted: Some(recorded),
                ..BudgetState::new(Budget::default())
            }),
        ];
        for head in heads {
            for event in additions().into_iter().chain(others()) {
                let change = QueueChange::after_events(&head, &[event]);
                assert_eq!(change, QueueChange::Dequeue, "{head:?}");
            }
            // A plan without events is not written.
            let change = QueueChange::after_events(&head, &[]);
            assert_eq!(change, QueueChange::Unchanged);
        }
    }

    #[test]
    fn enqueues_a_new_plan_of_a_project_that_assigns_steps() {
        for (head, expected) in [
            (
                head(Some("site"), PlanState::Planning),
                QueueChange::Enqueue,
            ),
            (executing(Some("site")), QueueChange::Enqueue),
            (executing(None), QueueChange::Unchanged),
            (awaiting_review(Some("site")), QueueChange::Unchanged),
        ] {
            assert_eq!(QueueChange::for_new_plan(&head), expected, "{head:?}");
        }
    }
}
