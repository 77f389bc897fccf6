//! Batcher of one tenant: decides when a transition is sent, and with which others.
//!
//! Two messages are usually in flight: the server executes one while the other waits for the disk.
//! Without a message in flight, queued transitions are sent immediately. With one in flight, they
//! are sent once `ceil(recent_callers / 2)` are queued. With two or more, they are sent only if
//! eight are queued and the messages in flight use less than half of the connections. A message in
//! flight for longer than `company` (20 ms) no longer counts. A single caller is never queued.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use uuid::Uuid;

use super::Answer;
use crate::statement::Statement;

/// Messages in flight, unless a full batch is queued.
const MESSAGES: usize = 2;

/// Maximum number of members of a batch. Each size is a separate statement text, which every
/// connection has to prepare.
pub(super) const MEMBERS: usize = 8;

/// Last number assigned to a queued transition or a message. Numbers are unique in the process,
/// because an idle batcher is removed and later created again.
static LAST: AtomicU64 = AtomicU64::new(0);

fn number() -> u64 {
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// A transition that is queued, or in flight in a batch.
pub(super) struct Member {
    pub(super) plan: Uuid,
    pub(super) statements: Vec<Statement>,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// Batcher for the transitions of one tenant: those queued, and those in flight.
pub(super) struct Meeting {
    /// Maximum number of messages in flight, and how long a message counts as in flight.
    most: usize,
    company: Duration,
    under_way: Vec<Message>,
    /// Queued transitions with their numbers.
    waiting: VecDeque<(u64, Member)>,
    /// Estimated number of concurrent callers: a caller that gets its result usually returns with
    /// another transition.
    callers: usize,
}

/// A message in flight, and the plans that it changes.
struct Message {
    number: u64,
    /// When it was sent; `None` if it does not count as in flight.
    left: Option<Instant>,
    plans: Vec<Uuid>,
}

impl Meeting {
    /// `connections` is the size of the pool, `company` the maximum time in the queue.
    pub(super) fn new(connections: usize, company: Duration) -> Self {
        Self {
            // The other half is for reads.
            most: connections / 2,
            company,
            under_way: Vec::new(),
            waiting: VecDeque::new(),
            callers: 0,
        }
    }

    /// Whether nothing is queued or in flight.
    pub(super) fn is_over(&self) -> bool {
        self.under_way.is_empty() && self.waiting.is_empty()
    }

    /// Whether a message that changes this plan is in flight.
    pub(super) fn is_changing(&self, plan: Uuid) -> bool {
        let mut plans = self.under_way.iter().flat_map(|message| &message.plans);
        plans.any(|changing| *changing == plan)
    }

    /// Removes the queued transition of this plan.
    pub(super) fn take(&mut self, plan: Uuid) -> Option<Member> {
        let mut plans = self.waiting.iter().map(|(_, member)| member.plan);
        let place = plans.position(|waiting| waiting == plan)?;
        self.waiting.remove(place).map(|(_, member)| member)
    }

    /// Sends a new transition alone, if the queue is empty and a batch of one is ready to be sent.
    /// Returns the number of its message.
    pub(super) fn send_one(&mut self, plan: Uuid, now: Instant) -> Option<u64> {
        let leaves = self.waiting.is_empty() && self.is_time_for(1, now);
        leaves.then(|| self.leave(vec![plan], now))
    }

    /// Sends a transition alone, without counting it as in flight. Returns the number of its
    /// message.
    pub(super) fn send_apart(&mut self, plan: Uuid) -> u64 {
        self.put(None, vec![plan])
    }

    /// Queues a transition; returns its number.
    pub(super) fn add(&mut self, member: Member, now: Instant) -> u64 {
        let number = number();
        self.waiting.push_back((number, member));
        self.callers = self.callers.max(self.present(now));
        number
    }

    /// Removes a transition that is still queued.
    pub(super) fn give_up(&mut self, number: u64) -> Option<Member> {
        let mut numbers = self.waiting.iter().map(|(number, _)| *number);
        let place = numbers.position(|waiting| waiting == number)?;
        self.waiting.remove(place).map(|(_, member)| member)
    }

    /// Takes the next batch out of the queue, if it is ready to be sent: the oldest transitions,
    /// sorted by plan so that two batches cannot deadlock. Returns it with the number of its
    /// message.
    pub(super) fn next(&mut self, now: Instant) -> Option<(u64, Vec<Member>)> {
        // The result of a dropped caller is not needed.
        self.waiting
            .retain(|(_, member)| !member.answer.is_closed());
        if !self.is_time_for(self.waiting.len(), now) {
            return None;
        }
        let length = self.share().min(self.waiting.len());
        let group = self.waiting.drain(..length).map(|(_, member)| member);
        let mut group: Vec<Member> = group.collect();
        group.sort_by_key(|member| member.plan);
        let plans = group.iter().map(|member| member.plan).collect();
        Some((self.leave(plans, now), group))
    }

    /// Marks a message as completed.
    pub(super) fn is_back(&mut self, number: u64) {
        self.under_way.retain(|message| message.number != number);
    }

    /// Records a message in flight that changes these plans; returns its number.
    pub(super) fn leave(&mut self, plans: Vec<Uuid>, now: Instant) -> u64 {
        let number = self.put(Some(now), plans);
        self.callers = self.present(now).max(self.callers.saturating_sub(1));
        number
    }

    /// Adds a message in flight.
    fn put(&mut self, left: Option<Instant>, plans: Vec<Uuid>) -> u64 {
        let number = number();
        self.under_way.push(Message {
            number,
            left,
            plans,
        });
        number
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The messages that count as in flight.
    fn awaited(&self, now: Instant) -> impl Iterator<Item = &Message> {
        let still = move |left: Instant| now.saturating_duration_since(left) < self.company;
        let messages = self.under_way.iter();
        messages.filter(move |message| message.left.is_some_and(still))
    }

    /// Number of callers in the queue and in messages that count as in flight.
    fn present(&self, now: Instant) -> usize {
        let travelling: usize = self.awaited(now).map(|message| message.plans.len()).sum();
        travelling + self.waiting.len()
    }

    /// Whether a batch of this many queued transitions is ready to be sent.
    fn is_time_for(&self, waiting: usize, now: Instant) -> bool {
        match self.awaited(now).count() {
            0 => waiting > 0,
            awaited if awaited < MESSAGES => waiting >= self.share(),
            _ => waiting >= MEMBERS && self.under_way.len() < self.most,
        }
    }

    /// Batch size with which `MESSAGES` messages carry all callers.
    fn share(&self) -> usize {
        self.callers.div_ceil(MESSAGES).clamp(1, MEMBERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPANY: Duration = Duration::from_millis(20);

    /// A batcher, its messages in flight, and the time.
    struct Scenario {
        meeting: Meeting,
        under_way: VecDeque<(u64, usize)>,
        now: Instant,
        plans: u128,
    }

    struct Caller {
        number: u64,
        /// Dropping it cancels the caller.
        answer: oneshot::Receiver<Answer>,
    }

    impl Scenario {
        fn new() -> Self {
            Self {
                meeting: Meeting::new(16, COMPANY),
                under_way: VecDeque::new(),
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
            let left = self.meeting.send_one(plan, self.now);
            self.under_way.extend(left.map(|number| (number, 1)));
            left.is_some()
        }

        fn queue(&mut self, plan: u128) -> Caller {
            let (sender, answer) = oneshot::channel();
            let member = Member {
                plan: Uuid::from_u128(plan),
                statements: Vec::new(),
                answer: sender,
            };
            let number = self.meeting.add(member, self.now);
            Caller { number, answer }
        }

        /// The plans of the next batch.
        fn next(&mut self) -> Vec<u128> {
            let Some((number, group)) = self.meeting.next(self.now) else {
                return Vec::new();
            };
            self.under_way.push_back((number, group.len()));
            group.iter().map(|member| member.plan.as_u128()).collect()
        }

        /// Completes the oldest message; returns its number of members.
        fn is_back(&mut self) -> usize {
            let (number, members) = self.under_way.pop_front().unwrap();
            self.meeting.is_back(number);
            members
        }
    }

    #[test]
    fn never_queues_a_single_caller() {
        let mut scenario = Scenario::new();
        for _ in 0..100 {
            assert!(scenario.sends_one());
            scenario.is_back();
        }
        assert!(scenario.meeting.is_over());
    }

    #[test]
    fn sends_queued_transitions_as_a_batch_once_there_are_enough() {
        let mut scenario = Scenario::busy();
        let _three = [3, 1, 2].map(|plan| scenario.queue(plan));
        assert_eq!(scenario.next(), [0; 0], "two messages are in flight");
        scenario.is_back();
        assert_eq!(scenario.next(), [1, 2, 3], "sorted by plan");
        scenario.is_back();
        let _one = scenario.queue(4);
        assert_eq!(scenario.next(), [0; 0], "there were more callers recently");
        scenario.is_back();
        assert_eq!(scenario.next(), [4], "nothing is in flight");
    }

    #[test]
    fn eight_callers_form_two_batches_of_four() {
        let mut scenario = Scenario::busy();
        let mut callers: Vec<Caller> = (1..=6).map(|plan| scenario.queue(plan)).collect();
        let mut sizes = Vec::new();
        for round in 1..=40 {
            for plan in 0..scenario.is_back() as u128 {
                callers.push(scenario.queue(round * 10 + plan));
            }
            let groups = std::iter::repeat_with(|| scenario.next().len());
            sizes.extend(groups.take_while(|size| *size > 0));
        }
        assert!(sizes[10..].iter().all(|size| *size == 4), "{sizes:?}");
    }

    #[test]
    fn reports_which_plans_are_being_changed() {
        let mut scenario = Scenario::busy();
        let plan = Uuid::from_u128(1);
        let _two = [1, 2].map(|plan| scenario.queue(plan));
        assert!(!scenario.meeting.is_changing(plan), "still queued");
        assert!(
            scenario
                .meeting
                .take(plan)
                .is_some_and(|member| member.plan == plan)
        );
        assert!(scenario.meeting.take(plan).is_none(), "already removed");
        let _again = scenario.queue(1);
        scenario.is_back();
        assert_eq!(scenario.next(), [1, 2]);
        assert!(scenario.meeting.is_changing(plan));
        scenario.is_back();
        scenario.is_back();
        assert!(!scenario.meeting.is_changing(plan));
    }

    #[test]
    fn does_not_count_a_message_that_was_sent_alone_as_in_flight() {
        let mut scenario = Scenario::new();
        let plan = Uuid::from_u128(1);
        let apart = scenario.meeting.send_apart(plan);
        assert!(scenario.meeting.is_changing(plan) && !scenario.meeting.is_over());
        assert!(scenario.sends_one() && scenario.sends_one() && !scenario.sends_one());
        scenario.meeting.is_back(apart);
        assert!(!scenario.meeting.is_changing(plan));
    }

    #[test]
    fn ignores_slow_messages_after_the_maximum_wait() {
        let mut scenario = Scenario::busy();
        let _six = [1, 2, 3, 4, 5, 6].map(|plan| scenario.queue(plan));
        assert_eq!(scenario.next(), [0; 0]);
        scenario.now += COMPANY;
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
            assert_eq!(scenario.next().len(), MEMBERS);
        }
        assert_eq!(
            scenario.next(),
            [0; 0],
            "half of the connections are in use"
        );
        scenario.is_back();
        assert_eq!(scenario.next().len(), MEMBERS);
    }

    #[test]
    fn leaves_out_callers_that_timed_out_or_were_dropped() {
        let mut scenario = Scenario::busy();
        let [dropped, timed_out, sent] = [1, 2, 3].map(|plan| scenario.queue(plan));
        drop(dropped.answer);
        let removed = scenario.meeting.give_up(timed_out.number).unwrap();
        assert_eq!(removed.plan.as_u128(), 2);
        assert!(
            scenario.meeting.give_up(timed_out.number).is_none(),
            "already removed"
        );
        scenario.is_back();
        scenario.is_back();
        assert_eq!(scenario.next(), [3]);
        let removed = scenario.meeting.give_up(sent.number);
        assert!(removed.is_none(), "already in flight");
    }
}
