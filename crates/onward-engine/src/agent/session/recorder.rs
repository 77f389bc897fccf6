//! The current turn of an agent while an event is applied to it: its calls that are not judged yet,
//! and the judgement of a step.
//!
//! `turns.rs` loads and stores it.

use onward_core::Timestamp;
use onward_core::turn::escalation::{self, EscalationState};
use onward_core::turn::{
    Call, ExternalChange, JudgedStep, LoopControl, State, TreeChange, TurnEnd, TurnJudge,
};
use onward_store::{SeenClaim, Sessions, Turn, Tx, Watched};

use crate::agent::observed::{Fingerprint, HookSource, ObservedCall, StepReport, truncate_id};
use crate::sanitize;

/// Number of recent call ids that are stored for deduplication.
const MAX_KNOWN_CALLS: usize = 96;
/// Number of calls without a batch after which an agent does not report batches.
const MAX_CALLS_WITHOUT_BATCH: usize = 32;
/// Marks the id of a call that was reported separately and not judged.
pub(super) const UNJUDGED: &str = "?";

/// Stored state of an agent before an event is applied.
pub(super) struct SessionState {
    pub(super) off: bool,
    pub(super) claims: Vec<SeenClaim>,
    pub(super) is_primer_due: bool,
    pub(super) watched: Option<Watched>,
    pub(super) turn: Option<Turn>,
}

/// Whether an event belongs to this turn: the turn has not ended, or it was stopped and no other
/// turn has started.
pub(super) fn is_current(turn: &Turn, source: &HookSource) -> bool {
    let same = match (&turn.key, &source.turn) {
        (Some(stored), Some(reported)) => stored == reported,
        (None, _) | (_, None) => true,
    };
    same && matches!(turn.ended, None | Some((_, TurnEnd::Stopped)))
}

/// The current turn and its stored state.
pub(super) struct TurnRecorder {
    pub(super) watched: Watched,
    pub(super) turn: Turn,
}

impl TurnRecorder {
    /// Continues the current turn. Begins one if there is none or the event belongs to another
    /// turn.
    pub(super) fn resume(
        tx: &mut Tx,
        source: &HookSource,
        known: SessionState,
        control: LoopControl,
        now: Timestamp,
    ) -> Self {
        match known.turn {
            Some(mut turn) if is_current(&turn, source) => {
                let mut watched = known.watched.unwrap_or_default();
                if watched.turn != turn.number {
                    watched.state = State::default();
                }
                watched.agent.clone_from(&source.subagent);
                watched.turn = turn.number;
                turn.key = turn.key.or_else(|| source.turn.clone());
                turn.threshold = control.turn.stall_threshold.max(1);
                turn.seen_at = now;
                Self { watched, turn }
            }
            turn => {
                let known = SessionState { turn, ..known };
                Self::begin(tx, source, known, control, now)
            }
        }
    }

    /// Begins a turn and ends the current one.
    pub(super) fn begin(
        tx: &mut Tx,
        source: &HookSource,
        known: SessionState,
        control: LoopControl,
        now: Timestamp,
    ) -> Self {
        let number = known.turn.as_ref().map_or(1, |last| last.number + 1);
        if let Some(mut last) = known.turn.filter(|turn| turn.ended.is_none()) {
            last.ended = Some((now, TurnEnd::NextPrompt));
            Sessions(tx).write_turn(&source.session, &last);
        }
        let mut watched = known.watched.unwrap_or_default();
        watched.agent.clone_from(&source.subagent);
        watched.turn = number;
        watched.state = State::default();
        watched.unreadable = None;
        Self {
            watched,
            turn: Turn {
                number,
                agent: source.subagent.clone(),
                key: source.turn.clone(),
                began_at: now,
                progressed_at: None,
                ended: None,
                standing: EscalationState::default(),
                threshold: control.turn.stall_threshold.max(1),
                judgement: None,
                seen_at: now,
                answer: None,
            },
        }
    }

    /// Sets the fingerprint baseline.
    pub(super) fn set_baseline(&mut self, fingerprint: &Fingerprint) {
        self.watched.fingerprint = match fingerprint {
            Fingerprint::Value(print) => Some(print.clone()),
            Fingerprint::Unavailable | Fingerprint::TimedOut => None,
        };
    }

    /// Compares the fingerprint with the last one and stores it.
    fn external_change(&mut self, fingerprint: &Fingerprint) -> ExternalChange {
        match fingerprint {
            Fingerprint::TimedOut => ExternalChange::TimedOut,
            Fingerprint::Unavailable => ExternalChange::Unknown,
            Fingerprint::Value(print) => {
                let last = self.watched.fingerprint.replace(print.clone());
                ExternalChange::compare(last.as_ref(), Some(print))
            }
        }
    }

    /// Judges a step.
    pub(super) fn judge(
        &mut self,
        calls: &[ObservedCall],
        fingerprint: &Fingerprint,
        control: LoopControl,
        now: Timestamp,
    ) -> JudgedStep {
        let before = self.watched.fingerprint.clone();
        let external = self.external_change(fingerprint);
        let tree = match (before, fingerprint) {
            (Some(before), Fingerprint::Value(after)) => Some(TreeChange::new(&before, after)),
            (None, _) | (_, Fingerprint::Unavailable | Fingerprint::TimedOut) => None,
        };
        let state = std::mem::take(&mut self.watched.state);
        let mut judge = TurnJudge::resume(control, state, self.turn.standing);
        let calls: Vec<Call<'_>> = calls.iter().map(ObservedCall::as_call).collect();
        judge.observe(&calls, external, tree, now)
    }

    /// Records a message about a background task, which counts as progress. `ended` is the task's id
    /// if the task has ended.
    pub(super) fn record_task_message(
        &mut self,
        ended: Option<&str>,
        control: LoopControl,
        now: Timestamp,
    ) {
        let state = std::mem::take(&mut self.watched.state);
        let mut judge = TurnJudge::resume(control, state, self.turn.standing);
        let (state, escalation) = judge.record_task_notification(ended, now);
        self.watched.state = state;
        self.turn.standing = escalation;
        self.turn.progressed_at = Some(now);
    }

    /// Sets the state after a judged step. If another process recorded steps that the judge has not
    /// seen, the step number continues after them.
    pub(super) fn set_state(&mut self, state: State, escalation: EscalationState) {
        let next = self.turn.standing.steps.saturating_add(1);
        self.turn.standing = escalation;
        self.turn.standing.steps = escalation.steps.max(next);
        self.watched.state = state;
    }

    /// Stores a call id and returns whether it was already stored in this turn. Agents may use an
    /// id again in another turn.
    pub(super) fn record_call_id(&mut self, id: Option<String>) -> bool {
        let Some(id) = id else { return false };
        self.store_id("", id)
    }

    fn store_id(&mut self, mark: &str, mut id: String) -> bool {
        sanitize::text(&mut id);
        truncate_id(&mut id);
        let id = format!("{mark}{}:{id}", self.turn.number);
        let known = &mut self.watched.known_calls;
        if known.contains(&id) {
            return true;
        }
        known.push(id);
        let surplus = known.len().saturating_sub(MAX_KNOWN_CALLS);
        known.drain(..surplus);
        false
    }

    /// The calls of a step that are not judged yet, without rejected ones. An agent that reports
    /// batches reports each call of a batch separately as well, and before it. So a separate call
    /// of such an agent is not a step, unless so many were reported without a batch that the agent
    /// does not report batches here.
    pub(super) fn take_calls(
        &mut self,
        mut calls: Vec<ObservedCall>,
        report: StepReport,
    ) -> Vec<ObservedCall> {
        let is_part = match report {
            StepReport::Batch => false,
            StepReport::Call => self.watched.batches,
            StepReport::CallOfBatch => self.watched.batches || !self.lacks_batches(),
        };
        self.watched.batches |= report == StepReport::Batch;
        if is_part && !self.watched.batches {
            for call in &calls {
                self.store_id(UNJUDGED, call.id.clone().unwrap_or_default());
            }
        }
        if is_part {
            return Vec::new();
        }
        calls.retain_mut(|call| {
            !self.record_call_id(call.id.take()) && !escalation::is_rejection(&call.output)
        });
        calls
    }

    /// Whether enough calls were reported without a batch.
    fn lacks_batches(&self) -> bool {
        let unjudged = self.watched.known_calls.iter();
        let unjudged = unjudged.filter(|id| id.starts_with(UNJUDGED));
        unjudged.count() >= MAX_CALLS_WITHOUT_BATCH
    }

    pub(super) fn save(&self, tx: &mut Tx, source: &HookSource) {
        Sessions(tx).write_turn(&source.session, &self.turn);
        Sessions(tx).keep_watched(&source.session, &self.watched);
    }
}
