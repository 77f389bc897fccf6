//! Applies events to a plan's head.
//!
//! An event is either applied or rejected with the illegal transition; a rejected event changes
//! nothing. The steps are not needed: an event contains the previous status of its step.

use crate::branch::Effect;
use crate::budget::{BudgetState, Limit};
use crate::event::{Change, Created, Decision, Event, ReviewAction};
use crate::id::{ReviewId, SessionId, StepId};
use crate::plan::{
    IllegalPlanTransition, PendingReview, PlanCause, PlanHead, PlanState, PlanStatus,
};
use crate::progress::Counts;
use crate::step::StepStatus;
use crate::time::Timestamp;

impl PlanHead {
    /// The head of a plan after its first event.
    pub fn new(created: &Created) -> Self {
        Self {
            id: created.plan,
            origin: created.origin,
            state: PlanState::Planning,
            counts: created
                .steps
                .iter()
                .map(|_| StepStatus::Pending)
                .collect::<Counts>(),
            seq: 1,
            stall_threshold: created.stall_threshold,
            on_stall: created.on_stall,
            on_dependency_failure: created.on_dependency_failure,
            last_session: created.session.clone(),
            routing: created.routing.clone(),
            budget: created.budget.map(BudgetState::new),
        }
    }

    /// Applies the event. An illegal transition changes nothing.
    pub fn apply(&mut self, event: &Event, at: Timestamp) -> Result<(), IllegalPlanTransition> {
        match event {
            Event::PlanModified { change, .. } => self.apply_modification(change)?,
            Event::StepStarted { claim, .. } => {
                self.begin()?;
                self.counts
                    .shift(StepStatus::Pending, StepStatus::InProgress);
                self.set_last_session(claim.session.as_ref());
                if let Some(budget) = &mut self.budget {
                    budget.used.count(claim.attempt, at);
                }
            }
            Event::StepCompleted { from, session, .. } => {
                self.check_open()?;
                self.counts.shift(*from, StepStatus::Completed);
                self.set_last_session(session.as_ref());
            }
            Event::StepFailed { from, .. } => {
                self.check_open()?;
                if self.status() == PlanStatus::Planning {
                    self.begin()?;
                }
                self.counts.shift(*from, StepStatus::Failed);
            }
            Event::StepSkipped { from, .. } => {
                self.check_open()?;
                if self.status() == PlanStatus::Planning {
                    self.begin()?;
                }
                self.counts.shift(*from, StepStatus::Skipped);
            }
            Event::StepRequeued { reason, .. } => {
                self.check_open()?;
                self.counts
                    .shift(reason.previous_status(), StepStatus::Pending);
            }
            Event::StepProgressed { session, .. } | Event::FeedbackDelivered { session, .. } => {
                self.check_open()?;
                self.set_last_session(session.as_ref());
            }
            Event::StepOrphaned { .. } => self.check_open()?,
            Event::BranchTaken { effect, .. } => {
                self.check_open()?;
                if let Effect::Added { steps } = effect {
                    self.add_pending(steps.len());
                }
            }
            Event::UserReviewed {
                step,
                review,
                action,
            } => self.apply_review(*step, *review, action)?,
            Event::BudgetExhausted { exhausted } => {
                self.check_open()?;
                if let Some(budget) = &mut self.budget {
                    budget.exhausted = Some(*exhausted);
                    if exhausted.limit == Limit::Tokens {
                        budget.used.tokens = Some(exhausted.used);
                    }
                }
            }
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
                    let (from, cause) = (self.status(), PlanCause::Finish);
                    return Err(IllegalPlanTransition { from, cause });
                }
                self.state = PlanState::Completed { ended_at: at };
            }
            Event::PlanFailed { from, reason } => {
                let cause = reason.cause();
                self.status().after(cause)?;
                if *from != self.status() {
                    return Err(IllegalPlanTransition { from: *from, cause });
                }
                self.state = PlanState::Failed {
                    reason: reason.clone(),
                    ended_at: at,
                };
            }
            // The previous event has changed the status.
            Event::PlanStatusChanged { from, to } => {
                if *to != self.status() || !is_begin_or_review(*from, *to) {
                    let cause = PlanCause::Begin;
                    return Err(IllegalPlanTransition { from: *from, cause });
                }
            }
            Event::SessionResumed { .. } => self.check_open()?,
            Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::LateResultKept { .. } => {}
        }
        self.seq = self.seq.saturating_add(1);
        Ok(())
    }

    fn apply_modification(&mut self, change: &Change) -> Result<(), IllegalPlanTransition> {
        self.check_open()?;
        match change {
            Change::StepsAdded { steps, .. } => self.add_pending(steps.len()),
            Change::StepRemoved { .. } => self.counts.remove(StepStatus::Pending),
            Change::StepRedone { successors, .. } => {
                for successor in &**successors {
                    self.counts.supersede(successor.from);
                }
            }
            Change::PlanUpdated { routing } => self.routing.clone_from(routing),
            Change::BudgetSet { budget, used } => {
                self.budget = budget.map(|limits| BudgetState {
                    limits,
                    used: *used,
                    exhausted: None,
                });
            }
            Change::Created(_)
            | Change::StepsReordered { .. }
            | Change::InstructionsUpdated { .. }
            | Change::StepRenamed { .. }
            | Change::StepUpdated { .. }
            | Change::StepFailed { .. }
            | Change::StepSkipped { .. }
            | Change::StepRequeued { .. }
            | Change::BranchAdded { .. } => {}
        }
        Ok(())
    }

    fn apply_review(
        &mut self,
        step: StepId,
        review: ReviewId,
        action: &ReviewAction,
    ) -> Result<(), IllegalPlanTransition> {
        match action {
            ReviewAction::Requested { session, scope, .. } => {
                if scope.stops_plan() {
                    self.status().after(PlanCause::RequestReview)?;
                    self.add_review(PendingReview { step, review });
                } else {
                    self.status().after(PlanCause::RequestStepReview)?;
                }
                self.counts
                    .shift(scope.previous_status(), StepStatus::AwaitingInput);
                self.set_last_session(session.as_ref());
            }
            ReviewAction::Decided { decision, .. } => match decision {
                Decision::Approve | Decision::Skip => self.close_review(review)?,
                Decision::Modify => {
                    self.close_review(review)?;
                    self.counts
                        .shift(StepStatus::AwaitingInput, StepStatus::InProgress);
                }
                // `PlanFailed` follows as a separate event.
                Decision::Reject => {
                    self.status().after(PlanCause::Reject)?;
                }
            },
        }
        Ok(())
    }

    fn add_review(&mut self, pending: PendingReview) {
        if let PlanState::AwaitingReview { reviews } = &mut self.state {
            reviews.push(pending);
        } else {
            let reviews = vec![pending];
            self.state = PlanState::AwaitingReview { reviews };
        }
    }

    /// Removes a decided review. The plan continues after the last one that stops it.
    fn close_review(&mut self, review: ReviewId) -> Result<(), IllegalPlanTransition> {
        if let PlanState::AwaitingReview { reviews } = &mut self.state {
            let (closed, open): (Vec<_>, Vec<_>) = (reviews.iter())
                .copied()
                .partition(|pending| pending.review == review);
            if open.is_empty() {
                self.status().after(PlanCause::Decide)?;
                self.state = PlanState::Executing;
                return Ok(());
            }
            if !closed.is_empty() {
                *reviews = open;
            }
        }
        self.status().after(PlanCause::DecideOne)?;
        Ok(())
    }

    /// Starts the plan with its first claim. While another step awaits review, an agent may still
    /// reclaim a step.
    fn begin(&mut self) -> Result<(), IllegalPlanTransition> {
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

    /// Rejects changes to a terminal plan.
    fn check_open(&self) -> Result<(), IllegalPlanTransition> {
        let from = self.status();
        if from.is_terminal() {
            Err(IllegalPlanTransition {
                from,
                cause: PlanCause::Begin,
            })
        } else {
            Ok(())
        }
    }

    fn add_pending(&mut self, steps: usize) {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.counts.pending = self.counts.pending.saturating_add(steps);
    }

    fn set_last_session(&mut self, session: Option<&SessionId>) {
        if let Some(session) = session {
            self.last_session = Some(session.clone());
        }
    }
}

/// Whether a first claim, a review request or a decision changes the status in this way.
fn is_begin_or_review(from: PlanStatus, to: PlanStatus) -> bool {
    let causes = [
        PlanCause::Begin,
        PlanCause::RequestReview,
        PlanCause::Decide,
    ];
    from != to && causes.iter().any(|cause| from.after(*cause) == Ok(to))
}
