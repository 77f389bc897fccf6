//! Progress, activity and reviews of a step in progress.

use std::time::Duration;

use onward_core::event::{Decision, ProgressSource};
use onward_core::id::ReviewId;
use onward_core::plan::PlanFailure;
use onward_core::step::{FailReason, Review, SkipCause, StepResult};
use onward_core::{Code, PlanStatus, StepStatus};
use onward_engine::step::{
    OpenedReview, ProgressReport, ProgressResponse, ReviewRequest, ReviewResponse,
};

use super::{Context, Plan};
use crate::response::Response;

impl Plan {
    pub(crate) fn progress(
        &mut self,
        index: usize,
        progress: &ProgressReport,
        ctx: &Context<'_>,
    ) -> Result<ProgressResponse, Code> {
        if progress
            .percent
            .is_some_and(|percent| !(0.0..=100.0).contains(&percent))
        {
            return Err(Code::InvalidInput);
        }
        self.check_token(index, progress.token.as_ref())?;
        if self.has_ended() {
            return Err(Code::PlanIsTerminal);
        }
        if self.status == PlanStatus::Stalled {
            self.resume("progress", ctx);
        }
        self.reclaim(index, progress.token.as_ref(), ctx)?;
        self.steps[index]
            .current_claim_mut()
            .record_activity(ctx.now);
        let id = self.steps[index].id();
        self.record("step_progressed", Some("reported"), Some(id), ctx);
        self.set_last_session(ctx);
        let step = &self.steps[index];
        Ok(ProgressResponse {
            step: id,
            last_progress_at: step
                .current_claim()
                .and_then(|claim| claim.last_activity)
                .expect("activity was recorded"),
            stalls_at: step.active_until(self.threshold),
            plan_status: self.status,
        })
    }

    /// The step must be in progress, or pending and claimed again with a token of a released claim.
    fn reclaim(
        &mut self,
        index: usize,
        token: Option<&onward_core::id::ClaimToken>,
        ctx: &Context<'_>,
    ) -> Result<(), Code> {
        let step = &self.steps[index];
        match step.status {
            StepStatus::InProgress => Ok(()),
            StepStatus::Pending if step.had_token(token) => {
                self.claim(index, token.cloned(), ctx);
                Ok(())
            }
            _ => Err(Code::IllegalTransition),
        }
    }

    /// Recorded at most once per 10 seconds or quarter of the threshold, whichever is less. Never
    /// rejected.
    pub(crate) fn record_activity(
        &mut self,
        index: usize,
        source: ProgressSource,
        ctx: &Context<'_>,
    ) {
        let step = &self.steps[index];
        if self.has_ended() || step.status != StepStatus::InProgress {
            return;
        }
        let claim = step.current_claim().expect("step in progress has a claim");
        let other_session = claim.session.is_some()
            && ctx.session.is_some()
            && claim.session.as_ref() != ctx.session;
        if source == ProgressSource::Seen && other_session {
            return;
        }
        let quarter = step.threshold(self.threshold) / 4;
        let interval = quarter
            .min(Duration::from_secs(10))
            .max(Duration::from_millis(1));
        if ctx.now.since(claim.inactive_since()) < interval {
            return;
        }
        let id = step.id();
        self.steps[index]
            .current_claim_mut()
            .record_activity(ctx.now);
        self.record("step_progressed", Some(source.as_str()), Some(id), ctx);
        self.set_last_session(ctx);
    }

    pub(crate) fn request_review(
        &mut self,
        index: usize,
        review_request: &ReviewRequest,
        ctx: &Context<'_>,
    ) -> Result<OpenedReview, Code> {
        if review_request.summary.trim().is_empty() {
            return Err(Code::InvalidInput);
        }
        self.check_token(index, review_request.token.as_ref())?;
        if self.has_ended() {
            return Err(Code::PlanIsTerminal);
        }
        self.reclaim(index, review_request.token.as_ref(), ctx)?;
        if self.status != PlanStatus::Executing {
            return Err(Code::IllegalTransition);
        }
        let review = ctx.actual.and_then(Response::review);
        let review = review.unwrap_or(ReviewId::from_u128(0));
        self.status = PlanStatus::AwaitingReview;
        let step = &mut self.steps[index];
        step.status = StepStatus::AwaitingInput;
        step.review = Some(Review {
            id: review,
            summary: review_request.summary.clone(),
            questions: review_request.questions.clone(),
            requested_at: ctx.now,
        });
        let id = step.id();
        self.record("user_reviewed", Some("review_requested"), Some(id), ctx);
        self.set_last_session(ctx);
        Ok(OpenedReview {
            review,
            step: id,
            plan: self.id,
        })
    }

    pub(crate) fn decide(
        &mut self,
        index: usize,
        decision: Decision,
        feedback: Option<&str>,
        ctx: &Context<'_>,
    ) -> Result<ReviewResponse, Code> {
        if self.has_ended() {
            return Err(Code::PlanIsTerminal);
        }
        let step = &self.steps[index];
        let id = step.id();
        if step.status != StepStatus::AwaitingInput {
            return Err(Code::IllegalTransition);
        }
        let review = step.review.clone().expect("step has a review");
        let feedback = feedback.filter(|feedback| !feedback.trim().is_empty());
        if decision == Decision::Modify && feedback.is_none() {
            return Err(Code::FeedbackRequired);
        }
        self.record("user_reviewed", Some(decision.as_str()), Some(id), ctx);
        self.status = PlanStatus::Executing;
        let mut instructions = None;
        match decision {
            Decision::Approve => {
                self.complete(index, StepResult::from_summary(review.summary), ctx);
            }
            Decision::Reject => {
                let feedback = feedback.map(str::to_owned);
                self.fail_step(index, FailReason::Rejected(feedback.clone()), ctx);
                self.fail(PlanFailure::Rejected(feedback), ctx);
            }
            Decision::Skip => {
                self.skip_step(index, SkipCause::Review(review.id), ctx);
                self.complete_if_done(ctx);
            }
            Decision::Modify => {
                let step = &mut self.steps[index];
                step.status = StepStatus::InProgress;
                step.review = None;
                step.current_claim_mut().feedback_pending = true;
                step.current_claim_mut().record_activity(ctx.now);
                let feedback = feedback.expect("feedback was checked");
                let before = &step.spec.instructions;
                let after = format!("{before}\n\n---\n\nUser feedback: {feedback}");
                step.spec.instructions.clone_from(&after);
                instructions = Some(after);
            }
        }
        let index = self.index_of(id).expect("reviewed step exists");
        Ok(ReviewResponse {
            step: id,
            step_status: self.steps[index].status,
            plan: self.id,
            plan_status: self.status,
            instructions,
            taken_branch: self.steps[index]
                .response
                .as_ref()
                .and_then(|response| response.taken_branch.clone()),
            failure: self.failure.clone(),
        })
    }
}
