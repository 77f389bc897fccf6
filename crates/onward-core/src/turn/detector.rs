//! The detector itself: from an observation to a verdict, and its state out and in.

use super::evidence::{Evidence, Nothing};
use super::intent::Intent;
use super::judge::{Judged, Seen, Worth, judge};
use super::memory::Memory;
use super::policy::WAIT_PER_STEP;
use super::poll::LastAnswer;
use super::task::{News, Tasks, Word};
use super::{Call, Observation, Outside, Progress, TurnPolicy, Verdict};
use crate::time::Timestamp;

/// How many calls the evidence holds.
pub(crate) const EVIDENCE: usize = 16;

/// What is remembered of a turn: plain data, to be kept wherever the agent's context is not.
///
/// At most 8,192 lines, 1,024 outputs, 1,024 calls and 16 tasks, as hashes, and 16 calls with previews:
/// 80 kB at most. An ordinary turn of thirty steps takes 2 to 15 kB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Steps of the turn so far.
    pub step: u32,
    /// Idle steps in a row, counted in halves.
    pub idle_halves: u32,
    /// When a step last counted, where the steps have a clock.
    pub counted_at: Option<Timestamp>,
    /// Hashes of the lines seen, the oldest first.
    pub lines: Vec<u32>,
    /// Hashes of the outputs seen, the oldest first.
    pub outputs: Vec<u64>,
    /// The calls made, the oldest first: for each its hash, how much it said was done at most, and the
    /// hashes of the first and the last line of its last answer.
    pub calls: Vec<(u64, u64, (u32, u32))>,
    /// The background tasks of which nobody said that they are over, the oldest first: for each its
    /// hash, the step in which it was last heard of, and when that was.
    pub tasks: Vec<(u64, u32, Option<Timestamp>)>,
    /// The last calls that counted for nothing since the last progress.
    pub evidence: Vec<Evidence>,
}

/// Watches the turns of one agent, or of one subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressDetector {
    policy: TurnPolicy,
    step: u32,
    idle_halves: u32,
    counted_at: Option<Timestamp>,
    seen: Seen,
    tasks: Tasks,
    evidence: Vec<Evidence>,
}

impl ProgressDetector {
    /// A detector at the beginning of a turn.
    pub fn new(policy: TurnPolicy) -> Self {
        Self::resume(policy, State::default())
    }

    /// Goes on where [`state`](Self::state) was taken.
    pub fn resume(policy: TurnPolicy, state: State) -> Self {
        let unvalued = |key| (key, ());
        let mut evidence = state.evidence;
        keep_last(&mut evidence);
        ProgressDetector {
            policy,
            step: state.step,
            idle_halves: state.idle_halves,
            counted_at: state.counted_at,
            seen: Seen {
                lines: Memory::from_vec(state.lines.into_iter().map(|key| (key, ())).collect()),
                outputs: Memory::from_vec(state.outputs.into_iter().map(unvalued).collect()),
                calls: Memory::from_vec(
                    (state.calls.into_iter())
                        .map(|(call, done, ends)| (call, LastAnswer { done, ends }))
                        .collect(),
                ),
            },
            tasks: Tasks::from_vec(
                (state.tasks.into_iter())
                    .map(|(task, step, at)| (task, Word { step, at }))
                    .collect(),
            ),
            evidence,
        }
    }

    /// What to keep, so that another process can go on.
    pub fn state(&self) -> State {
        State {
            step: self.step,
            idle_halves: self.idle_halves,
            counted_at: self.counted_at,
            lines: self
                .seen
                .lines
                .to_vec()
                .into_iter()
                .map(|(key, ())| key)
                .collect(),
            outputs: self
                .seen
                .outputs
                .to_vec()
                .into_iter()
                .map(|(key, ())| key)
                .collect(),
            calls: (self.seen.calls.to_vec().into_iter())
                .map(|(call, last)| (call, last.done, last.ends))
                .collect(),
            tasks: (self.tasks.to_vec().into_iter())
                .map(|(task, word)| (task, word.step, word.at))
                .collect(),
            evidence: self.evidence.clone(),
        }
    }

    /// What it judges by.
    pub fn policy(&self) -> &TurnPolicy {
        &self.policy
    }

    /// Idle steps in a row.
    pub fn idle_steps(&self) -> u32 {
        self.idle_halves / 2
    }

    /// A new turn: everything is forgotten.
    pub fn begin_turn(&mut self) {
        *self = Self::new(self.policy);
    }

    /// Judges one step.
    pub fn observe(&mut self, step: &Observation<'_>) -> Verdict {
        if step.calls.is_empty() {
            self.begin_turn();
            return Verdict::Ended;
        }
        self.step = self.step.saturating_add(1);
        let judged: Vec<Judged> = (0..)
            .zip(step.calls)
            .map(|(index, call)| self.judge(index, call, step))
            .collect();
        if step.outside == Outside::Late {
            return Verdict::Unjudged {
                steps: self.idle_steps(),
            };
        }
        match self.progress(step.outside, &judged) {
            Some(why) => {
                self.idle_halves = 0;
                self.evidence.clear();
                self.counted_at = step.at.or(self.counted_at);
                Verdict::Progress { why }
            }
            None => self.idle(step, &judged),
        }
    }

    /// Something came from outside that is no step of the turn: the agent is told of a background task,
    /// and of which one that it is over, if any is. What was idle before does not count any more; what was
    /// learned stays known.
    pub fn hear_of_task(&mut self, ended: Option<&str>, at: Option<Timestamp>) {
        self.idle_halves = 0;
        self.evidence.clear();
        self.counted_at = at.or(self.counted_at);
        if let Some(task) = ended {
            self.tasks.end(task);
        }
    }

    /// Judges a call, and takes in what it says of a task in the background.
    fn judge(&mut self, index: usize, call: &Call<'_>, step: &Observation<'_>) -> Judged {
        let mut judged = judge(index, call, step.outside, &mut self.seen, &self.policy);
        let word = Word {
            step: self.step,
            at: step.at,
        };
        judged.task = self.tasks.hear(call, word);
        match judged.task {
            // The very same thing was started before: its new name is all that is new about it.
            Some(News::Began) if judged.again && self.policy.rule.parts().repeats => {
                judged.task = None;
                judged.worth = Worth::Nothing(Nothing::Seen);
                judged.waits = false;
            }
            // Whoever asks for a task that runs waits for it, however that is put.
            Some(News::Runs) => judged.waits = true,
            Some(News::Began | News::Ended) | None => {}
        }
        judged
    }

    fn progress(&self, outside: Outside, judged: &[Judged]) -> Option<Progress> {
        let repeats = self.policy.rule.parts().repeats && only_repeats(judged);
        let moves = |call: &Judged| matches!(call.task, Some(News::Began | News::Ended));
        if judged.iter().any(moves) || (outside == Outside::Changed && !repeats) {
            return Some(Progress::Changed);
        }
        judged.iter().find_map(|call| match call.worth {
            Worth::Progress(why) => Some(why),
            Worth::Half(_) | Worth::Unknown(_) | Worth::Nothing(_) => None,
        })
    }

    fn idle(&mut self, step: &Observation<'_>, judged: &[Judged]) -> Verdict {
        let halves = self.halves(step, judged);
        self.idle_halves = self.idle_halves.saturating_add(halves);
        if halves > 0 {
            self.counted_at = step.at.or(self.counted_at);
        }
        for (call, judged) in step.calls.iter().zip(judged) {
            if let Some(why) = judged.nothing() {
                self.evidence.push(Evidence::of(self.step, call, why));
            }
        }
        keep_last(&mut self.evidence);
        let steps = self.idle_steps();
        let threshold = self.policy.stall_threshold.max(1);
        match steps < threshold {
            true => Verdict::Idle { steps, threshold },
            false => Verdict::Stalled {
                steps,
                evidence: self.evidence.clone(),
            },
        }
    }

    /// How much an idle step counts, in halves.
    fn halves(&self, step: &Observation<'_>, judged: &[Judged]) -> u32 {
        let now = Word {
            step: self.step,
            at: step.at,
        };
        let runs = step.background || self.tasks.run(now, &self.policy);
        let waits = runs && judged.iter().all(|call| call.waits);
        if waits && self.policy.rule.parts().polling {
            return match (self.counted_at, step.at) {
                (Some(counted), Some(at)) if at.since(counted) < WAIT_PER_STEP => 0,
                (Some(_), Some(_)) => 2,
                (_, None) | (None, _) => 1,
            };
        }
        let least = judged.iter().map(|call| match call.worth {
            Worth::Progress(_) | Worth::Unknown(_) => 0,
            Worth::Half(_) => 1,
            Worth::Nothing(_) => 2,
        });
        least.min().unwrap_or(2)
    }
}

impl Judged {
    fn nothing(&self) -> Option<Nothing> {
        match self.worth {
            Worth::Progress(_) => None,
            Worth::Half(why) | Worth::Unknown(why) | Worth::Nothing(why) => Some(why),
        }
    }
}

/// Whether all that a step can have changed is what an edit of this turn changed before: the same edit
/// once more, with nothing beside it but looking.
fn only_repeats(judged: &[Judged]) -> bool {
    let changes = |call: &&Judged| call.intent != Intent::Look;
    let repeat = |call: &Judged| call.again && matches!(call.intent, Intent::Edit | Intent::Write);
    let mut changing = judged.iter().filter(changes).peekable();
    changing.peek().is_some() && changing.all(repeat)
}

fn keep_last(evidence: &mut Vec<Evidence>) {
    let surplus = evidence.len().saturating_sub(EVIDENCE);
    evidence.drain(..surplus);
}
