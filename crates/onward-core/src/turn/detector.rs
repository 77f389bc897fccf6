//! The detector: judges observations, and exports and imports its state.

use super::bounded_map::BoundedMap;
use super::evidence::{Evidence, IdleReason};
use super::intent::Intent;
use super::judge::{JudgedCall, Score, TurnHistory, judge};
use super::policy::WAIT_PER_STEP;
use super::poll::LastOutput;
use super::task::{LastReport, TaskChange, Tasks};
use super::{Call, ExternalChange, Observation, Progress, TurnPolicy, Verdict};
use crate::time::Timestamp;

/// The maximum number of calls in the evidence.
pub(crate) const MAX_EVIDENCE: usize = 16;

/// The serializable state of a turn. Store it outside of the agent's context.
///
/// At most 8,192 lines, 1,024 outputs, 1,024 calls and 16 tasks, as hashes, and 16 calls with
/// previews: at most 80 kB. A typical turn of thirty steps takes 2 to 15 kB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Steps in the turn so far.
    pub step: u32,
    /// Consecutive idle steps, in half steps.
    pub idle_halves: u32,
    /// When the idle count last changed or was reset, if steps have timestamps.
    pub counted_at: Option<Timestamp>,
    /// Hashes of known lines, oldest first.
    pub lines: Vec<u32>,
    /// Hashes of known outputs, oldest first.
    pub outputs: Vec<u64>,
    /// The calls, oldest first: hash, maximum reported progress, and the hashes of the first and
    /// last line of the last output.
    pub calls: Vec<(u64, u64, (u32, u32))>,
    /// The background tasks that have not ended, oldest first: hash, step and time of the last
    /// report.
    pub tasks: Vec<(u64, u32, Option<Timestamp>)>,
    /// The last idle calls since the last progress.
    pub evidence: Vec<Evidence>,
}

/// Judges the turns of one agent or subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressDetector {
    policy: TurnPolicy,
    step: u32,
    idle_halves: u32,
    counted_at: Option<Timestamp>,
    seen: TurnHistory,
    tasks: Tasks,
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
            counted_at: state.counted_at,
            seen: TurnHistory {
                lines: BoundedMap::from_vec(state.lines.into_iter().map(|key| (key, ())).collect()),
                outputs: BoundedMap::from_vec(
                    state.outputs.into_iter().map(without_value).collect(),
                ),
                calls: BoundedMap::from_vec(
                    (state.calls.into_iter())
                        .map(|(call, done, ends)| (call, LastOutput { done, ends }))
                        .collect(),
                ),
            },
            tasks: Tasks::from_vec(
                (state.tasks.into_iter())
                    .map(|(task, step, at)| (task, LastReport { step, at }))
                    .collect(),
            ),
            evidence,
        }
    }

    /// The state to store, so that another process can continue.
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
                .map(|(task, report)| (task, report.step, report.at))
                .collect(),
            evidence: self.evidence.clone(),
        }
    }

    /// The policy.
    pub fn policy(&self) -> &TurnPolicy {
        &self.policy
    }

    /// Consecutive idle steps.
    pub fn idle_steps(&self) -> u32 {
        self.idle_halves / 2
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
        let judged: Vec<JudgedCall> = (0..)
            .zip(step.calls)
            .map(|(index, call)| self.judge(index, call, step))
            .collect();
        if step.external == ExternalChange::TimedOut {
            return Verdict::Unjudged {
                steps: self.idle_steps(),
            };
        }
        match self.progress(step.external, &judged) {
            Some(reason) => {
                self.idle_halves = 0;
                self.evidence.clear();
                self.counted_at = step.at.or(self.counted_at);
                Verdict::Progress { reason }
            }
            None => self.idle(step, &judged),
        }
    }

    /// Records a notification about a background task, and the end of the task `ended`. The
    /// notification resets the idle count; known outputs stay known.
    pub fn record_task_notification(&mut self, ended: Option<&str>, at: Option<Timestamp>) {
        self.idle_halves = 0;
        self.evidence.clear();
        self.counted_at = at.or(self.counted_at);
        if let Some(task) = ended {
            self.tasks.end(task);
        }
    }

    /// Judges a call and records what it reports about a background task.
    fn judge(&mut self, index: usize, call: &Call<'_>, step: &Observation<'_>) -> JudgedCall {
        let mut judged = judge(index, call, step.external, &mut self.seen, &self.policy);
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

    fn progress(&self, external: ExternalChange, judged: &[JudgedCall]) -> Option<Progress> {
        let repeats = self.policy.rule.parts().repeats && repeats_only_edits(judged);
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

    fn idle(&mut self, step: &Observation<'_>, judged: &[JudgedCall]) -> Verdict {
        let idle_half_steps = self.idle_half_steps(step, judged);
        self.idle_halves = self.idle_halves.saturating_add(idle_half_steps);
        if idle_half_steps > 0 {
            self.counted_at = step.at.or(self.counted_at);
        }
        for (call, judged) in step.calls.iter().zip(judged) {
            if let Some(reason) = judged.idle_reason() {
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
        if waits && self.policy.rule.parts().polling {
            return match (self.counted_at, step.at) {
                (Some(counted), Some(at)) if at.since(counted) < WAIT_PER_STEP => 0,
                (Some(_), Some(_)) => 2,
                (_, None) | (None, _) => 1,
            };
        }
        let least = judged.iter().map(|call| match call.score {
            Score::Progress(_) | Score::Unknown(_) => 0,
            Score::HalfIdle(_) => 1,
            Score::Idle(_) => 2,
        });
        least.min().unwrap_or(2)
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
        call.repeated && matches!(call.intent, Intent::Edit | Intent::ShellWrite)
    };
    let mut changing = judged.iter().filter(changes).peekable();
    changing.peek().is_some() && changing.all(repeat)
}

fn keep_last(evidence: &mut Vec<Evidence>) {
    let surplus = evidence.len().saturating_sub(MAX_EVIDENCE);
    evidence.drain(..surplus);
}
