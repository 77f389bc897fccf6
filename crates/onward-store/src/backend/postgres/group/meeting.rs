//! Who goes when, and with whom, of one tenant: row security lets a statement see no other.
//!
//! Few messages are on their way at once: with two, the server works on one while the other is being written
//! to its disk, and every further one makes the groups smaller. So that they are of equal size, nobody leaves
//! before there are enough, but for those that would wait for nobody.

use std::collections::VecDeque;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::Answer;
use crate::tx::Statement;

/// So many messages are on their way at once, unless so many wait that they are a group by themselves.
const MESSAGES: usize = 2;

/// So many transitions go together at most: each number is a text of its own, which every connection learns.
pub(super) const MEMBERS: usize = 8;

/// A transition that waits, or is on its way with others.
pub(super) struct Member {
    pub(super) plan: Uuid,
    pub(super) statements: Vec<Statement>,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// The transitions of a tenant that this process is writing.
pub(super) struct Meeting {
    /// The messages that may be on their way at most.
    most: usize,
    /// Those that are, and the transitions that are with them.
    messages: usize,
    travelling: usize,
    /// Each with its number.
    waiting: VecDeque<(u64, Member)>,
    last: u64,
    /// How many callers there were of late: whoever is answered soon comes back for more.
    callers: usize,
}

impl Meeting {
    pub(super) fn new(connections: usize) -> Self {
        Self {
            // The rest is for those that read.
            most: connections / 2,
            messages: 0,
            travelling: 0,
            waiting: VecDeque::new(),
            last: 0,
            callers: 0,
        }
    }

    /// Whether one that has just come leaves at once, by itself. Then it is on its way.
    pub(super) fn sends_one_alone(&mut self) -> bool {
        let leaves = self.waiting.is_empty() && self.is_time_for(1);
        if leaves {
            self.leave(1);
        }
        leaves
    }

    /// Somebody waits, under this number.
    pub(super) fn add(&mut self, member: Member) -> u64 {
        self.last += 1;
        self.waiting.push_back((self.last, member));
        self.callers = self.callers.max(self.present());
        self.last
    }

    /// Takes one out that still waits.
    pub(super) fn give_up(&mut self, number: u64) -> Option<Member> {
        let mut numbers = self.waiting.iter().map(|(number, _)| *number);
        let place = numbers.position(|waiting| waiting == number)?;
        self.waiting.remove(place).map(|(_, member)| member)
    }

    /// The next group, where it is time: those that can go with whoever has waited longest, in the order of
    /// their plans, so that no two groups hold what the other one waits for. It is on its way then.
    pub(super) fn next(&mut self) -> Option<Vec<Member>> {
        // Whoever has gone away meanwhile wants nothing any more.
        self.waiting
            .retain(|(_, member)| !member.answer.is_closed());
        if !self.is_time_for(self.waiting.len()) {
            return None;
        }
        let share = self.share();
        let mut group: Vec<Member> = Vec::with_capacity(share);
        let mut others = VecDeque::with_capacity(self.waiting.len());
        for (number, member) in self.waiting.drain(..) {
            // The second of two changes of a plan was decided on what the first will have changed.
            let is_second = group.iter().any(|one| one.plan == member.plan);
            match group.len() < share && !is_second {
                true => group.push(member),
                false => others.push_back((number, member)),
            }
        }
        self.waiting = others;
        group.sort_by_key(|member| member.plan);
        self.leave(group.len());
        Some(group)
    }

    /// A message with so many transitions is back.
    pub(super) fn is_back(&mut self, members: usize) {
        self.messages -= 1;
        self.travelling -= members;
    }

    /// A message with so many transitions is on its way.
    pub(super) fn leave(&mut self, members: usize) {
        self.messages += 1;
        self.travelling += members;
        self.callers = self.present().max(self.callers.saturating_sub(1));
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The callers that have not been answered yet.
    fn present(&self) -> usize {
        self.travelling + self.waiting.len()
    }

    /// Whether so many should wait no longer.
    fn is_time_for(&self, waiting: usize) -> bool {
        match self.messages {
            0 => waiting > 0,
            messages if messages < MESSAGES => waiting >= self.share(),
            messages => waiting >= MEMBERS && messages < self.most,
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

    struct Caller {
        number: u64,
        /// Whoever drops it has gone away.
        answer: oneshot::Receiver<Answer>,
    }

    fn come(meeting: &mut Meeting, plan: u128) -> Caller {
        let (sender, answer) = oneshot::channel();
        let number = meeting.add(Member {
            plan: Uuid::from_u128(plan),
            statements: Vec::new(),
            answer: sender,
        });
        Caller { number, answer }
    }

    fn plans(group: Option<Vec<Member>>) -> Vec<u128> {
        let group = group.unwrap_or_default();
        group.iter().map(|member| member.plan.as_u128()).collect()
    }

    /// Two are on their way, each alone, and whoever comes now waits.
    fn busy() -> Meeting {
        let mut meeting = Meeting::new(16);
        assert!(meeting.sends_one_alone() && meeting.sends_one_alone());
        assert!(!meeting.sends_one_alone());
        meeting
    }

    #[test]
    fn one_caller_never_waits() {
        let mut meeting = Meeting::new(16);
        for _ in 0..100 {
            assert!(meeting.sends_one_alone());
            meeting.is_back(1);
        }
    }

    #[test]
    fn those_that_wait_go_together_once_they_are_enough() {
        let mut meeting = busy();
        let _three = [3, 1, 2].map(|plan| come(&mut meeting, plan));
        assert!(meeting.next().is_none(), "two are on their way");
        meeting.is_back(1);
        assert_eq!(plans(meeting.next()), [1, 2, 3], "in the order of plans");
        meeting.is_back(1);
        let _one = come(&mut meeting, 4);
        assert!(meeting.next().is_none(), "of late there were more");
        meeting.is_back(3);
        assert_eq!(plans(meeting.next()), [4], "it would wait for nobody");
    }

    #[test]
    fn eight_callers_are_two_groups_of_four() {
        let mut meeting = busy();
        let _six = [1, 2, 3, 4, 5, 6].map(|plan| come(&mut meeting, plan));
        let mut sizes = Vec::new();
        let mut under_way = vec![1, 1];
        let mut callers = Vec::new();
        for round in 1..=40 {
            let back = under_way.remove(0);
            meeting.is_back(back);
            for plan in 0..back as u128 {
                callers.push(come(&mut meeting, round * 10 + plan));
            }
            while let Some(group) = meeting.next() {
                under_way.push(group.len());
                sizes.push(group.len());
            }
        }
        assert!(sizes[10..].iter().all(|size| *size == 4), "{sizes:?}");
    }

    #[test]
    fn a_group_changes_each_plan_once() {
        let mut meeting = busy();
        let _callers = [1, 1, 3, 2].map(|plan| come(&mut meeting, plan));
        meeting.is_back(1);
        assert_eq!(plans(meeting.next()), [1, 2, 3]);
        meeting.is_back(1);
        assert!(meeting.next().is_none());
        meeting.is_back(3);
        assert_eq!(plans(meeting.next()), [1]);
    }

    #[test]
    fn a_whole_group_waits_for_nobody_while_there_are_connections() {
        let mut meeting = busy();
        let callers = (0..60).map(|plan| come(&mut meeting, plan));
        let _callers: Vec<Caller> = callers.collect();
        for _ in 2..8 {
            assert_eq!(plans(meeting.next()).len(), MEMBERS);
        }
        assert!(
            meeting.next().is_none(),
            "half of the connections are in use"
        );
        meeting.is_back(1);
        assert_eq!(plans(meeting.next()).len(), MEMBERS);
    }

    #[test]
    fn whoever_gives_up_or_goes_away_is_in_no_group() {
        let mut meeting = busy();
        let [gone, tired, stays] = [1, 2, 3].map(|plan| come(&mut meeting, plan));
        drop(gone.answer);
        let given_up = meeting.give_up(tired.number);
        assert_eq!(plans(given_up.map(|member| vec![member])), [2]);
        assert!(meeting.give_up(tired.number).is_none(), "once");
        meeting.is_back(1);
        meeting.is_back(1);
        assert_eq!(plans(meeting.next()), [3]);
        assert!(meeting.give_up(stays.number).is_none(), "it is on its way");
    }
}
