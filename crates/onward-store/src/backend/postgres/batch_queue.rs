//! Batcher of one tenant: decides when a transition is sent, and with which others.
//!
//! Two messages are usually in flight: the server executes one while the other waits for the disk.
//! Without a message in flight, queued transitions are sent immediately. With one in flight, they
//! are sent once `ceil(recent_callers / 2)` are queued. With two or more, they are sent only if
//! eight are queued and the messages in flight use less than half of the connections. A message in
//! flight for longer than `max_wait` (20 ms) no longer counts. A single caller is never queued.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use uuid::Uuid;

use crate::error::Error;
use crate::statement::Statement;

/// Messages in flight, unless a full batch is queued.
const TARGET_IN_FLIGHT: usize = 2;

/// Maximum number of members of a batch. Each size needs a separate statement text, which every
/// connection has to prepare.
pub(super) const MAX_BATCH: usize = 8;

/// Last number assigned to a queued transition or a message. Numbers are unique in the process,
/// because an idle batcher is removed and later created again.
static LAST: AtomicU64 = AtomicU64::new(0);

fn number() -> u64 {
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// Number of batchers above which idle ones are removed.
const MAX_BATCHERS: usize = 256;

/// The batchers of this process, one per tenant. `batcher` explains why a batch is correct.
pub(super) struct Batchers {
    connections: usize,
    max_wait: Duration,
    of_tenants: Mutex<HashMap<Arc<str>, Batcher>>,
}

/// Result of a batched transition.
pub(super) enum Outcome {
    Committed,
    /// This transition was not written: send it alone.
    SendAlone(Vec<Statement>),
    Failed(Error),
}

impl Batchers {
    /// `connections` is the size of the pool, `max_wait` the maximum time in the queue.
    pub(super) fn new(connections: usize, max_wait: Duration) -> Self {
        Self {
            connections,
            max_wait,
            of_tenants: Mutex::default(),
        }
    }

    /// Runs `act` on the batcher of a tenant.
    pub(super) fn with<A>(&self, tenant: &Arc<str>, act: impl FnOnce(&mut Batcher) -> A) -> A {
        // A panic while adding or removing a member leaves the map valid.
        let batchers = self.of_tenants.lock();
        let mut batchers = batchers.unwrap_or_else(PoisonError::into_inner);
        if let Some(batcher) = batchers.get_mut(tenant) {
            return act(batcher);
        }
        if batchers.len() >= MAX_BATCHERS {
            batchers.retain(|_, batcher| !batcher.is_idle());
        }
        let batcher = batchers.entry(Arc::clone(tenant));
        act(batcher.or_insert_with(|| Batcher::new(self.connections, self.max_wait)))
    }

    #[cfg(test)]
    pub(super) fn queued(&self, tenant: &Arc<str>) -> usize {
        self.with(tenant, |batcher| batcher.queued())
    }
}

/// A transition that is queued, or in flight in a batch.
pub(super) struct Member {
    pub(super) key: Uuid,
    pub(super) statements: Vec<Statement>,
    pub(super) outcome: oneshot::Sender<Outcome>,
}

/// Batcher for the transitions of one tenant: those queued, and those in flight.
pub(super) struct Batcher {
    /// Maximum number of messages in flight, and how long a message counts as in flight.
    max_in_flight: usize,
    max_wait: Duration,
    in_flight: Vec<Message>,
    /// Queued transitions with their numbers.
    queued: VecDeque<(u64, Member)>,
    /// Estimated number of concurrent callers: a caller that gets its result usually returns with
    /// another transition.
    callers: usize,
}

/// A message in flight, and the keys of the rows that it changes.
struct Message {
    number: u64,
    /// When it was sent; `None` if it does not count as in flight.
    sent_at: Option<Instant>,
    keys: Vec<Uuid>,
}

impl Batcher {
    /// `connections` is the size of the pool, `max_wait` the maximum time in the queue.
    pub(super) fn new(connections: usize, max_wait: Duration) -> Self {
        Self {
            // The other half is for reads.
            max_in_flight: connections / 2,
            max_wait,
            in_flight: Vec::new(),
            queued: VecDeque::new(),
            callers: 0,
        }
    }

    /// Whether nothing is queued or in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.queued.is_empty()
    }

    /// Whether a message that changes this row is in flight.
    pub(super) fn is_changing(&self, key: Uuid) -> bool {
        let mut keys = self.in_flight.iter().flat_map(|message| &message.keys);
        keys.any(|changing| *changing == key)
    }

    /// Removes the queued transition of this row.
    pub(super) fn remove_key(&mut self, key: Uuid) -> Option<Member> {
        let mut keys = self.queued.iter().map(|(_, member)| member.key);
        let place = keys.position(|queued| queued == key)?;
        self.queued.remove(place).map(|(_, member)| member)
    }

    /// Sends a new transition alone, if the queue is empty and a batch of one is ready to be sent.
    /// Returns the number of its message.
    pub(super) fn try_send_alone(&mut self, key: Uuid, now: Instant) -> Option<u64> {
        let sends = self.queued.is_empty() && self.is_ready(1, now);
        sends.then(|| self.dispatch(vec![key], now))
    }

    /// Sends a transition alone, without counting it as in flight. Returns the number of its
    /// message.
    pub(super) fn send_uncounted(&mut self, key: Uuid) -> u64 {
        self.add_message(None, vec![key])
    }

    /// Queues a transition; returns its number.
    pub(super) fn push(&mut self, member: Member, now: Instant) -> u64 {
        let number = number();
        self.queued.push_back((number, member));
        self.callers = self.callers.max(self.callers_now(now));
        number
    }

    /// Removes a transition that is still queued.
    pub(super) fn remove(&mut self, number: u64) -> Option<Member> {
        let mut numbers = self.queued.iter().map(|(number, _)| *number);
        let place = numbers.position(|queued| queued == number)?;
        self.queued.remove(place).map(|(_, member)| member)
    }

    /// Takes the next batch out of the queue, if it is ready to be sent: the oldest transitions,
    /// sorted by key so that two batches cannot deadlock. Returns it with the number of its
    /// message.
    pub(super) fn next_batch(&mut self, now: Instant) -> Option<(u64, Vec<Member>)> {
        // The result of a dropped caller is not needed.
        self.queued
            .retain(|(_, member)| !member.outcome.is_closed());
        if !self.is_ready(self.queued.len(), now) {
            return None;
        }
        let length = self.batch_size().min(self.queued.len());
        let batch = self.queued.drain(..length).map(|(_, member)| member);
        let mut batch: Vec<Member> = batch.collect();
        batch.sort_by_key(|member| member.key);
        let keys = batch.iter().map(|member| member.key).collect();
        Some((self.dispatch(keys, now), batch))
    }

    /// Marks a message as completed.
    pub(super) fn complete(&mut self, number: u64) {
        self.in_flight.retain(|message| message.number != number);
    }

    /// Records a message in flight that changes these rows; returns its number.
    pub(super) fn dispatch(&mut self, keys: Vec<Uuid>, now: Instant) -> u64 {
        let number = self.add_message(Some(now), keys);
        self.callers = self.callers_now(now).max(self.callers.saturating_sub(1));
        number
    }

    /// Adds a message in flight.
    fn add_message(&mut self, sent_at: Option<Instant>, keys: Vec<Uuid>) -> u64 {
        let number = number();
        self.in_flight.push(Message {
            number,
            sent_at,
            keys,
        });
        number
    }

    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.queued.len()
    }

    /// The messages that count as in flight.
    fn counted(&self, now: Instant) -> impl Iterator<Item = &Message> {
        let still = move |sent_at: Instant| now.saturating_duration_since(sent_at) < self.max_wait;
        let messages = self.in_flight.iter();
        messages.filter(move |message| message.sent_at.is_some_and(still))
    }

    /// Number of callers in the queue and in messages that count as in flight.
    fn callers_now(&self, now: Instant) -> usize {
        let in_flight: usize = self.counted(now).map(|message| message.keys.len()).sum();
        in_flight + self.queued.len()
    }

    /// Whether a batch of this many queued transitions is ready to be sent.
    fn is_ready(&self, queued: usize, now: Instant) -> bool {
        match self.counted(now).count() {
            0 => queued > 0,
            counted if counted < TARGET_IN_FLIGHT => queued >= self.batch_size(),
            _ => queued >= MAX_BATCH && self.in_flight.len() < self.max_in_flight,
        }
    }

    /// Batch size with which `TARGET_IN_FLIGHT` messages carry all callers.
    fn batch_size(&self) -> usize {
        self.callers.div_ceil(TARGET_IN_FLIGHT).clamp(1, MAX_BATCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_WAIT: Duration = Duration::from_millis(20);

    /// A batcher, its messages in flight, and the time.
    struct Scenario {
        batcher: Batcher,
        in_flight: VecDeque<(u64, usize)>,
        now: Instant,
        plans: u128,
    }

    struct Caller {
        number: u64,
        /// Dropping it cancels the caller.
        outcome: oneshot::Receiver<Outcome>,
    }

    impl Scenario {
        fn new() -> Self {
            Self {
                batcher: Batcher::new(16, MAX_WAIT),
                in_flight: VecDeque::new(),
                now: Instant::now(),
                plans: 1000,
            }
        }

        /// Two messages with one transition each are in flight, so new transitions are queued.
        fn busy() -> Self {
            let mut scenario = Self::new();
            assert!(scenario.sends_one() && scenario.sends_one() && !scenario.sends_one());
            scenario
        }

        fn sends_one(&mut self) -> bool {
            self.plans += 1;
            let plan = Uuid::from_u128(self.plans);
            let sent_at = self.batcher.try_send_alone(plan, self.now);
            self.in_flight.extend(sent_at.map(|number| (number, 1)));
            sent_at.is_some()
        }

        fn queue(&mut self, plan: u128) -> Caller {
            let (sender, outcome) = oneshot::channel();
            let member = Member {
                key: Uuid::from_u128(plan),
                statements: Vec::new(),
                outcome: sender,
            };
            let number = self.batcher.push(member, self.now);
            Caller { number, outcome }
        }

        /// The plans of the next batch.
        fn next(&mut self) -> Vec<u128> {
            let Some((number, batch)) = self.batcher.next_batch(self.now) else {
                return Vec::new();
            };
            self.in_flight.push_back((number, batch.len()));
            batch.iter().map(|member| member.key.as_u128()).collect()
        }

        /// Completes the oldest message; returns its number of members.
        fn complete(&mut self) -> usize {
            let (number, members) = self.in_flight.pop_front().unwrap();
            self.batcher.complete(number);
            members
        }
    }

    #[test]
    fn never_queues_a_single_caller() {
        let mut scenario = Scenario::new();
        for _ in 0..100 {
            assert!(scenario.sends_one());
            scenario.complete();
        }
        assert!(scenario.batcher.is_idle());
    }

    #[test]
    fn sends_queued_transitions_as_a_batch_once_there_are_enough() {
        let mut scenario = Scenario::busy();
        let _three = [3, 1, 2].map(|plan| scenario.queue(plan));
        assert_eq!(scenario.next(), [0; 0], "two messages are in flight");
        scenario.complete();
        assert_eq!(scenario.next(), [1, 2, 3], "sorted by plan");
        scenario.complete();
        let _one = scenario.queue(4);
        assert_eq!(scenario.next(), [0; 0], "there were more callers recently");
        scenario.complete();
        assert_eq!(scenario.next(), [4], "nothing is in flight");
    }

    #[test]
    fn eight_callers_form_two_batches_of_four() {
        let mut scenario = Scenario::busy();
        let mut callers: Vec<Caller> = (1..=6).map(|plan| scenario.queue(plan)).collect();
        let mut sizes = Vec::new();
        for round in 1..=40 {
            for plan in 0..scenario.complete() as u128 {
                callers.push(scenario.queue(round * 10 + plan));
            }
            let batchs = std::iter::repeat_with(|| scenario.next().len());
            sizes.extend(batchs.take_while(|size| *size > 0));
        }
        assert!(sizes[10..].iter().all(|size| *size == 4), "{sizes:?}");
    }

    #[test]
    fn reports_which_plans_are_being_changed() {
        let mut scenario = Scenario::busy();
        let plan = Uuid::from_u128(1);
        let _two = [1, 2].map(|plan| scenario.queue(plan));
        assert!(!scenario.batcher.is_changing(plan), "still queued");
        assert!(
            scenario
                .batcher
                .remove_key(plan)
                .is_some_and(|member| member.key == plan)
        );
        assert!(
            scenario.batcher.remove_key(plan).is_none(),
            "already removed"
        );
        let _again = scenario.queue(1);
        scenario.complete();
        assert_eq!(scenario.next(), [1, 2]);
        assert!(scenario.batcher.is_changing(plan));
        scenario.complete();
        scenario.complete();
        assert!(!scenario.batcher.is_changing(plan));
    }

    #[test]
    fn does_not_count_a_message_that_was_sent_alone_as_in_flight() {
        let mut scenario = Scenario::new();
        let plan = Uuid::from_u128(1);
        let apart = scenario.batcher.send_uncounted(plan);
        assert!(scenario.batcher.is_changing(plan) && !scenario.batcher.is_idle());
        assert!(scenario.sends_one() && scenario.sends_one() && !scenario.sends_one());
        scenario.batcher.complete(apart);
        assert!(!scenario.batcher.is_changing(plan));
    }

    #[test]
    fn ignores_slow_messages_after_the_maximum_wait() {
        let mut scenario = Scenario::busy();
        let _six = [1, 2, 3, 4, 5, 6].map(|plan| scenario.queue(plan));
        assert_eq!(scenario.next(), [0; 0]);
        scenario.now += MAX_WAIT;
        assert_eq!(scenario.next(), [1, 2, 3, 4], "slow messages do not count");
        assert_eq!(
            scenario.next(),
            [0; 0],
            "with one message in flight, two are too few"
        );
        let _two = [7, 8].map(|plan| scenario.queue(plan));
        assert_eq!(scenario.next(), [5, 6, 7, 8]);
    }

    #[test]
    fn sends_full_batches_while_connections_are_available() {
        let mut scenario = Scenario::busy();
        let _callers: Vec<Caller> = (0..60).map(|plan| scenario.queue(plan)).collect();
        for _ in 2..8 {
            assert_eq!(scenario.next().len(), MAX_BATCH);
        }
        assert_eq!(
            scenario.next(),
            [0; 0],
            "half of the connections are in use"
        );
        scenario.complete();
        assert_eq!(scenario.next().len(), MAX_BATCH);
    }

    #[test]
    fn leaves_out_callers_that_timed_out_or_were_dropped() {
        let mut scenario = Scenario::busy();
        let [dropped, timed_out, sent] = [1, 2, 3].map(|plan| scenario.queue(plan));
        drop(dropped.outcome);
        let removed = scenario.batcher.remove(timed_out.number).unwrap();
        assert_eq!(removed.key.as_u128(), 2);
        assert!(
            scenario.batcher.remove(timed_out.number).is_none(),
            "already removed"
        );
        scenario.complete();
        scenario.complete();
        assert_eq!(scenario.next(), [3]);
        let removed = scenario.batcher.remove(sent.number);
        assert!(removed.is_none(), "already in flight");
    }
}
