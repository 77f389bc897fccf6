//! Choice of the next step: first a step with undelivered feedback, then a stalled step if
//! requested, then the first pending step without open dependencies.

use onward_core::id::{ClaimToken, SessionId};
use onward_core::plan::PlanFailure;
use onward_core::{PlanStatus, StepStatus, Timestamp};
use onward_engine::next_step::{
    AssignedStep, FormattingNotes, NextStep, StepInProgress, Surroundings,
};

use super::step::{ClaimRecord, UNKNOWN_TOKEN};
use super::{Context, Plan, Step};
use crate::response::Response;

/// Whether a caller that offers these labels may claim the step.
pub(super) fn can_claim(offered: Option<&[String]>, step: &Step) -> bool {
    let labels = &step.spec.labels;
    offered.is_none_or(|offered| labels.iter().all(|label| offered.contains(label)))
}

impl Plan {
    /// `labels` are those that the caller offers, if not all. A session without another step receives
    /// its own again.
    pub(crate) fn next(
        &mut self,
        include_stalled: bool,
        labels: Option<&[String]>,
        ctx: &Context<'_>,
    ) -> NextStep {
        let next = self.assign(include_stalled, labels, ctx);
        let waits = matches!(
            next,
            NextStep::NoPendingSteps { .. } | NextStep::BudgetExhausted { .. }
        );
        let is_own = |step: &Step| {
            let holder = step
                .current_claim()
                .and_then(|claim| claim.session.as_ref());
            step.status == StepStatus::InProgress && holder.is_some() && holder == ctx.session
        };
        let own = waits.then(|| self.steps.iter().position(is_own)).flatten();
        let Some(index) = own else { return next };
        if self.status == PlanStatus::Stalled {
            self.resume("progress", ctx);
        }
        let id = self.steps[index].id();
        let claim = self.steps[index].current_claim_mut();
        claim.record_activity(ctx.now);
        if claim.token.is_none() {
            claim.token = ctx.actual.and_then(Response::token).cloned();
        }
        self.record("step_progressed", Some("reported"), Some(id), ctx);
        self.set_last_session(ctx);
        self.deliver_changes(index, None, ctx.session, ctx);
        NextStep::Started(Box::new(AssignedStep {
            resumed: true,
            ..self.assigned_step(index)
        }))
    }

    fn assign(
        &mut self,
        include_stalled: bool,
        labels: Option<&[String]>,
        ctx: &Context<'_>,
    ) -> NextStep {
        match self.status {
            PlanStatus::AwaitingReview | PlanStatus::Completed | PlanStatus::Failed => {}
            PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled => {
                if self.status == PlanStatus::Stalled {
                    if !self.has_step_to_assign(include_stalled, labels, ctx) {
                        return self.no_step_response(ctx.now);
                    }
                    self.resume("next_step", ctx);
                }
                if self.exhausted(ctx.now).is_some() {
                    if let Some(index) = self.deliver_feedback(include_stalled, ctx) {
                        return NextStep::Started(Box::new(self.assigned_step(index)));
                    }
                    let is_denied = self.count(StepStatus::Pending) > 0;
                    self.check_budget(is_denied, ctx);
                    return self.no_step_response(ctx.now);
                }
                if let Some(index) = self.choose_step(include_stalled, labels, ctx) {
                    return NextStep::Started(Box::new(self.assigned_step(index)));
                }
                self.complete_if_done(ctx);
            }
        }
        self.no_step_response(ctx.now)
    }

    fn has_step_to_assign(
        &self,
        include_stalled: bool,
        labels: Option<&[String]>,
        ctx: &Context<'_>,
    ) -> bool {
        let is_exhausted = self.exhausted(ctx.now).is_some();
        let mut steps = self.steps.iter().enumerate();
        steps.any(|(index, step)| match step.status {
            StepStatus::InProgress if is_exhausted => step.has_feedback_for(ctx.session),
            _ if is_exhausted => false,
            StepStatus::Pending => !self.is_blocked(step) && can_claim(labels, step),
            StepStatus::InProgress => {
                step.has_feedback_for(ctx.session)
                    || (include_stalled && self.is_stalled(index, ctx.now))
            }
            _ => false,
        })
    }

    /// Returns a step with undelivered feedback to its agent, unless the step is taken over.
    fn deliver_feedback(&mut self, include_stalled: bool, ctx: &Context<'_>) -> Option<usize> {
        let feedback_pending = |step: &Step| {
            step.status == StepStatus::InProgress && step.has_feedback_for(ctx.session)
        };
        let index = self.steps.iter().position(feedback_pending)?;
        if include_stalled && self.is_stalled(index, ctx.now) {
            return None;
        }
        self.deliver(index, ctx);
        // The response to a submission that claims its step does not contain the token.
        let claim = self.steps[index].current_claim_mut();
        if claim.token.is_none() {
            claim.token = ctx.actual.and_then(Response::token).cloned();
        }
        Some(index)
    }

    /// Assigns a step and returns its index.
    fn choose_step(
        &mut self,
        include_stalled: bool,
        labels: Option<&[String]>,
        ctx: &Context<'_>,
    ) -> Option<usize> {
        if let Some(index) = self.deliver_feedback(include_stalled, ctx) {
            return Some(index);
        }
        let stalled = |plan: &Plan, index| include_stalled && plan.is_stalled(index, ctx.now);
        for index in 0..self.steps.len() {
            if stalled(self, index) {
                self.requeue(index, "taken_over", ctx);
                if self.steps[index].status == StepStatus::Pending {
                    self.claim(index, ctx.actual.and_then(Response::token).cloned(), ctx);
                    return Some(index);
                }
            }
        }
        let mut first: Option<usize> = None;
        for (index, step) in self.steps.iter().enumerate() {
            let is_ready = step.status == StepStatus::Pending
                && !self.is_blocked(step)
                && can_claim(labels, step);
            let priority = |index: usize| self.steps[index].spec.priority;
            if is_ready && first.is_none_or(|first| step.spec.priority > priority(first)) {
                first = Some(index);
            }
        }
        let index = first?;
        self.claim(index, ctx.actual.and_then(Response::token).cloned(), ctx);
        Some(index)
    }

    /// The agent receives the step's instructions.
    pub(crate) fn deliver(&mut self, index: usize, ctx: &Context<'_>) {
        let claim = self.steps[index].current_claim_mut();
        claim.undelivered = None;
        claim.record_activity(ctx.now);
        let id = self.steps[index].id();
        self.record("step_progressed", Some("feedback_delivered"), Some(id), ctx);
        self.set_last_session(ctx);
    }

    /// Delivers changed instructions, unless another session calls without the token.
    pub(crate) fn deliver_changes(
        &mut self,
        index: usize,
        token: Option<&ClaimToken>,
        reported: Option<&SessionId>,
        ctx: &Context<'_>,
    ) -> Option<String> {
        let step = &self.steps[index];
        let claim = step.current_claim()?;
        claim.undelivered?;
        if token.is_none() && reported.is_some() && claim.session.as_ref() != reported {
            return None;
        }
        let instructions = step.spec.instructions.clone();
        self.deliver(index, ctx);
        Some(instructions)
    }

    pub(crate) fn claim(&mut self, index: usize, token: Option<ClaimToken>, ctx: &Context<'_>) {
        let begins = self.status == PlanStatus::Planning;
        let step = &mut self.steps[index];
        step.status = StepStatus::InProgress;
        step.claims.push(ClaimRecord {
            token,
            session: ctx.session.cloned(),
            started_at: ctx.now,
            last_activity: None,
            monitored: false,
            stall_marked: None,
            undelivered: None,
            draft: None,
            released: false,
        });
        let id = step.id();
        self.record("step_started", None, Some(id), ctx);
        if begins {
            self.set_status(PlanStatus::Executing, ctx);
        }
        self.set_last_session(ctx);
    }

    fn assigned_step(&self, index: usize) -> AssignedStep {
        let step = &self.steps[index];
        let claim = step.current_claim().expect("assigned step has a claim");
        AssignedStep {
            plan: self.id,
            step: step.id(),
            order: self.order(index),
            step_type: step.spec.step_type,
            title: step.spec.title.clone(),
            instructions: step.spec.instructions.clone(),
            attempt: step.attempt(),
            token: claim
                .token
                .clone()
                .unwrap_or(ClaimToken::new(UNKNOWN_TOKEN)),
            resumed: false,
            stall_threshold: step.threshold(self.threshold),
            total: self.active(),
            supersedes: step.spec.supersedes,
            progress: self.progress_percent(),
            gates: step.spec.gates.clone(),
            // Not predicted.
            surroundings: Surroundings::default(),
            dependencies: Vec::new(),
            held: Vec::new(),
        }
    }

    /// The response without an assigned step.
    pub(crate) fn no_step_response(&self, now: Timestamp) -> NextStep {
        let steps = || self.steps.iter().enumerate();
        let waits = !self.has_ended()
            && self.count(StepStatus::AwaitingInput) > 0
            && self.count(StepStatus::InProgress) == 0;
        if let Some(exhausted) = self.denied_by_budget(now) {
            return NextStep::BudgetExhausted {
                exhausted,
                in_progress: self.count(StepStatus::InProgress),
                held: Vec::new(),
            };
        }
        match self.status {
            PlanStatus::Completed => NextStep::Complete(FormattingNotes {
                // The agents run no skills.
                media_type: None,
                instructions: None,
                plan: self.brief.output_formatting_notes.clone(),
                steps: steps()
                    .filter(|(_, step)| step.superseded_by.is_none())
                    .filter_map(|(index, step)| {
                        let notes = step.result.as_ref()?.formatting_notes.clone()?;
                        Some((step.id(), self.order(index), notes))
                    })
                    .collect(),
            }),
            PlanStatus::Failed => NextStep::Failed {
                reason: self.failure.clone().unwrap_or(PlanFailure::Abandoned(None)),
            },
            PlanStatus::AwaitingReview => {
                let first = self.stopped_by.first().expect("a review stops the plan");
                let index = self.index_of(*first).expect("step under review exists");
                self.steps[index].awaiting_review()
            }
            PlanStatus::Executing | PlanStatus::Stalled if waits => {
                let awaits_input = |step: &&Step| step.status == StepStatus::AwaitingInput;
                let step = self.steps.iter().find(awaits_input);
                step.expect("a step awaits input").awaiting_review()
            }
            PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled => {
                let in_progress = steps().filter(|(_, step)| step.status == StepStatus::InProgress);
                let blocked = self.steps.iter().filter(|step| self.is_blocked(step));
                NextStep::NoPendingSteps {
                    in_progress: self.count(StepStatus::InProgress),
                    failed: self.count(StepStatus::Failed),
                    blocked: u32::try_from(blocked.count()).expect("count fits u32"),
                    working: in_progress
                        .map(|(index, step)| {
                            let claim = step.current_claim().expect("step in progress has a claim");
                            StepInProgress {
                                step: step.id(),
                                order: self.order(index),
                                elapsed: now.since(claim.inactive_since()),
                                stalled: self.is_stalled(index, now),
                                stalls_at: step.active_until(self.threshold),
                                session: claim.session.clone(),
                            }
                        })
                        .collect(),
                    held: Vec::new(),
                }
            }
        }
    }
}
