//! How an event changes a plan's head.
//!
//! Total: every event is either applied, or answered with the illegal move that it would be. The
//! steps are not needed: an event says where its step stood.

use super::{IllegalPlanMove, PlanCause, PlanHead, PlanState, PlanStatus};
use crate::branch::Effect;
use crate::event::{Change, Created, Decision, Event, ReviewAction};
use crate::id::{ReviewId, SessionId, StepId};
use crate::progress::Counts;
use crate::step::StepStatus;
use crate::time::Timestamp;

impl PlanHead {
    /// The head of a plan that has just come into being. That was its first event.
    pub fn created(created: &Created) -> Self {
        Self {
            id: created.plan,
            state: PlanState::Planning,
            counts: created
                .steps
                .iter()
                .map(|_| StepStatus::Pending)
                .collect::<Counts>(),
            seq: 1,
            stall_threshold: created.stall_threshold,
            on_stall: created.on_stall,
            last_session: created.session.clone(),
        }
    }

    /// Makes the change. Where the law of the plans forbids it, nothing is changed.
    pub fn apply(&mut self, event: &Event, at: Timestamp) -> Result<(), IllegalPlanMove> {
        match event {
            Event::PlanModified { change, .. } => self.modified(change)?,
            Event::StepStarted { claim, .. } => {
                self.begin()?;
                self.counts
                    .shift(StepStatus::Pending, StepStatus::InProgress);
                self.worked_on_by(claim.session.as_ref());
            }
            Event::StepCompleted { from, session, .. } => {
                self.open()?;
                self.counts.shift(*from, StepStatus::Completed);
                self.worked_on_by(session.as_ref());
            }
            Event::StepFailed { from, .. } => {
                self.open()?;
                if self.status() == PlanStatus::Planning {
                    self.begin()?;
                }
                self.counts.shift(*from, StepStatus::Failed);
            }
            Event::StepSkipped { from, .. } => {
                self.open()?;
                self.counts.shift(*from, StepStatus::Skipped);
            }
            Event::StepRequeued { .. } => {
                self.open()?;
                self.counts
                    .shift(StepStatus::InProgress, StepStatus::Pending);
            }
            Event::StepProgressed { session, .. } | Event::FeedbackDelivered { session, .. } => {
                self.open()?;
                self.worked_on_by(session.as_ref());
            }
            Event::BranchTaken { effect, .. } => {
                self.open()?;
                if let Effect::Added { steps } = effect {
                    self.add_pending(steps.len());
                }
            }
            Event::UserReviewed {
                step,
                review,
                action,
            } => self.reviewed(*step, *review, action)?,
            Event::PlanStalled { .. } => {
                self.status().after(PlanCause::Stall)?;
                self.state = PlanState::Stalled { marked_at: at };
            }
            Event::PlanResumed { .. } => {
                self.status().after(PlanCause::Resume)?;
                self.state = PlanState::Executing;
            }
            Event::PlanCompleted => {
                self.status().after(PlanCause::Finish)?;
                if self.counts.derived_status() != PlanStatus::Completed {
                    let (from, asked) = (self.status(), PlanCause::Finish);
                    return Err(IllegalPlanMove { from, asked });
                }
                self.state = PlanState::Completed { ended_at: at };
            }
            Event::PlanFailed { reason } => {
                self.status().after(reason.cause())?;
                self.state = PlanState::Failed {
                    reason: reason.clone(),
                    ended_at: at,
                };
            }
            Event::SessionResumed { .. } => self.open()?,
            Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::LateResultKept { .. } => {}
        }
        self.seq = self.seq.saturating_add(1);
        Ok(())
    }

    fn modified(&mut self, change: &Change) -> Result<(), IllegalPlanMove> {
        self.open()?;
        match change {
            Change::StepsAdded { steps, .. } => self.add_pending(steps.len()),
            Change::StepRemoved { .. } => self.counts.take(StepStatus::Pending),
            Change::Created(_)
            | Change::StepsReordered { .. }
            | Change::InstructionsUpdated { .. }
            | Change::StepFailed { .. }
            | Change::StepRequeued { .. }
            | Change::BranchAdded { .. } => {}
        }
        Ok(())
    }

    fn reviewed(
        &mut self,
        step: StepId,
        review: ReviewId,
        action: &ReviewAction,
    ) -> Result<(), IllegalPlanMove> {
        match action {
            ReviewAction::Requested { session, .. } => {
                self.status().after(PlanCause::AskReview)?;
                self.state = PlanState::AwaitingReview { step, review };
                self.counts
                    .shift(StepStatus::InProgress, StepStatus::AwaitingInput);
                self.worked_on_by(session.as_ref());
            }
            ReviewAction::Decided { decision, .. } => match decision {
                Decision::Approve | Decision::Skip => {
                    self.status().after(PlanCause::Decide)?;
                    self.state = PlanState::Executing;
                }
                Decision::Modify => {
                    self.status().after(PlanCause::Decide)?;
                    self.state = PlanState::Executing;
                    self.counts
                        .shift(StepStatus::AwaitingInput, StepStatus::InProgress);
                }
                // The plan's own failure follows.
                Decision::Reject => {
                    self.status().after(PlanCause::Reject)?;
                }
            },
        }
        Ok(())
    }

    /// A step is taken on: that begins a plan, and needs one that is under way. While another step
    /// awaits a person, an agent may still come back to a step that it had.
    fn begin(&mut self) -> Result<(), IllegalPlanMove> {
        match self.status() {
            PlanStatus::Executing | PlanStatus::AwaitingReview => Ok(()),
            PlanStatus::Planning
            | PlanStatus::Stalled
            | PlanStatus::Completed
            | PlanStatus::Failed => {
                self.status().after(PlanCause::Begin)?;
                self.state = PlanState::Executing;
                Ok(())
            }
        }
    }

    /// A plan that is over changes no more.
    fn open(&self) -> Result<(), IllegalPlanMove> {
        let from = self.status();
        if from.is_terminal() {
            Err(IllegalPlanMove {
                from,
                asked: PlanCause::Begin,
            })
        } else {
            Ok(())
        }
    }

    fn add_pending(&mut self, steps: usize) {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.counts.pending = self.counts.pending.saturating_add(steps);
    }

    fn worked_on_by(&mut self, session: Option<&SessionId>) {
        if let Some(session) = session {
            self.last_session = Some(session.clone());
        }
    }
}
