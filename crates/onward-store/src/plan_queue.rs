//! Queues of the transitions of one plan, in front of its row: first come, first served.
//!
//! Without a queue, concurrent transitions of a plan lose races against each other, or wait for its row
//! lock with a connection each, and how long one waits depends on luck. A transition enters the queue
//! after its first lost race, or before it reads if the plan has a queue already. When its turn comes,
//! no other transition of this process changes the plan, so the cached plan is usually current. After
//! a race was lost to another process, the next transitions in the queue lock the row.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onward_core::PlanId;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use crate::error::Error;

/// Number of transitions of a plan that lock its row after a lost race, because further races are
/// likely.
const CONTENDED: u32 = 32;

/// Maximum wait for a turn.
const LIMIT: Duration = Duration::from_secs(25);

/// The queues of all plans that have one.
#[derive(Default)]
pub(crate) struct PlanQueues(Mutex<HashMap<PlanId, Queue>>);

#[derive(Default)]
struct Queue {
    /// Fair: it is acquired in the order of the requests.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Number of transitions that wait, including the one whose turn it is.
    length: usize,
    /// Number of transitions that lock the row before they read.
    locks: u32,
}

/// The turn of a transition. The next one begins when it is dropped.
pub(crate) struct Turn {
    // Dropped first.
    _guard: OwnedMutexGuard<()>,
    place: Place,
}

/// A place in the queue of a plan.
struct Place {
    queues: Arc<PlanQueues>,
    plan: PlanId,
}

impl PlanQueues {
    /// Whether transitions of a plan wait.
    pub(crate) fn has_queue(&self, plan: PlanId) -> bool {
        self.lock().contains_key(&plan)
    }

    /// Waits for a turn.
    pub(crate) async fn enter(self: &Arc<Self>, plan: PlanId) -> Result<Turn, Error> {
        self.enter_within(plan, LIMIT).await
    }

    async fn enter_within(self: &Arc<Self>, plan: PlanId, limit: Duration) -> Result<Turn, Error> {
        let turn = {
            let mut queues = self.lock();
            let queue = queues.entry(plan).or_default();
            queue.length += 1;
            Arc::clone(&queue.turn)
        };
        let place = Place {
            queues: Arc::clone(self),
            plan,
        };
        match timeout(limit, turn.lock_owned()).await {
            Ok(guard) => Ok(Turn {
                _guard: guard,
                place,
            }),
            Err(_) => Err(Error::Overloaded(format!(
                "too many concurrent changes of plan `{plan}`"
            ))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PlanId, Queue>> {
        // A panic leaves a map of whole entries.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Whether the row is to be locked, because races with other processes are likely.
    pub(crate) fn takes_lock(&self) -> bool {
        let mut queues = self.place.queues.lock();
        let Some(queue) = queues.get_mut(&self.place.plan) else {
            return false;
        };
        let takes_lock = queue.locks > 0;
        queue.locks = queue.locks.saturating_sub(1);
        takes_lock
    }

    /// Records a race that was lost to another process.
    pub(crate) fn record_race(&self) {
        if let Some(queue) = self.place.queues.lock().get_mut(&self.place.plan) {
            queue.locks = CONTENDED;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get_mut(&self.plan) {
            queue.length -= 1;
            if queue.length == 0 {
                queues.remove(&self.plan);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn queues() -> (Arc<PlanQueues>, PlanId) {
        (Arc::default(), PlanId::from_u128(1))
    }

    #[tokio::test]
    async fn transitions_of_a_plan_take_turns_in_the_order_of_their_arrival() {
        let (queues, plan) = queues();
        let mut first = Some(queues.enter(plan).await.unwrap());
        let mut waiting: Vec<_> = (0..5).map(|_| Box::pin(queues.enter(plan))).collect();
        let context = &mut Context::from_waker(Waker::noop());
        for entering in &mut waiting {
            assert!(entering.as_mut().poll(context).is_pending());
        }
        let mut other = Box::pin(queues.enter(PlanId::from_u128(2)));
        assert!(other.as_mut().poll(context).is_ready(), "another plan");
        for next in 0..waiting.len() {
            drop(first.take());
            // The last one asks first.
            for later in (next + 1..waiting.len()).rev() {
                assert!(waiting[later].as_mut().poll(context).is_pending());
            }
            match waiting[next].as_mut().poll(context) {
                Poll::Ready(turn) => first = Some(turn.unwrap()),
                Poll::Pending => panic!("it is the turn of {next}"),
            }
        }
        drop((waiting, other));
        assert!(queues.has_queue(plan));
        drop(first);
        assert!(!queues.has_queue(plan), "an empty queue takes no memory");
    }

    #[tokio::test]
    async fn a_transition_whose_turn_does_not_come_leaves_the_queue() {
        let (queues, plan) = queues();
        let turn = queues.enter(plan).await.unwrap();
        let late = queues.enter_within(plan, Duration::ZERO).await.err();
        assert!(matches!(late, Some(Error::Overloaded(_))), "{late:?}");
        drop(turn);
        assert!(!queues.has_queue(plan));
    }

    #[tokio::test]
    async fn the_transitions_after_a_race_with_another_process_lock_the_row() {
        let (queues, plan) = queues();
        let turn = queues.enter(plan).await.unwrap();
        assert!(!turn.takes_lock());
        turn.record_race();
        assert!((0..CONTENDED).all(|_| turn.takes_lock()));
        assert!(!turn.takes_lock());
    }
}
