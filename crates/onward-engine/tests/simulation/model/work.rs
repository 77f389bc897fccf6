//! Progress, activity and reviews of a step in progress.

use std::time::Duration;

use onward_core::event::{Decision, ProgressSource};
use onward_core::id::ReviewId;
use onward_core::plan::PlanFailure;
use onward_core::step::{
    Deadline, FailReason, OnDeadline, Review, ReviewBy, ReviewScope, SkipCause, StepResult,
    Undelivered,
};
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
        let token = progress.token.as_ref();
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
            self.resume("progress", ctx);
        }
        self.reclaim(index, token, ctx)?;
        self.steps[index]
            .current_claim_mut()
            .record_activity(ctx.now);
        let id = self.steps[index].id();
        self.record("step_progressed", Some("reported"), Some(id), ctx);
        self.set_last_session(ctx);
        let changed_instructions = self.deliver_changes(index, token, reported, ctx);
        let step = &self.steps[index];
        Ok(ProgressResponse {
            step: id,
            last_progress_at: step
                .current_claim()
                .and_then(|claim| claim.last_activity)
                .expect("activity was recorded"),
            stalls_at: step.active_until(self.threshold),
            plan_status: self.status,
            changed_instructions,
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

    /// Recorded at most once per quarter of the threshold, of a session the first time after a
    /// sixteenth; written data at most once per 10 seconds if that is less. Never rejected.
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
        let interval = match source {
            ProgressSource::Seen if !claim.monitored => quarter / 4,
            ProgressSource::Seen => quarter,
            _ => quarter.min(Duration::from_secs(10)),
        };
        let links = source == ProgressSource::Seen
            && ctx.session.is_some()
            && claim.session.is_none()
            && !claim.monitored;
        if !links && ctx.now.since(claim.inactive_since()) < interval.max(Duration::from_millis(1))
        {
            return;
        }
        let id = step.id();
        let claim = self.steps[index].current_claim_mut();
        claim.record_activity(ctx.now);
        claim.monitored |= source == ProgressSource::Seen && ctx.session.is_some();
        self.record("step_progressed", Some(source.as_str()), Some(id), ctx);
        self.set_last_session(ctx);
    }

    pub(crate) fn request_review(
        &mut self,
        index: usize,
        review_request: &ReviewRequest,
        ctx: &Context<'_>,
    ) -> Result<OpenedReview, Code> {
        let is_start = review_request.scope == ReviewScope::Start;
        let has_gates = self.steps[index].spec.gates.is_some();
        let is_invalid = |deadline: &Deadline| {
            let approves = deadline.action == OnDeadline::Approve;
            deadline.at <= ctx.now || approves && has_gates
        };
        let deadline = review_request.options.deadline;
        if is_start
            || review_request.summary.trim().is_empty()
            || deadline.as_ref().is_some_and(is_invalid)
        {
            return Err(Code::InvalidInput);
        }
        let token = review_request.token.as_ref();
        self.check_token(index, token)?;
        if self.has_ended() {
            return Err(Code::PlanIsTerminal);
        }
        let open = self.steps[index].review.as_ref();
        if let Some(open) = open.filter(|open| {
            open.summary == review_request.summary
                && open.questions == review_request.questions
                && open.scope == review_request.scope
                && open.options.fields == review_request.options.fields
                && open.options.assignee == review_request.options.assignee
                && open.options.deadline.map(|open| open.action)
                    == deadline.map(|deadline| deadline.action)
                && open.result.is_none()
        }) {
            return Ok(OpenedReview {
                review: open.id,
                step: self.steps[index].id(),
                plan: self.id,
                plan_status: self.status,
            });
        }
        let session = self.steps[index].calling_session(token, ctx.session);
        let ctx = &Context {
            session: session.as_ref(),
            ..*ctx
        };
        self.reclaim(index, token, ctx)?;
        if !matches!(
            self.status,
            PlanStatus::Executing | PlanStatus::AwaitingReview
        ) {
            return Err(Code::IllegalTransition);
        }
        let review = ctx.actual.and_then(Response::review);
        let review = review.unwrap_or(ReviewId::from_u128(0));
        let step = &mut self.steps[index];
        step.status = StepStatus::AwaitingInput;
        step.review = Some(Review {
            id: review,
            summary: review_request.summary.clone(),
            questions: review_request.questions.clone(),
            requested_at: ctx.now,
            scope: review_request.scope,
            options: review_request.options.clone(),
            by: step.spec.gates.as_ref().map(|_| ReviewBy::Person),
            session: ctx.session.cloned(),
            result: None,
        });
        let id = step.id();
        self.record("user_reviewed", Some("review_requested"), Some(id), ctx);
        if review_request.scope == ReviewScope::Plan {
            self.stopped_by.push(id);
            if self.status == PlanStatus::Executing {
                self.set_status(PlanStatus::AwaitingReview, ctx);
            }
        }
        self.set_last_session(ctx);
        self.check_budget(false, ctx);
        Ok(OpenedReview {
            review,
            step: id,
            plan: self.id,
            plan_status: self.status,
        })
    }

    pub(crate) fn decide(
        &mut self,
        index: usize,
        decision: Decision,
        feedback: Option<&str>,
        by_link: bool,
        ctx: &Context<'_>,
    ) -> Result<ReviewResponse, Code> {
        let step = &self.steps[index];
        let id = step.id();
        let feedback = feedback.filter(|feedback| !feedback.trim().is_empty());
        let is_open = step.status == StepStatus::AwaitingInput;
        if let Some((decided, said, response)) =
            step.decided.as_ref().filter(|_| !is_open && !by_link)
            && *decided == decision
            && said.as_deref() == feedback
        {
            return Ok(response.clone());
        }
        if self.has_ended() {
            return Err(Code::PlanIsTerminal);
        }
        if !is_open {
            return Err(Code::IllegalTransition);
        }
        let review = step.review.clone().expect("step has a review");
        let is_start = review.scope == ReviewScope::Start;
        if is_start && !matches!(decision, Decision::Approve | Decision::Reject) {
            return Err(Code::InvalidInput);
        }
        if decision == Decision::Modify && feedback.is_none() {
            return Err(Code::FeedbackRequired);
        }
        if self.status == PlanStatus::Stalled {
            self.resume("review", ctx);
        }
        self.record("user_reviewed", Some(decision.as_str()), Some(id), ctx);
        self.stopped_by.retain(|step| *step != id);
        let is_last = self.stopped_by.is_empty() && self.status == PlanStatus::AwaitingReview;
        if decision != Decision::Reject && is_last {
            self.set_status(PlanStatus::Executing, ctx);
        }
        let mut instructions = None;
        match decision {
            Decision::Approve if is_start => {
                let step = &mut self.steps[index];
                step.status = StepStatus::Pending;
                step.review = None;
                self.record("step_requeued", Some("approved"), Some(id), ctx);
            }
            Decision::Approve => {
                let approved = review.result.map(|result| (*result).clone());
                let mut summary = StepResult::from_summary(review.summary);
                if !review.options.fields.is_empty() {
                    let answers = serde_json::json!({ "review": { "answers": { "sure": true } } });
                    summary.data = Some(answers.into());
                    summary.summary.push_str("\n→ sure: true");
                }
                self.complete(index, approved.unwrap_or(summary), ctx);
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
                step.current_claim_mut().undelivered = Some(Undelivered::Feedback);
                step.current_claim_mut().record_activity(ctx.now);
                let feedback = feedback.expect("feedback was checked");
                let before = &step.spec.instructions;
                let after = format!("{before}\n\n---\n\nUser feedback: {feedback}");
                step.spec.instructions.clone_from(&after);
                instructions = Some(after);
            }
        }
        let index = self.index_of(id).expect("reviewed step exists");
        let response = ReviewResponse {
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
        };
        let said = feedback.map(str::to_owned);
        self.steps[index].decided = Some((decision, said, response.clone()));
        Ok(response)
    }
}
