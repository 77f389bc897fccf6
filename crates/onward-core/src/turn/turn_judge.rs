//! The judge of a turn: judges a step and selects the reaction to it.
//!
//! The program that reacts to a step judges it: the engine for hooks, the proxy for model requests.
//! Both store the resulting [`JudgedStep`], so every step is judged once, and the judge continues
//! from the stored state in another process.

use super::escalation::{self, EscalationLevel, EscalationState, LoopControl};
use super::{Call, ExternalChange, Observation, ProgressDetector, State, TreeChange, Verdict};
use crate::time::Timestamp;

/// Judges the turns of one agent or subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnJudge {
    control: LoopControl,
    detector: ProgressDetector,
    escalation: EscalationState,
}

/// The result of judging a step, with the state after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedStep {
    /// The verdict.
    pub verdict: Verdict,
    /// The message to the agent, if any.
    pub to_agent: Option<String>,
    /// The message to the user, if any.
    pub to_user: Option<String>,
    /// The escalation state.
    pub escalation: EscalationState,
    /// The detector state.
    pub state: State,
}

impl TurnJudge {
    /// Continues from the state after the last judged step; the default at the start of a turn.
    pub fn resume(control: LoopControl, state: State, escalation: EscalationState) -> Self {
        Self {
            detector: ProgressDetector::resume(control.turn, state),
            control,
            escalation,
        }
    }

    /// Starts a new turn and clears the state.
    pub fn begin_turn(&mut self) {
        self.detector.begin_turn();
        self.escalation = EscalationState::default();
    }

    /// Judges one step.
    pub fn observe(
        &mut self,
        calls: &[Call<'_>],
        external: ExternalChange,
        tree: Option<TreeChange>,
        at: Timestamp,
    ) -> JudgedStep {
        let verdict = self.detector.observe(&Observation {
            calls,
            external,
            tree,
            at: Some(at),
            background: false,
        });
        let level = self.control.after_step(&mut self.escalation, &verdict);
        let (state, escalation) = (self.detector.state(), self.escalation);
        let (mut to_agent, mut to_user) = (None, None);
        match level {
            EscalationLevel::None => {}
            EscalationLevel::Nudge => to_agent = Some(escalation::nudge(&escalation, external)),
            EscalationLevel::Reminder => {
                to_agent = Some(escalation::reminder(&escalation, external, &state.evidence));
            }
            EscalationLevel::Warning => to_user = Some(escalation::for_user(&escalation)),
        }
        JudgedStep {
            verdict,
            to_agent,
            to_user,
            escalation,
            state,
        }
    }

    /// Records a notification about a background task, and the end of the task `ended`. The
    /// notification is not a step; it resets the idle count. Returns the state after it.
    pub fn record_task_notification(
        &mut self,
        ended: Option<&str>,
        at: Timestamp,
    ) -> (State, EscalationState) {
        self.detector.record_task_notification(ended, Some(at));
        self.escalation.reset();
        (self.detector.state(), self.escalation)
    }

    /// Whether the next model response must be text.
    pub fn is_text_only(&self) -> bool {
        self.control.is_text_only(&self.escalation)
    }

    /// The reminder to the agent that the next response must be text.
    pub fn reminder(&self) -> String {
        let evidence = self.detector.evidence();
        escalation::reminder(&self.escalation, ExternalChange::Unknown, evidence)
    }

    /// The final answer of a turn in which the model only calls tools.
    pub fn final_message(&self) -> String {
        escalation::final_message(&self.escalation)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const CALL: Call<'static> = Call {
        tool: "Bash",
        input: &Value::Null,
        ok: Some(true),
        output: "the same output",
    };

    fn start() -> TurnJudge {
        let control = LoopControl::default();
        TurnJudge::resume(control, State::default(), EscalationState::default())
    }

    #[test]
    fn continues_from_the_state_of_a_judged_step() {
        let control = LoopControl::default();
        let (mut one, mut resumed) = (start(), start());
        for second in 0..12 {
            let at = Timestamp::from_millis(second * 1_000);
            let judged = one.observe(&[CALL], ExternalChange::Unchanged, None, at);
            assert_eq!(
                resumed.observe(&[CALL], ExternalChange::Unchanged, None, at),
                judged
            );
            resumed = TurnJudge::resume(control, judged.state, judged.escalation);
            assert_eq!(resumed, one);
        }
        assert!(one.is_text_only());
        one.begin_turn();
        assert_eq!(one, start());
    }

    #[test]
    fn a_task_notification_resets_the_idle_count_and_is_not_a_step() {
        let mut judge = start();
        for second in 0..12 {
            let at = Timestamp::from_millis(second * 1_000);
            judge.observe(&[CALL], ExternalChange::Unchanged, None, at);
        }
        assert!(judge.is_text_only());
        let at = Timestamp::from_millis(12_000);
        let (state, escalation) = judge.record_task_notification(None, at);
        assert!(!judge.is_text_only());
        assert_eq!((state.idle_halves, escalation.idle_steps), (0, 0));
        assert_eq!((state.step, escalation.steps), (12, 12));
        let resumed = TurnJudge::resume(LoopControl::default(), state, escalation);
        assert_eq!(resumed, judge);
    }
}
