//! Who goes when, and with whom, of one tenant: row security lets a statement see no other.
//!
//! Few messages are on their way at once: with two, the server works on one while the other is being written
//! to its disk, and every further one makes the groups smaller. So that they are of equal size, nobody leaves
//! before there are enough, but for those that would wait for nobody.
//!
//! A message that takes long (somebody holds its plan, its connection went silent) is waited for as long as a
//! caller waits at most; from then on it is as if there were none.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use uuid::Uuid;

use super::Answer;
use crate::tx::Statement;

/// So many messages are on their way at once, unless so many wait that they are a group by themselves.
const MESSAGES: usize = 2;

/// So many transitions go together at most: each number is a text of its own, which every connection learns.
pub(super) const MEMBERS: usize = 8;

/// The last number that was given to somebody who waits, or to a message: each is given once, since a meeting
/// that is over is forgotten, and another one begins.
static LAST: AtomicU64 = AtomicU64::new(0);

fn number() -> u64 {
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// A transition that waits, or is on its way with others.
pub(super) struct Member {
    pub(super) plan: Uuid,
    pub(super) statements: Vec<Statement>,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// The transitions of a tenant that this process is writing.
pub(super) struct Meeting {
    /// The messages that may be on their way at most, and for how long one counts.
    most: usize,
    company: Duration,
    under_way: Vec<Message>,
    /// Each with its number.
    waiting: VecDeque<(u64, Member)>,
    /// How many callers there were of late: whoever is answered soon comes back for more.
    callers: usize,
}

/// A message that is on its way, and the plans that it changes.
struct Message {
    number: u64,
    /// Since when others wait for it; some are not waited for.
    left: Option<Instant>,
    plans: Vec<Uuid>,
}

impl Meeting {
    /// For a process that keeps so many connections, and where nobody waits longer than this for others.
    pub(super) fn new(connections: usize, company: Duration) -> Self {
        Self {
            // The rest is for those that read.
            most: connections / 2,
            company,
            under_way: Vec::new(),
            waiting: VecDeque::new(),
            callers: 0,
        }
    }

    /// Whether nobody is here.
    pub(super) fn is_over(&self) -> bool {
        self.under_way.is_empty() && self.waiting.is_empty()
    }

    /// Whether a message that changes this plan is on its way.
    pub(super) fn is_changing(&self, plan: Uuid) -> bool {
        let mut plans = self.under_way.iter().flat_map(|message| &message.plans);
        plans.any(|changing| *changing == plan)
    }

    /// Takes out whoever waits to change this plan.
    pub(super) fn take(&mut self, plan: Uuid) -> Option<Member> {
        let mut plans = self.waiting.iter().map(|(_, member)| member.plan);
        let place = plans.position(|waiting| waiting == plan)?;
        self.waiting.remove(place).map(|(_, member)| member)
    }

    /// Lets one that has just come leave at once, by itself, where it is time. It is on its way then, as the
    /// message with this number.
    pub(super) fn send_one(&mut self, plan: Uuid, now: Instant) -> Option<u64> {
        let leaves = self.waiting.is_empty() && self.is_time_for(1, now);
        leaves.then(|| self.leave(vec![plan], now))
    }

    /// Lets one leave by itself that nobody should wait for, as the message with this number.
    pub(super) fn send_apart(&mut self, plan: Uuid) -> u64 {
        self.put(None, vec![plan])
    }

    /// Somebody waits, under this number.
    pub(super) fn add(&mut self, member: Member, now: Instant) -> u64 {
        let number = number();
        self.waiting.push_back((number, member));
        self.callers = self.callers.max(self.present(now));
        number
    }

    /// Takes one out that still waits.
    pub(super) fn give_up(&mut self, number: u64) -> Option<Member> {
        let mut numbers = self.waiting.iter().map(|(number, _)| *number);
        let place = numbers.position(|waiting| waiting == number)?;
        self.waiting.remove(place).map(|(_, member)| member)
    }

    /// The next group, where it is time: those that have waited longest, in the order of their plans, so that
    /// no two groups hold what the other one waits for. It is on its way then, as the message with this number.
    pub(super) fn next(&mut self, now: Instant) -> Option<(u64, Vec<Member>)> {
        // Whoever has gone away meanwhile wants nothing any more.
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

    /// A message is back.
    pub(super) fn is_back(&mut self, number: u64) {
        self.under_way.retain(|message| message.number != number);
    }

    /// A message that changes these plans is on its way.
    pub(super) fn leave(&mut self, plans: Vec<Uuid>, now: Instant) -> u64 {
        let number = self.put(Some(now), plans);
        self.callers = self.present(now).max(self.callers.saturating_sub(1));
        number
    }

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

    /// The messages that may be back soon.
    fn awaited(&self, now: Instant) -> impl Iterator<Item = &Message> {
        let still = move |left: Instant| now.saturating_duration_since(left) < self.company;
        let messages = self.under_way.iter();
        messages.filter(move |message| message.left.is_some_and(still))
    }

    /// The callers that have not been answered yet, and may be soon.
    fn present(&self, now: Instant) -> usize {
        let travelling: usize = self.awaited(now).map(|message| message.plans.len()).sum();
        travelling + self.waiting.len()
    }

    /// Whether so many should wait no longer.
    fn is_time_for(&self, waiting: usize, now: Instant) -> bool {
        match self.awaited(now).count() {
            0 => waiting > 0,
            awaited if awaited < MESSAGES => waiting >= self.share(),
            _ => waiting >= MEMBERS && self.under_way.len() < self.most,
        }
    }

    /// How many go together, so that all who call are on their way with as many messages as there may be.
    fn share(&self) -> usize {
        self.callers.div_ceil(MESSAGES).clamp(1, MEMBERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPANY: Duration = Duration::from_millis(20);

    /// A meeting, the messages that are on their way, and the time.
    struct Scene {
        meeting: Meeting,
        under_way: VecDeque<(u64, usize)>,
        now: Instant,
        plans: u128,
    }

    struct Caller {
        number: u64,
        /// Whoever drops it has gone away.
        answer: oneshot::Receiver<Answer>,
    }

    impl Scene {
        fn new() -> Self {
            Self {
                meeting: Meeting::new(16, COMPANY),
                under_way: VecDeque::new(),
                now: Instant::now(),
                plans: 1000,
            }
        }

        /// Two are on their way, each alone, and whoever comes now waits.
        fn busy() -> Self {
            let mut scene = Self::new();
            assert!(scene.sends_one() && scene.sends_one() && !scene.sends_one());
            scene
        }

        fn sends_one(&mut self) -> bool {
            self.plans += 1;
            let plan = Uuid::from_u128(self.plans);
            let left = self.meeting.send_one(plan, self.now);
            self.under_way.extend(left.map(|number| (number, 1)));
            left.is_some()
        }

        fn come(&mut self, plan: u128) -> Caller {
            let (sender, answer) = oneshot::channel();
            let member = Member {
                plan: Uuid::from_u128(plan),
                statements: Vec::new(),
                answer: sender,
            };
            let number = self.meeting.add(member, self.now);
            Caller { number, answer }
        }

        /// The plans of the next group.
        fn next(&mut self) -> Vec<u128> {
            let Some((number, group)) = self.meeting.next(self.now) else {
                return Vec::new();
            };
            self.under_way.push_back((number, group.len()));
            group.iter().map(|member| member.plan.as_u128()).collect()
        }

        /// The message that left first is back; how many were with it.
        fn is_back(&mut self) -> usize {
            let (number, members) = self.under_way.pop_front().unwrap();
            self.meeting.is_back(number);
            members
        }
    }

    #[test]
    fn one_caller_never_waits() {
        let mut scene = Scene::new();
        for _ in 0..100 {
            assert!(scene.sends_one());
            scene.is_back();
        }
        assert!(scene.meeting.is_over());
    }

    #[test]
    fn those_that_wait_go_together_once_they_are_enough() {
        let mut scene = Scene::busy();
        let _three = [3, 1, 2].map(|plan| scene.come(plan));
        assert_eq!(scene.next(), [0; 0], "two are on their way");
        scene.is_back();
        assert_eq!(scene.next(), [1, 2, 3], "in the order of plans");
        scene.is_back();
        let _one = scene.come(4);
        assert_eq!(scene.next(), [0; 0], "of late there were more");
        scene.is_back();
        assert_eq!(scene.next(), [4], "it would wait for nobody");
    }

    #[test]
    fn eight_callers_are_two_groups_of_four() {
        let mut scene = Scene::busy();
        let mut callers: Vec<Caller> = (1..=6).map(|plan| scene.come(plan)).collect();
        let mut sizes = Vec::new();
        for round in 1..=40 {
            for plan in 0..scene.is_back() as u128 {
                callers.push(scene.come(round * 10 + plan));
            }
            let groups = std::iter::repeat_with(|| scene.next().len());
            sizes.extend(groups.take_while(|size| *size > 0));
        }
        assert!(sizes[10..].iter().all(|size| *size == 4), "{sizes:?}");
    }

    #[test]
    fn it_is_known_who_changes_a_plan() {
        let mut scene = Scene::busy();
        let plan = Uuid::from_u128(1);
        let _two = [1, 2].map(|plan| scene.come(plan));
        assert!(!scene.meeting.is_changing(plan), "it waits");
        assert!(scene.meeting.take(plan).is_some_and(|it| it.plan == plan));
        assert!(scene.meeting.take(plan).is_none(), "once");
        let _again = scene.come(1);
        scene.is_back();
        assert_eq!(scene.next(), [1, 2]);
        assert!(scene.meeting.is_changing(plan));
        scene.is_back();
        scene.is_back();
        assert!(!scene.meeting.is_changing(plan));
    }

    #[test]
    fn nobody_waits_for_one_that_goes_apart() {
        let mut scene = Scene::new();
        let plan = Uuid::from_u128(1);
        let apart = scene.meeting.send_apart(plan);
        assert!(scene.meeting.is_changing(plan) && !scene.meeting.is_over());
        assert!(scene.sends_one() && scene.sends_one() && !scene.sends_one());
        scene.meeting.is_back(apart);
        assert!(!scene.meeting.is_changing(plan));
    }

    #[test]
    fn a_message_that_takes_long_keeps_nobody_waiting() {
        let mut scene = Scene::busy();
        let _six = [1, 2, 3, 4, 5, 6].map(|plan| scene.come(plan));
        assert_eq!(scene.next(), [0; 0]);
        scene.now += COMPANY;
        assert_eq!(scene.next(), [1, 2, 3, 4], "as if there were none");
        assert_eq!(
            scene.next(),
            [0; 0],
            "one is on its way, two would go with it"
        );
        let _two = [7, 8].map(|plan| scene.come(plan));
        assert_eq!(scene.next(), [5, 6, 7, 8]);
    }

    #[test]
    fn a_whole_group_waits_for_nobody_while_there_are_connections() {
        let mut scene = Scene::busy();
        let _callers: Vec<Caller> = (0..60).map(|plan| scene.come(plan)).collect();
        for _ in 2..8 {
            assert_eq!(scene.next().len(), MEMBERS);
        }
        assert_eq!(scene.next(), [0; 0], "half of the connections are in use");
        scene.is_back();
        assert_eq!(scene.next().len(), MEMBERS);
    }

    #[test]
    fn whoever_gives_up_or_goes_away_is_in_no_group() {
        let mut scene = Scene::busy();
        let [gone, tired, stays] = [1, 2, 3].map(|plan| scene.come(plan));
        drop(gone.answer);
        let given_up = scene.meeting.give_up(tired.number).unwrap();
        assert_eq!(given_up.plan.as_u128(), 2);
        assert!(scene.meeting.give_up(tired.number).is_none(), "once");
        scene.is_back();
        scene.is_back();
        assert_eq!(scene.next(), [3]);
        let given_up = scene.meeting.give_up(stays.number);
        assert!(given_up.is_none(), "it is on its way");
    }
}
