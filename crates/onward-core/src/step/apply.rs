//! How an event changes the step that it is about.
//!
//! Total: every event is either applied, or answered with what does not fit, and then nothing is
//! changed. An event about another step, or about none, changes nothing.

use super::{
    Claim, FEEDBACK, FailReason, IllegalStepMove, Review, Step, StepCause, StepState, StepStatus,
    Work,
};
use crate::event::{Change, Decision, Event, ReviewAction};
use crate::id::ReviewId;
use crate::stall::Stall;
use crate::time::Timestamp;

/// Why an event does not fit a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StepMisfit {
    /// The law of the steps forbids it.
    #[error(transparent)]
    Illegal(#[from] IllegalStepMove),
    /// The event says that the step stood elsewhere.
    #[error("the step is `{is}`, not `{said}`")]
    From {
        /// What the event says.
        said: StepStatus,
        /// Where the step stands.
        is: StepStatus,
    },
    /// The event says that it is another attempt.
    #[error("the step is in attempt {is}, not {said}")]
    Attempt {
        /// What the event says.
        said: u32,
        /// The attempt that the step is in.
        is: u32,
    },
}

impl FailReason {
    /// The move that it is.
    pub const fn cause(&self) -> StepCause {
        match self {
            FailReason::ByHand(_) => StepCause::FailByHand,
            FailReason::Stalled => StepCause::FailByPolicy,
            FailReason::AttemptsUsedUp => StepCause::UseUp,
            FailReason::Rejected(_) => StepCause::Reject,
        }
    }
}

/// What a step's instructions become when a person wants it changed: a rule, then their words.
fn with_feedback(instructions: &str, feedback: &str) -> String {
    format!("{instructions}{FEEDBACK}{feedback}")
}

impl Work {
    /// A sign of life. A clock that was set back must not take an earlier one away.
    fn alive_at(&mut self, at: Timestamp) {
        self.last_progress_at = self.last_progress_at.max(Some(at));
    }
}

impl Step {
    /// Makes the change, where the event is about this step.
    pub fn apply(&mut self, event: &Event, at: Timestamp) -> Result<(), StepMisfit> {
        if let Event::PlanStalled { stalls } = event {
            let own = stalls.iter().find(|stall| stall.step == self.id());
            return own.map_or(Ok(()), |stall| self.marked(stall, at));
        }
        if event.step() != Some(self.id()) {
            return Ok(());
        }
        match event {
            Event::StepStarted { claim, .. } => self.started(claim, at)?,
            Event::StepCompleted { from, result, .. } => {
                let cause = match from {
                    StepStatus::AwaitingInput => StepCause::Approve,
                    StepStatus::Pending
                    | StepStatus::InProgress
                    | StepStatus::Completed
                    | StepStatus::Skipped
                    | StepStatus::Failed => StepCause::Complete,
                };
                let work = self.leave(*from, cause)?;
                self.state = StepState::Completed {
                    claim: work.claim,
                    started_at: work.started_at,
                    ended_at: at,
                    result: result.clone(),
                };
            }
            Event::StepFailed { from, reason, .. } => {
                self.moved(*from, reason.cause())?;
                let claim = self.claim().cloned();
                self.state = StepState::Failed {
                    reason: reason.clone(),
                    claim,
                    ended_at: at,
                };
            }
            Event::StepSkipped { from, by, .. } => {
                let cause = match by {
                    super::SkipCause::Branch(_) => StepCause::PassOver,
                    super::SkipCause::Review(_) => StepCause::Skip,
                };
                self.moved(*from, cause)?;
                let claim = self.claim().cloned();
                self.state = StepState::Skipped {
                    by: *by,
                    claim,
                    ended_at: at,
                };
            }
            Event::StepRequeued { attempt, .. } => {
                let work = self.leave(StepStatus::InProgress, StepCause::HandBack)?;
                self.superseded.push(work.claim.token);
                self.state = StepState::Pending { attempt: *attempt };
            }
            Event::StepProgressed { .. } => {
                self.progressed(at)?;
            }
            Event::FeedbackDelivered { .. } => self.progressed(at)?.undelivered = false,
            Event::UserReviewed { review, action, .. } => self.reviewed(*review, action, at)?,
            Event::PlanModified {
                change: Change::InstructionsUpdated { instructions, .. },
                ..
            } => {
                self.spec.instructions.clone_from(instructions);
            }
            Event::PlanModified { .. }
            | Event::BranchTaken { .. }
            | Event::SessionResumed { .. }
            | Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::PlanStalled { .. }
            | Event::PlanResumed { .. }
            | Event::PlanCompleted
            | Event::PlanFailed { .. }
            | Event::LateResultKept { .. } => return Ok(()),
        }
        self.updated_at = at;
        Ok(())
    }

    fn started(&mut self, claim: &Claim, at: Timestamp) -> Result<(), StepMisfit> {
        self.moved(StepStatus::Pending, StepCause::Claim)?;
        if claim.attempt != self.attempt() {
            return Err(StepMisfit::Attempt {
                said: claim.attempt,
                is: self.attempt(),
            });
        }
        self.state = StepState::InProgress(Work {
            claim: claim.clone(),
            started_at: at,
            last_progress_at: None,
            stall_marked: None,
            undelivered: false,
        });
        Ok(())
    }

    /// A sign of life, and the work that it is a sign of.
    fn progressed(&mut self, at: Timestamp) -> Result<&mut Work, StepMisfit> {
        let is = self.status();
        let StepState::InProgress(work) = &mut self.state else {
            return Err(StepMisfit::From {
                said: StepStatus::InProgress,
                is,
            });
        };
        work.alive_at(at);
        Ok(work)
    }

    fn reviewed(
        &mut self,
        review: ReviewId,
        action: &ReviewAction,
        at: Timestamp,
    ) -> Result<(), StepMisfit> {
        match action {
            ReviewAction::Requested {
                summary, questions, ..
            } => {
                let work = self.leave(StepStatus::InProgress, StepCause::AskReview)?;
                self.state = StepState::AwaitingInput {
                    work,
                    review: Review {
                        id: review,
                        summary: summary.clone(),
                        questions: questions.clone(),
                        requested_at: at,
                    },
                };
            }
            ReviewAction::Decided {
                decision: Decision::Modify,
                feedback,
            } => {
                let mut work = self.leave(StepStatus::AwaitingInput, StepCause::Revise)?;
                // A decision is a sign of life: no clock ran while the person thought.
                work.alive_at(at);
                work.undelivered = true;
                self.state = StepState::InProgress(work);
                let feedback = feedback.as_deref().unwrap_or_default();
                self.spec.instructions = with_feedback(&self.spec.instructions, feedback);
            }
            // What becomes of the step follows as an event of its own.
            ReviewAction::Decided {
                decision: Decision::Approve | Decision::Reject | Decision::Skip,
                ..
            } => {
                self.leave(StepStatus::AwaitingInput, StepCause::Approve)?;
            }
        }
        Ok(())
    }

    fn marked(&mut self, stall: &Stall, at: Timestamp) -> Result<(), StepMisfit> {
        let is = self.status();
        let StepState::InProgress(work) = &mut self.state else {
            return Err(StepMisfit::From {
                said: StepStatus::InProgress,
                is,
            });
        };
        if stall.attempt != work.claim.attempt {
            return Err(StepMisfit::Attempt {
                said: stall.attempt,
                is: work.claim.attempt,
            });
        }
        work.stall_marked = Some(stall.since);
        self.updated_at = at;
        Ok(())
    }

    /// The move is legal, and starts where the step stands.
    fn moved(&self, said: StepStatus, cause: StepCause) -> Result<(), StepMisfit> {
        let is = self.status();
        if said != is {
            return Err(StepMisfit::From { said, is });
        }
        is.after(cause)?;
        Ok(())
    }

    /// The same, and the work that the step was in.
    fn leave(&self, said: StepStatus, cause: StepCause) -> Result<Work, StepMisfit> {
        self.moved(said, cause)?;
        match &self.state {
            StepState::InProgress(work) | StepState::AwaitingInput { work, .. } => Ok(work.clone()),
            StepState::Pending { .. }
            | StepState::Completed { .. }
            | StepState::Skipped { .. }
            | StepState::Failed { .. } => Err(StepMisfit::Illegal(IllegalStepMove {
                from: self.status(),
                asked: cause,
            })),
        }
    }
}
