//! The detector: judges observations, and exports and imports its state.

use std::time::Duration;

use super::bounded_map::BoundedMap;
use super::evidence::{Evidence, IdleReason};
use super::intent::Intent;
use super::judge::{JudgedCall, Score, TurnHistory, judge};
use super::policy::WAIT_PER_STEP;
use super::poll::LastOutput;
use super::task::{LastReport, TaskChange, Tasks};
use super::{Call, ExternalChange, Observation, Progress, TreeChange, TurnPolicy, Verdict};
use crate::time::Timestamp;

/// The maximum number of calls in the evidence.
pub(crate) const MAX_EVIDENCE: usize = 16;

/// The maximum number of stored states of the working tree.
const MAX_TREES: usize = 64;
/// The number of measurements since the last progress that count half.
const MAX_FLUCTUATIONS: usize = 8;

/// The serializable state of a turn. Store it outside of the agent's context.
///
/// At most 8,192 lines, 1,024 outputs, 1,024 calls, 64 trees and 16 tasks, as hashes, and 16 calls
/// with previews: at most 120 kB. A typical turn of thirty steps takes 2 to 20 kB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Steps in the turn so far.
    pub step: u32,
    /// Consecutive idle steps, in half steps.
    pub idle_halves: u32,
    /// The time of waiting with pauses since the last progress.
    pub waited: Duration,
    /// When the idle count last changed or was reset, if steps have timestamps.
    pub counted_at: Option<Timestamp>,
    /// When the last step ended, if steps have timestamps.
    pub observed_at: Option<Timestamp>,
    /// Hashes of known lines, oldest first.
    pub lines: Vec<u32>,
    /// Hashes of known outputs, oldest first.
    pub outputs: Vec<u64>,
    /// The calls, oldest first: hash and properties of the outputs.
    pub calls: Vec<(u64, LastOutput)>,
    /// The background tasks that have not ended, oldest first: hash, step and time of the last
    /// report.
    pub tasks: Vec<(u64, u32, Option<Timestamp>)>,
    /// Hashes of the states of the working tree, oldest first.
    pub trees: Vec<u64>,
    /// The last idle calls since the last progress.
    pub evidence: Vec<Evidence>,
}

/// Judges the turns of one agent or subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressDetector {
    policy: TurnPolicy,
    step: u32,
    idle_halves: u32,
    waited: Duration,
    counted_at: Option<Timestamp>,
    observed_at: Option<Timestamp>,
    seen: TurnHistory,
    tasks: Tasks,
    trees: BoundedMap<u64, (), MAX_TREES>,
    evidence: Vec<Evidence>,
}

impl ProgressDetector {
    /// A detector at the start of a turn.
    pub fn new(policy: TurnPolicy) -> Self {
        Self::resume(policy, State::default())
    }

    /// Restores a detector from its [`state`](Self::state).
    pub fn resume(policy: TurnPolicy, state: State) -> Self {
        let without_value = |key| (key, ());
        let mut evidence = state.evidence;
        keep_last(&mut evidence);
        ProgressDetector {
            policy,
            step: state.step,
            idle_halves: state.idle_halves,
            waited: state.waited,
            counted_at: state.counted_at,
            observed_at: state.observed_at,
            seen: TurnHistory {
                lines: BoundedMap::from_vec(state.lines.into_iter().map(|key| (key, ())).collect()),
                outputs: BoundedMap::from_vec(
                    state.outputs.into_iter().map(without_value).collect(),
                ),
                calls: BoundedMap::from_vec(state.calls),
            },
            tasks: Tasks::from_vec(
                (state.tasks.into_iter())
                    .map(|(task, step, at)| (task, LastReport { step, at }))
                    .collect(),
            ),
            trees: BoundedMap::from_vec(state.trees.into_iter().map(without_value).collect()),
            evidence,
        }
    }

    /// The state to store, so that another process can continue.
    pub fn state(&self) -> State {
        State {
            step: self.step,
            idle_halves: self.idle_halves,
            waited: self.waited,
            counted_at: self.counted_at,
            observed_at: self.observed_at,
            lines: keys(&self.seen.lines),
            outputs: keys(&self.seen.outputs),
            calls: self.seen.calls.to_vec(),
            tasks: (self.tasks.to_vec().into_iter())
                .map(|(task, report)| (task, report.step, report.at))
                .collect(),
            trees: keys(&self.trees),
            evidence: self.evidence.clone(),
        }
    }

    /// The idle calls of this turn.
    pub(crate) fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// The policy.
    pub fn policy(&self) -> &TurnPolicy {
        &self.policy
    }

    /// Consecutive idle steps, with the time of waiting converted to steps.
    pub fn idle_steps(&self) -> u32 {
        let threshold = self.policy.stall_threshold.max(1);
        let limit = self.policy.stall_wait.as_millis().max(1);
        let halves = self.waited.as_millis() * u128::from(threshold) * 2 / limit;
        let halves = u32::try_from(halves).unwrap_or(u32::MAX);
        self.idle_halves.saturating_add(halves) / 2
    }

    /// Starts a new turn and clears the state.
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
        let is_reverted = self.is_reverted(step);
        let judged: Vec<JudgedCall> = (0..)
            .zip(step.calls)
            .map(|(index, call)| self.judge(index, call, step, is_reverted == Some(true)))
            .collect();
        let last_at = self.observed_at;
        self.observed_at = step.at.or(last_at);
        if step.external == ExternalChange::TimedOut {
            return Verdict::Unjudged {
                steps: self.idle_steps(),
            };
        }
        match self.progress(step.external, is_reverted, &judged) {
            Some(reason) => {
                self.reset(step.at);
                Verdict::Progress { reason }
            }
            None => self.idle(step, last_at, &judged),
        }
    }

    /// Records a notification about a background task, and the end of the task `ended`. The
    /// notification resets the idle count; known outputs stay known.
    pub fn record_task_notification(&mut self, ended: Option<&str>, at: Option<Timestamp>) {
        self.reset(at);
        if let Some(task) = ended {
            self.tasks.end(task);
        }
    }

    fn reset(&mut self, at: Option<Timestamp>) {
        self.idle_halves = 0;
        self.waited = Duration::ZERO;
        self.evidence.clear();
        self.counted_at = at.or(self.counted_at);
    }

    /// Judges a call and records what it reports about a background task.
    fn judge(
        &mut self,
        index: usize,
        call: &Call<'_>,
        step: &Observation<'_>,
        is_reverted: bool,
    ) -> JudgedCall {
        let (seen, policy) = (&mut self.seen, &self.policy);
        let mut judged = judge(index, call, step.external, is_reverted, seen, policy);
        let report = LastReport {
            step: self.step,
            at: step.at,
        };
        judged.task = self.tasks.record(call, report);
        match judged.task {
            // A repeated command: only the id of its task is new.
            Some(TaskChange::Started) if judged.repeated && self.policy.rule.parts().repeats => {
                judged.task = None;
                judged.score = Score::Idle(IdleReason::Seen);
                judged.waits = false;
            }
            // A query for a running task counts as waiting.
            Some(TaskChange::StillRunning) => judged.waits = true,
            Some(TaskChange::Started | TaskChange::Ended) | None => {}
        }
        judged
    }

    /// The progress of a step. A change of the tree is progress unless the tree was in that state
    /// before in this turn. Without fingerprints, a repeated edit counts as that.
    fn progress(
        &self,
        external: ExternalChange,
        is_reverted: Option<bool>,
        judged: &[JudgedCall],
    ) -> Option<Progress> {
        let repeats = self.policy.rule.parts().repeats
            && is_reverted.unwrap_or_else(|| repeats_only_edits(judged));
        let changes_task =
            |call: &JudgedCall| matches!(call.task, Some(TaskChange::Started | TaskChange::Ended));
        if judged.iter().any(changes_task) || (external == ExternalChange::Changed && !repeats) {
            return Some(Progress::Changed);
        }
        judged.iter().find_map(|call| match call.score {
            Score::Progress(reason) => Some(reason),
            Score::HalfIdle(_) | Score::Unknown(_) | Score::Idle(_) => None,
        })
    }

    /// Whether a step changed the tree to an earlier state of this turn, if the states are known.
    /// Stores them.
    fn is_reverted(&mut self, step: &Observation<'_>) -> Option<bool> {
        let TreeChange { before, after } = step.tree?;
        self.trees.insert(before, ());
        let is_known = self.trees.insert(after, ()).is_some();
        Some(is_known && before != after && self.policy.rule.parts().repeats)
    }

    fn idle(
        &mut self,
        step: &Observation<'_>,
        last_at: Option<Timestamp>,
        judged: &[JudgedCall],
    ) -> Verdict {
        let waited = time_waited(step, last_at, judged);
        if let Some(waited) = waited {
            self.waited = self.waited.saturating_add(waited);
            self.counted_at = step.at.or(self.counted_at);
        } else {
            let idle_half_steps = self.idle_half_steps(step, judged);
            self.idle_halves = self.idle_halves.saturating_add(idle_half_steps);
            if idle_half_steps > 0 {
                self.counted_at = step.at.or(self.counted_at);
            }
        }
        for (call, judged) in step.calls.iter().zip(judged) {
            if let Some(reason) = judged.idle_reason() {
                let reason = waited.map_or(reason, |_| IdleReason::Waits);
                self.evidence.push(Evidence::new(self.step, call, reason));
            }
        }
        keep_last(&mut self.evidence);
        let steps = self.idle_steps();
        let threshold = self.policy.stall_threshold.max(1);
        if steps < threshold {
            Verdict::Idle { steps, threshold }
        } else {
            Verdict::Stalled {
                steps,
                evidence: self.evidence.clone(),
            }
        }
    }

    /// The weight of an idle step, in half steps.
    fn idle_half_steps(&self, step: &Observation<'_>, judged: &[JudgedCall]) -> u32 {
        let now = LastReport {
            step: self.step,
            at: step.at,
        };
        let is_running = step.background || self.tasks.any_running(now, &self.policy);
        let waits = is_running && judged.iter().all(|call| call.waits);
        if waits && self.policy.rule.parts().waiting {
            return match (self.counted_at, step.at) {
                (Some(counted), Some(at)) if at.since(counted) < WAIT_PER_STEP => 0,
                (Some(_), Some(_)) => 2,
                (_, None) | (None, _) => 1,
            };
        }
        let least = judged.iter().map(|call| match call.score {
            Score::Progress(_) | Score::Unknown(_) => 0,
            Score::HalfIdle(IdleReason::Fluctuates) if self.fluctuates_too_long() => 2,
            // A negative answer is news once.
            Score::Idle(reason) if is_negative(reason) && !call.repeated && self.has_found() => 0,
            Score::HalfIdle(_) => 1,
            Score::Idle(_) => 2,
        });
        least.min().unwrap_or(2)
    }
}

/// The time of a step that waits with a pause and repeats earlier calls. `None` if it does not
/// wait, or returned before the pause was over.
fn time_waited(
    step: &Observation<'_>,
    last_at: Option<Timestamp>,
    judged: &[JudgedCall],
) -> Option<Duration> {
    let waits = judged.iter().all(|call| call.waits || call.pause.is_some());
    let pause = judged.iter().filter_map(|call| call.pause).max()?;
    match (last_at, step.at) {
        _ if !waits => None,
        (Some(last), Some(at)) => Some(at.since(last)).filter(|elapsed| *elapsed >= pause / 2),
        (None, _) | (_, None) => Some(pause),
    }
}

fn is_negative(reason: IdleReason) -> bool {
    matches!(reason, IdleReason::NotFound | IdleReason::Empty)
}

impl ProgressDetector {
    /// Whether no search since the last progress was without a result.
    fn has_found(&self) -> bool {
        self.policy.rule.parts().answers
            && !self.evidence.iter().any(|call| is_negative(call.reason))
    }

    /// Whether measurements were repeated often enough since the last progress.
    fn fluctuates_too_long(&self) -> bool {
        let measurements = self.evidence.iter();
        let measurements = measurements.filter(|call| call.reason == IdleReason::Fluctuates);
        measurements.count() >= MAX_FLUCTUATIONS
    }
}

impl JudgedCall {
    fn idle_reason(&self) -> Option<IdleReason> {
        match self.score {
            Score::Progress(_) => None,
            Score::HalfIdle(reason) | Score::Unknown(reason) | Score::Idle(reason) => Some(reason),
        }
    }
}

/// Whether the only possible changes of a step are edits that this turn made before, possibly
/// together with reads.
fn repeats_only_edits(judged: &[JudgedCall]) -> bool {
    let changes = |call: &&JudgedCall| call.intent != Intent::Read;
    let repeat = |call: &JudgedCall| {
        call.repeated && matches!(call.intent, Intent::Edit | Intent::ShellWrite | Intent::Act)
    };
    let mut changing = judged.iter().filter(changes).peekable();
    changing.peek().is_some() && changing.all(repeat)
}

/// The keys of a map without values, oldest first.
fn keys<K: Copy + Ord, const CAPACITY: usize>(map: &BoundedMap<K, (), CAPACITY>) -> Vec<K> {
    map.to_vec().into_iter().map(|(key, ())| key).collect()
}

fn keep_last(evidence: &mut Vec<Evidence>) {
    let surplus = evidence.len().saturating_sub(MAX_EVIDENCE);
    evidence.drain(..surplus);
}
