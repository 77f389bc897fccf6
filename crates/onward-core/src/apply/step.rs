//! Applies events to a step.
//!
//! An event is either applied or rejected; a rejected event changes nothing. An event about another
//! step, or about no step, changes nothing.

use crate::event::{
    Change, Decision, Event, ProgressSource, RequeueReason, ReviewAction, Successor,
};
use crate::id::{ArtifactId, ReviewId, StepId};
use crate::policy::CLOCK_TOLERANCE;
use crate::stall::Stall;
use crate::step::{
    Claim, FEEDBACK, IllegalStepTransition, NewStep, Review, ReviewScope, SkipCause, Step,
    StepCause, StepState, StepStatus, Undelivered, Work,
};
use crate::time::Timestamp;

/// An event that cannot be applied to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StepApplyError {
    /// The transition is not in the transition table.
    #[error(transparent)]
    IllegalTransition(#[from] IllegalStepTransition),
    /// The event expects another status.
    #[error("the event expects the step to be `{expected}`, but it is `{actual}`")]
    WrongStatus {
        /// The status in the event.
        expected: StepStatus,
        /// The step's status.
        actual: StepStatus,
    },
    /// The event expects another attempt.
    #[error("the event expects attempt {expected}, but the step is in attempt {actual}")]
    WrongAttempt {
        /// The attempt number in the event.
        expected: u32,
        /// The step's attempt number.
        actual: u32,
    },
}

/// The part of a step that an event changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepChange {
    /// Nothing.
    None,
    /// The state.
    State,
    /// The definition, and possibly the state.
    Definition,
}

/// Appends a reviewer's feedback to a step's instructions.
fn with_feedback(instructions: &str, feedback: &str) -> String {
    format!("{instructions}{FEEDBACK}{feedback}")
}

impl Work {
    /// Records activity. If the clock is set back a little, the later time is kept. Times that are far
    /// ahead of the activity were written by a wrong clock: they would postpone the stall of the step
    /// by the error of that clock.
    fn record_progress(&mut self, at: Timestamp) {
        let is_wrong = |earlier: Timestamp| earlier.since(at) > CLOCK_TOLERANCE;
        if is_wrong(self.started_at) {
            self.started_at = at;
        }
        self.last_progress_at = match self.last_progress_at {
            Some(last) if !is_wrong(last) => Some(last.max(at)),
            Some(_) | None => Some(at),
        };
    }
}

/// Whether the event may change several steps. Any other one changes at most [`Event::step`].
pub(crate) fn changes_many(event: &Event) -> bool {
    matches!(
        event,
        Event::PlanStalled { .. }
            | Event::PlanModified {
                change: Change::StepRedone { .. },
                ..
            }
    )
}

impl Step {
    /// Applies the event if it is about this step.
    pub fn apply(&mut self, event: &Event, at: Timestamp) -> Result<StepChange, StepApplyError> {
        if let Event::PlanStalled { stalls } = event {
            let own = stalls.iter().find(|stall| stall.step == self.id());
            return own.map_or(Ok(StepChange::None), |stall| {
                self.apply_stall_mark(stall, at)
            });
        }
        if let Event::PlanModified {
            change: Change::StepRedone { successors, .. },
            ..
        } = event
        {
            return Ok(self.apply_redo(successors, at));
        }
        if event.step() != Some(self.id()) {
            return Ok(StepChange::None);
        }
        let mut change = StepChange::State;
        match event {
            Event::StepStarted { claim, .. } => self.apply_start(claim, at)?,
            Event::StepCompleted { from, result, .. } => {
                let cause = match from {
                    StepStatus::AwaitingInput => StepCause::Approve,
                    StepStatus::Pending
                    | StepStatus::InProgress
                    | StepStatus::Completed
                    | StepStatus::Skipped
                    | StepStatus::Failed => StepCause::Complete,
                };
                let work = self.take_work(*from, cause)?;
                self.state = StepState::Completed {
                    claim: work.claim,
                    started_at: work.started_at,
                    ended_at: at,
                    result: result.clone(),
                };
            }
            Event::StepFailed { from, reason, .. } => {
                self.check_transition(*from, reason.cause())?;
                let claim = self.claim().cloned();
                self.state = StepState::Failed {
                    reason: reason.clone(),
                    claim,
                    ended_at: at,
                };
            }
            Event::StepSkipped { from, by, .. } => {
                let cause = match by {
                    SkipCause::Branch(_) => StepCause::BranchSkip,
                    SkipCause::Review(_) => StepCause::ReviewSkip,
                    SkipCause::Person => StepCause::SkipManually,
                };
                self.check_transition(*from, cause)?;
                let claim = self.claim().cloned();
                self.state = StepState::Skipped {
                    by: *by,
                    claim,
                    ended_at: at,
                };
            }
            Event::StepRequeued {
                attempt,
                reason: RequeueReason::Approved,
                ..
            } => {
                self.check_transition(StepStatus::AwaitingInput, StepCause::ApproveStart)?;
                self.check_attempt(*attempt)?;
                self.state = StepState::Pending { attempt: *attempt };
            }
            Event::StepRequeued { attempt, .. } => {
                let work = self.take_work(StepStatus::InProgress, StepCause::Requeue)?;
                self.superseded.push(work.claim.token);
                self.state = StepState::Pending { attempt: *attempt };
            }
            Event::StepProgressed {
                source, session, ..
            } => {
                let work = self.apply_progress(at)?;
                work.monitored |= *source == ProgressSource::Seen && session.is_some();
            }
            Event::FeedbackDelivered { .. } => self.apply_progress(at)?.undelivered = None,
            Event::StepOrphaned { .. } => self.apply_orphaned(at)?,
            Event::UserReviewed { review, action, .. } => {
                change = self.apply_review(*review, action, at)?;
            }
            Event::PlanModified {
                change: Change::InstructionsUpdated { instructions, .. },
                ..
            } => {
                self.spec.instructions.clone_from(instructions);
                if let StepState::InProgress(work) = &mut self.state {
                    work.undelivered.get_or_insert(Undelivered::Instructions);
                }
                change = StepChange::Definition;
            }
            Event::PlanModified {
                change:
                    Change::StepRenamed {
                        title,
                        instructions,
                        ..
                    },
                ..
            } => {
                self.spec.title = Some(title.clone());
                self.spec.instructions.clone_from(instructions);
                change = StepChange::Definition;
            }
            Event::PlanModified {
                change: Change::StepUpdated { step },
                ..
            } => {
                let (expected, actual) = (StepStatus::Pending, self.status());
                if expected != actual {
                    return Err(StepApplyError::WrongStatus { expected, actual });
                }
                self.spec = NewStep::clone(step);
                change = StepChange::Definition;
            }
            Event::PlanModified { .. }
            | Event::BranchTaken { .. }
            | Event::SessionResumed { .. }
            | Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::BudgetExhausted { .. }
            | Event::PlanStalled { .. }
            | Event::PlanResumed { .. }
            | Event::PlanCompleted
            | Event::PlanFailed { .. }
            | Event::PlanStatusChanged { .. } => return Ok(StepChange::None),
            Event::LateResultKept {
                artifact, attempt, ..
            } => return Ok(self.apply_kept(*artifact, *attempt)),
        }
        self.updated_at = at;
        Ok(change)
    }

    /// A superseded step is marked and otherwise unchanged. A pending step that depended on a
    /// superseded one depends on its successor.
    fn apply_redo(&mut self, successors: &[Successor], at: Timestamp) -> StepChange {
        let successor_of = |id: StepId| {
            let successor = successors.iter();
            let mut successor = successor.filter(|next| next.step.supersedes == Some(id));
            successor.next().map(|successor| successor.step.id)
        };
        if let Some(successor) = successor_of(self.id()) {
            self.superseded_by = Some(successor);
            return StepChange::State;
        }
        if self.status() != StepStatus::Pending {
            return StepChange::None;
        }
        let mut change = StepChange::None;
        for needed in &mut self.spec.depends_on {
            if let Some(successor) = successor_of(*needed) {
                *needed = successor;
                self.updated_at = at;
                change = StepChange::State;
            }
        }
        change
    }

    /// Stores a reference to the artifact of an invalid result, if its attempt is still the current
    /// one. This is not activity: `updated_at` does not change.
    fn apply_kept(&mut self, artifact: ArtifactId, attempt: Option<u32>) -> StepChange {
        match &mut self.state {
            StepState::InProgress(work)
            | StepState::AwaitingInput {
                work: Some(work), ..
            } if Some(work.claim.attempt) == attempt => {
                work.kept = Some(artifact);
                StepChange::State
            }
            StepState::InProgress(_)
            | StepState::AwaitingInput { .. }
            | StepState::Pending { .. }
            | StepState::Completed { .. }
            | StepState::Skipped { .. }
            | StepState::Failed { .. } => StepChange::None,
        }
    }

    fn apply_start(&mut self, claim: &Claim, at: Timestamp) -> Result<(), StepApplyError> {
        self.check_transition(StepStatus::Pending, StepCause::Claim)?;
        self.check_attempt(claim.attempt)?;
        self.state = StepState::InProgress(Work {
            claim: claim.clone(),
            started_at: at,
            last_progress_at: None,
            monitored: false,
            stall_marked: None,
            orphaned_at: None,
            undelivered: None,
            kept: None,
        });
        Ok(())
    }

    /// Records activity and returns the work.
    fn apply_progress(&mut self, at: Timestamp) -> Result<&mut Work, StepApplyError> {
        let actual = self.status();
        let StepState::InProgress(work) = &mut self.state else {
            return Err(StepApplyError::WrongStatus {
                expected: StepStatus::InProgress,
                actual,
            });
        };
        work.record_progress(at);
        work.orphaned_at = None;
        Ok(work)
    }

    fn apply_orphaned(&mut self, at: Timestamp) -> Result<(), StepApplyError> {
        let (expected, actual) = (StepStatus::InProgress, self.status());
        match &mut self.state {
            StepState::InProgress(work)
            | StepState::AwaitingInput {
                work: Some(work), ..
            } => {
                work.orphaned_at = Some(at);
                Ok(())
            }
            StepState::AwaitingInput { work: None, .. }
            | StepState::Pending { .. }
            | StepState::Completed { .. }
            | StepState::Skipped { .. }
            | StepState::Failed { .. } => Err(StepApplyError::WrongStatus { expected, actual }),
        }
    }

    fn apply_review(
        &mut self,
        review: ReviewId,
        action: &ReviewAction,
        at: Timestamp,
    ) -> Result<StepChange, StepApplyError> {
        match action {
            ReviewAction::Requested {
                summary,
                questions,
                session,
                scope,
                by,
                result,
                options,
            } => {
                let work = match scope {
                    ReviewScope::Plan | ReviewScope::Step => {
                        let work = self.take_work(StepStatus::InProgress, StepCause::RequestReview);
                        // A request for a review is activity, like a progress report.
                        let orphaned_at = None;
                        Some(Work {
                            orphaned_at,
                            ..work?
                        })
                    }
                    ReviewScope::Start => {
                        self.check_transition(StepStatus::Pending, StepCause::RequestApproval)?;
                        None
                    }
                };
                self.state = StepState::AwaitingInput {
                    work,
                    review: Review {
                        id: review,
                        summary: summary.clone(),
                        questions: questions.clone(),
                        requested_at: at,
                        scope: *scope,
                        by: *by,
                        session: session.clone(),
                        result: result.clone(),
                        options: options.clone(),
                    },
                };
            }
            ReviewAction::Decided {
                decision: Decision::Modify,
                feedback,
                ..
            } => {
                let mut work = self.take_work(StepStatus::AwaitingInput, StepCause::Revise)?;
                // The decision counts as activity: the review time must not count towards the
                // threshold.
                work.record_progress(at);
                work.undelivered = Some(Undelivered::Feedback);
                self.state = StepState::InProgress(work);
                let feedback = feedback.as_deref().unwrap_or_default();
                self.spec.instructions = with_feedback(&self.spec.instructions, feedback);
                return Ok(StepChange::Definition);
            }
            // A separate event changes the step.
            ReviewAction::Decided {
                decision: Decision::Approve | Decision::Reject | Decision::Skip,
                ..
            } => self.check_transition(StepStatus::AwaitingInput, StepCause::Approve)?,
        }
        Ok(StepChange::State)
    }

    fn apply_stall_mark(
        &mut self,
        stall: &Stall,
        at: Timestamp,
    ) -> Result<StepChange, StepApplyError> {
        let actual = self.status();
        let StepState::InProgress(work) = &mut self.state else {
            return Err(StepApplyError::WrongStatus {
                expected: StepStatus::InProgress,
                actual,
            });
        };
        if stall.attempt != work.claim.attempt {
            return Err(StepApplyError::WrongAttempt {
                expected: stall.attempt,
                actual: work.claim.attempt,
            });
        }
        work.stall_marked = Some(stall.since);
        self.updated_at = at;
        Ok(StepChange::State)
    }

    /// Checks that the event's status is the step's and that the transition is legal.
    fn check_transition(
        &self,
        expected: StepStatus,
        cause: StepCause,
    ) -> Result<(), StepApplyError> {
        let actual = self.status();
        if expected != actual {
            return Err(StepApplyError::WrongStatus { expected, actual });
        }
        actual.after(cause)?;
        Ok(())
    }

    /// Checks that the event's attempt is the step's.
    fn check_attempt(&self, expected: u32) -> Result<(), StepApplyError> {
        let actual = self.attempt();
        if expected == actual {
            Ok(())
        } else {
            Err(StepApplyError::WrongAttempt { expected, actual })
        }
    }

    /// As [`check_transition`](Self::check_transition), and returns the work.
    fn take_work(&self, expected: StepStatus, cause: StepCause) -> Result<Work, StepApplyError> {
        self.check_transition(expected, cause)?;
        let from = self.status();
        let work = self.claimed_work().cloned();
        work.ok_or(StepApplyError::IllegalTransition(IllegalStepTransition {
            from,
            cause,
        }))
    }
}
