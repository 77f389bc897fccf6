//! Submission of a result: token check, repeated submissions, and branches.

use std::sync::Arc;

use onward_core::branch::{Action, BranchVerdict, Effect, NoEffect};
use onward_core::id::{BranchId, ClaimToken, ReviewId};
use onward_core::plan::PlanFailure;
use onward_core::step::{Review, ReviewBy, ReviewScope, SkipCause, StepResult};
use onward_core::{Code, Json, PlanStatus, StepStatus};
use onward_engine::next_step::NextStep;
use onward_engine::submit::{Submission, SubmitResponse};

use super::next::can_claim;
use super::step::UNKNOWN_TOKEN;
use super::{Context, Plan, Step};
use crate::conditions::{self, ConditionInput};
use crate::response::Response;

/// Verdicts of all evaluated branches, and the taken branch.
pub(super) type BranchOutcome = (Vec<BranchVerdict>, Option<(BranchId, Effect)>);

impl Plan {
    /// Documents contain no claim tokens, so an imported plan has new ones.
    pub(crate) fn forget_tokens(&mut self) {
        for step in &mut self.steps {
            for claim in &mut step.claims {
                claim.token = None;
            }
            if let Some(NextStep::Started(assigned)) = &mut step.next {
                assigned.token = ClaimToken::new(UNKNOWN_TOKEN);
            }
        }
    }

    /// The copied claims refer to the same inputs, but in the other tenant.
    pub(crate) fn move_drafts(&mut self, to: &Arc<str>) {
        let claims = self.steps.iter_mut().flat_map(|step| &mut step.claims);
        for ((tenant, ..), _) in claims.filter_map(|claim| claim.draft.as_mut()) {
            *tenant = Arc::clone(to);
        }
    }

    pub(crate) fn submit(
        &mut self,
        index: usize,
        submission: &Submission,
        ctx: &Context<'_>,
    ) -> Result<SubmitResponse, Code> {
        let Submission {
            result,
            token,
            claim_next,
            ..
        } = submission;
        let token = token.as_ref();
        let step = &self.steps[index];
        let gates = step.spec.gates.clone().unwrap_or_default();
        let mut result = result.clone();
        for evidence in &mut result.evidence {
            let number = evidence.criterion.parse().unwrap_or(0_usize);
            let named = gates.acceptance_criteria.get(number.wrapping_sub(1));
            if let Some(text) = named {
                evidence.criterion.clone_from(text);
            }
        }
        let result = &result;
        let same_claim =
            token.is_none() || step.current_claim().and_then(|claim| claim.token.as_ref()) == token;
        if step.status == StepStatus::Completed
            && same_claim
            && step.result.as_ref() == Some(result)
        {
            return Ok(self.repeat_response(index, *claim_next, ctx));
        }
        let under_review = step.review.as_ref().filter(|_| same_claim);
        if let Some(review) = under_review
            && review.result.as_deref() == Some(result)
        {
            return Ok(self.review_response(index));
        }
        let answers = |criterion: &String| {
            let mut evidence = result.evidence.iter();
            evidence.any(|evidence| evidence.criterion == *criterion)
        };
        let verdict = |data: &Json| Some(data.parse()?.get("verdict")?.is_string());
        let matches_schema =
            gates.result_schema.is_none() || result.data.as_ref().and_then(verdict) == Some(true);
        if !gates.acceptance_criteria.iter().all(answers)
            || !matches_schema
            || result.summary.trim().is_empty()
            || result
                .confidence
                .is_some_and(|confidence| !(0.0..=1.0).contains(&confidence))
            || result.data.as_ref().is_some_and(|data| !data.is_object())
        {
            return Err(Code::InvalidInput);
        }
        self.check_token(index, token)?;
        let session = self.steps[index].calling_session(token, ctx.session);
        let reported = ctx.session;
        let ctx = &Context {
            session: session.as_ref(),
            ..*ctx
        };
        if self.has_ended() {
            return Err(Code::PlanIsTerminal);
        }
        if self.status == PlanStatus::Stalled {
            self.resume("late_result", ctx);
        }
        let step = &self.steps[index];
        match step.status {
            StepStatus::Pending => {
                if self.status == PlanStatus::AwaitingReview && !step.had_token(token) {
                    return Err(Code::IllegalTransition);
                }
                if self.is_blocked(step) {
                    return Err(Code::DependenciesOpen);
                }
                self.claim(index, token.cloned(), ctx);
            }
            StepStatus::InProgress => {}
            _ => return Err(Code::IllegalTransition),
        }
        let id = self.steps[index].id();
        let changed = self.deliver_changes(index, token, reported, ctx);
        if let Some(by) = gates.review_by {
            self.open_review(index, result, by, ctx);
            let mut response = self.review_response(index);
            response.changed_instructions = changed;
            if *claim_next {
                let labels = self.steps[index].spec.labels.clone();
                response.next_step = Some(self.next(false, Some(&labels), ctx));
                response.plan_status = self.status;
            }
            return Ok(response);
        }
        self.complete(index, result.clone(), ctx);
        let index = self.index_of(id).expect("completed step exists");
        let response = self.steps[index].response.as_mut();
        response
            .expect("completed step has a response")
            .changed_instructions = changed;
        if !*claim_next {
            return Ok(self.stored_response(index));
        }
        let labels = self.steps[index].spec.labels.clone();
        let next = self.next(false, Some(&labels), ctx);
        let index = self.index_of(id).expect("completed step exists");
        let status = self.status;
        let step = &mut self.steps[index];
        step.next = Some(next.clone());
        step.response
            .as_mut()
            .expect("completed step has a response")
            .plan_status = status;
        let mut response = self.stored_response(index);
        response.next_step = Some(next);
        Ok(response)
    }

    /// The result waits for its review.
    fn open_review(&mut self, index: usize, result: &StepResult, by: ReviewBy, ctx: &Context<'_>) {
        let review = ctx.actual.and_then(Response::review);
        let step = &mut self.steps[index];
        step.status = StepStatus::AwaitingInput;
        step.review = Some(Review {
            id: review.unwrap_or(ReviewId::from_u128(0)),
            summary: result.summary.clone(),
            questions: Vec::new(),
            requested_at: ctx.now,
            scope: ReviewScope::Step,
            options: Default::default(),
            by: Some(by),
            session: ctx.session.cloned(),
            result: Some(Arc::new(result.clone())),
        });
        let id = step.id();
        self.record("user_reviewed", Some("review_requested"), Some(id), ctx);
        self.set_last_session(ctx);
        self.check_budget(false, ctx);
    }

    fn review_response(&self, index: usize) -> SubmitResponse {
        let step = &self.steps[index];
        SubmitResponse {
            step: step.id(),
            step_status: step.status,
            review: step.review.as_ref().map(|review| review.id),
            plan: self.id,
            plan_status: self.status,
            progress: self.progress_percent(),
            verdicts: Vec::new(),
            taken_branch: None,
            changed_instructions: None,
            next_step: None,
        }
    }

    /// Accepts the current token, no token, or a token of a released claim for a pending step.
    pub(crate) fn check_token(&self, index: usize, token: Option<&ClaimToken>) -> Result<(), Code> {
        let step = &self.steps[index];
        let current = step.current_claim().and_then(|claim| claim.token.as_ref());
        match step.status {
            StepStatus::Pending if token.is_none() || step.had_token(token) => Ok(()),
            StepStatus::Pending => Err(Code::ClaimSuperseded),
            _ if token.is_none() || (current.is_some() && current == token) => Ok(()),
            _ => Err(Code::ClaimSuperseded),
        }
    }

    fn stored_response(&self, index: usize) -> SubmitResponse {
        self.steps[index]
            .response
            .clone()
            .expect("completed step has a response")
    }

    /// The response of the first submission, with the same next step. Nothing is claimed: there is
    /// no next step if the first submission did not request it and one was ready.
    fn repeat_response(&self, index: usize, claim_next: bool, ctx: &Context<'_>) -> SubmitResponse {
        let mut response = self.stored_response(index);
        if !claim_next {
            return response;
        }
        response.next_step = self.steps[index].next.clone();
        if let Some(NextStep::Started(assigned)) = &mut response.next_step {
            assigned.token = self.issued_token(assigned, ctx);
        }
        response
    }

    /// The token of an assigned step, even if its response was lost.
    fn issued_token(
        &self,
        assigned: &onward_engine::next_step::AssignedStep,
        ctx: &Context<'_>,
    ) -> ClaimToken {
        if assigned.token.as_str() != UNKNOWN_TOKEN {
            return assigned.token.clone();
        }
        let attempt = usize::try_from(assigned.attempt).expect("attempt fits usize");
        let step = self.index_of(assigned.step).map(|index| &self.steps[index]);
        let claim = step.and_then(|step| step.claims.get(attempt - 1));
        let stored = claim.and_then(|claim| claim.token.clone());
        stored
            .or(ctx.actual.and_then(Response::token).cloned())
            .unwrap_or(assigned.token.clone())
    }

    /// Completes the step and takes the first branch whose condition is true.
    pub(super) fn complete(&mut self, index: usize, result: StepResult, ctx: &Context<'_>) {
        let step = &mut self.steps[index];
        let id = step.id();
        step.status = StepStatus::Completed;
        step.ended_at = Some(ctx.now);
        step.review = None;
        step.result = Some(result);
        self.record("step_completed", None, Some(id), ctx);
        self.set_last_session(ctx);
        let (verdicts, taken) = self.evaluate_branches(index, ctx);
        if self.status != PlanStatus::Failed {
            self.complete_if_done(ctx);
        }
        let response = SubmitResponse {
            step: id,
            step_status: StepStatus::Completed,
            review: None,
            plan: self.id,
            plan_status: self.status,
            progress: self.progress_percent(),
            verdicts,
            taken_branch: taken,
            changed_instructions: None,
            next_step: None,
        };
        // The caller offers the labels of the step that it completed.
        let labels = self
            .index_of(id)
            .map(|index| &*self.steps[index].spec.labels);
        let is_ready = |step: &Step| {
            let is_open = step.status == StepStatus::Pending && !self.is_blocked(step);
            is_open && can_claim(labels, step)
        };
        let is_exhausted = self.exhausted(ctx.now).is_some();
        let assigns = self.status == PlanStatus::Executing
            && !is_exhausted
            && self.steps.iter().any(is_ready);
        let next = (!assigns).then(|| self.no_step_response(ctx.now));
        let index = self.index_of(id).expect("completed step exists");
        self.steps[index].response = Some(response);
        self.steps[index].next = next;
    }

    fn evaluate_branches(&mut self, index: usize, ctx: &Context<'_>) -> BranchOutcome {
        let step = &self.steps[index];
        let id = step.id();
        let input = ConditionInput {
            result: step.result.as_ref().expect("completed step has a result"),
            order: self.order(index),
            step_type: step.spec.step_type.as_str(),
            attempt: step.attempt(),
            progress: self.progress_percent(),
            completed: self.count(StepStatus::Completed),
            failed: self.count(StepStatus::Failed),
            pending: self.count(StepStatus::Pending),
        };
        let mut verdicts = Vec::new();
        let mut taken = None;
        for branch in self.branches.iter().filter(|branch| branch.after == id) {
            let value = conditions::evaluate(&branch.condition, &input);
            verdicts.push(BranchVerdict {
                branch: branch.id,
                condition: branch.condition.clone(),
                matched: value == Some(true),
                error: value.is_none().then(String::new),
            });
            if value == Some(true) {
                taken = Some(branch.clone());
                break;
            }
        }
        let taken = taken.map(|branch| {
            (
                branch.id,
                self.take_branch(index, branch.id, &branch.action, ctx),
            )
        });
        (verdicts, taken)
    }

    fn take_branch(
        &mut self,
        index: usize,
        branch: BranchId,
        action: &Action,
        ctx: &Context<'_>,
    ) -> Effect {
        let id = Some(self.steps[index].id());
        let record = |plan: &mut Plan| plan.record("branch_taken", Some(action.as_str()), id, ctx);
        match action {
            Action::Continue => {
                record(self);
                Effect::Continued
            }
            Action::Fail { reason } => {
                record(self);
                self.fail(PlanFailure::Branch(reason.clone()), ctx);
                let reason = reason.clone();
                Effect::FailedPlan { reason }
            }
            Action::AddSteps { steps } => {
                record(self);
                for (offset, spec) in steps.iter().enumerate() {
                    self.steps
                        .insert(index + 1 + offset, Step::new(spec.clone()));
                }
                let steps = steps.clone();
                Effect::Added { steps }
            }
            Action::SkipTo { target } => {
                record(self);
                let reason = match self.index_of(*target) {
                    None => Some(NoEffect::TargetMissing),
                    Some(target) if self.steps[target].status != StepStatus::Pending => {
                        Some(NoEffect::TargetNotPending)
                    }
                    Some(target) if target <= index => Some(NoEffect::TargetNotAfter),
                    Some(_) => None,
                };
                if let Some(reason) = reason {
                    return Effect::Nothing { reason };
                }
                let target_index = self.index_of(*target).expect("target exists");
                let mut steps = Vec::new();
                for skipped in index + 1..target_index {
                    if self.steps[skipped].status == StepStatus::Pending {
                        steps.push(self.steps[skipped].id());
                        self.skip_step(skipped, SkipCause::Branch(branch), ctx);
                    }
                }
                let target = *target;
                Effect::Skipped { target, steps }
            }
        }
    }

    pub(super) fn skip_step(&mut self, index: usize, by: SkipCause, ctx: &Context<'_>) {
        let step = &mut self.steps[index];
        step.status = StepStatus::Skipped;
        step.skipped_by = Some(by);
        step.ended_at = Some(ctx.now);
        step.review = None;
        let id = step.id();
        self.record("step_skipped", None, Some(id), ctx);
    }
}
