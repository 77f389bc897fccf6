//! Commands on a step in progress: progress reports, review requests and review decisions.

use std::sync::Arc;

use onward_core::branch::Effect;
use onward_core::command::{DecideReview, Modification, ReportProgress, RequestReview, Reviewer};
use onward_core::event::{Decision, ProgressSource, ReviewAction};
use onward_core::id::{BranchId, ClaimToken, ReviewId, SessionId};
use onward_core::plan::{PlanFailure, PlanState};
use onward_core::role::{Forbidden, Permission};
use onward_core::step::{ReviewOptions, ReviewScope};
use onward_core::{
    Command, Event, PlanHead, PlanId, PlanStatus, Role, Step, StepId, StepStatus, Timestamp,
};
use onward_store::{AuditTrail, Tx};
use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::plan::late_results;
use crate::plan::next_step::delivers_instructions;
use crate::plan::submit::{replay_commit, taken_branch};
use crate::run::{Applied, CommandContext, CommandOutcome, Target, run};
use crate::sanitize;

/// A progress report from an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressReport {
    /// The step.
    pub step: StepId,
    /// The agent's note.
    pub note: Option<String>,
    /// Completion in percent, 0 to 100.
    pub percent: Option<f64>,
    /// The claim token.
    pub token: Option<ClaimToken>,
    /// The reporting session.
    pub session: Option<SessionId>,
}

/// Response to a progress report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressResponse {
    /// The step.
    pub step: StepId,
    /// Time of the recorded activity.
    pub last_progress_at: Timestamp,
    /// When the step will exceed its threshold without further activity.
    pub stalls_at: Option<Timestamp>,
    /// The plan's status.
    pub plan_status: PlanStatus,
    /// The step's instructions, if they changed after they were last delivered to the agent.
    pub changed_instructions: Option<String>,
}

/// A request for review by a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRequest {
    /// The step.
    pub step: StepId,
    /// Summary for the reviewer; becomes the step's result on approval.
    pub summary: String,
    /// The agent's questions.
    pub questions: Vec<String>,
    /// What waits for the decision.
    pub scope: ReviewScope,
    /// The optional parts of the request.
    pub options: ReviewOptions,
    /// The claim token.
    pub token: Option<ClaimToken>,
    /// The requesting session.
    pub session: Option<SessionId>,
}

/// Response to a review request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedReview {
    /// The review.
    pub review: ReviewId,
    /// The step.
    pub step: StepId,
    /// Its plan.
    pub plan: PlanId,
    /// The plan's status.
    pub plan_status: PlanStatus,
}

/// Response to a review decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewResponse {
    /// The step.
    pub step: StepId,
    /// The step's status.
    pub step_status: StepStatus,
    /// Its plan.
    pub plan: PlanId,
    /// The plan's status.
    pub plan_status: PlanStatus,
    /// The modified instructions, if the decision changed them.
    pub instructions: Option<String>,
    /// The branch that was taken and its effect.
    pub taken_branch: Option<(BranchId, Effect)>,
    /// Why the plan failed, if it did.
    pub failure: Option<PlanFailure>,
}

/// A reviewer's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewDecision {
    /// The step under review.
    pub step: StepId,
    /// The review. Default: the pending review of the step.
    pub review: Option<ReviewId>,
    /// The decision.
    pub decision: Decision,
    /// The reviewer's feedback.
    pub feedback: Option<String>,
    /// The answers to the typed questions.
    pub answers: Map<String, Value>,
    /// The claim token, if an agent submits the decision.
    pub token: Option<ClaimToken>,
    /// The session that submits the decision.
    pub session: Option<SessionId>,
    /// Whether an agent submits the decision. A caller with the role of an agent always is one.
    pub is_by_agent: bool,
    /// Changes to the steps, if the decision approves the start of the plan.
    pub edits: Vec<Modification>,
    /// The recipient of the decision link, if the decision is by link. The caller has verified it.
    pub link_recipient: Option<String>,
}

impl ReviewDecision {
    /// A person's decision.
    pub fn new(step: StepId, decision: Decision, feedback: Option<String>) -> Self {
        Self {
            step,
            review: None,
            decision,
            feedback,
            answers: Map::new(),
            token: None,
            session: None,
            is_by_agent: false,
            edits: Vec::new(),
            link_recipient: None,
        }
    }
}

/// The response to the commit of a decision.
pub(crate) fn decision_response(
    step: StepId,
    head: &PlanHead,
    after: Option<&Step>,
    events: &[Event],
) -> ReviewResponse {
    let is_modified = |event: &Event| {
        matches!(
            event,
            Event::UserReviewed {
                action: ReviewAction::Decided {
                    decision: Decision::Modify,
                    ..
                },
                ..
            }
        )
    };
    let rewritten = after.filter(|_| events.iter().any(is_modified));
    ReviewResponse {
        step,
        // An edit at the approval of the plan can remove the step.
        step_status: after.map_or(StepStatus::Pending, Step::status),
        plan: head.id,
        plan_status: head.status(),
        instructions: rewritten.map(|step| step.spec.instructions.clone()),
        taken_branch: taken_branch(events),
        failure: match &head.state {
            PlanState::Failed { reason, .. } => Some(reason.clone()),
            PlanState::Planning
            | PlanState::Executing
            | PlanState::AwaitingReview { .. }
            | PlanState::Stalled { .. }
            | PlanState::Completed { .. } => None,
        },
    }
}

/// The author of a decision by this caller. An agent without the permission may still decide the
/// review of a gate that another session may decide; the core checks it.
fn reviewer(caller: &Caller, is_by_agent: bool) -> Result<Reviewer, Forbidden> {
    let permission = caller.allow(Permission::DecideReview);
    if is_by_agent || caller.role == Role::Agent {
        if permission.is_err() {
            caller.allow(Permission::Work).or(permission)?;
        }
        let permitted = permission.is_ok();
        return Ok(Reviewer::Agent { permitted });
    }
    permission.map(|()| Reviewer::Person)
}

impl Engine {
    /// Records progress on a step.
    pub async fn report_progress(
        &self,
        caller: &Caller,
        progress: ProgressReport,
    ) -> Result<ProgressResponse, Error> {
        caller.allow(Permission::Work)?;
        let ProgressReport {
            step,
            mut note,
            percent,
            token,
            session,
        } = progress;
        sanitize::optional_text(&mut note);
        let session = sanitize::session(session);
        let ctx = self.command_context(caller, session.as_ref());
        let command = ReportProgress {
            step,
            source: ProgressSource::Reported,
            note,
            percent,
            token,
            session,
        };
        let done = self
            .execute_on_step(caller, step, command.into(), ctx)
            .await?;
        let after = done.step(step);
        let last = after.and_then(|step| step.work()?.last_progress_at);
        let changed = after.filter(|_| delivers_instructions(step, &done.events));
        Ok(ProgressResponse {
            step,
            last_progress_at: last.unwrap_or(Timestamp::MIN),
            stalls_at: after.and_then(|step| step.stalls_at(done.head.stall_threshold)),
            plan_status: done.head.status(),
            changed_instructions: changed.map(|step| step.spec.instructions.clone()),
        })
    }

    /// Records activity that the agent did not report itself: an artifact stored for the step, or a
    /// hook event of the session that holds it. Throttled, and never rejected.
    pub async fn record_activity(
        &self,
        caller: &Caller,
        step: StepId,
        sign: ProgressSource,
        session: Option<SessionId>,
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let session = sanitize::session(session);
        let ctx = self.command_context(caller, session.as_ref());
        let command = ReportProgress {
            step,
            source: sign,
            note: None,
            percent: None,
            token: None,
            session,
        };
        self.execute_on_step(caller, step, command.into(), ctx)
            .await?;
        Ok(())
    }

    /// Requests a review. The step waits for the decision.
    pub async fn request_review(
        &self,
        caller: &Caller,
        question: ReviewRequest,
    ) -> Result<OpenedReview, Error> {
        self.request_review_with(caller, question, |_, _, _| ())
            .await
    }

    /// [`Self::request_review`], and `also` in the same transaction.
    pub(crate) async fn request_review_with(
        &self,
        caller: &Caller,
        question: ReviewRequest,
        also: impl Fn(&mut Tx, &OpenedReview, Timestamp) + Send + Sync + 'static,
    ) -> Result<OpenedReview, Error> {
        caller.allow(Permission::Work)?;
        let ReviewRequest {
            step,
            mut summary,
            mut questions,
            scope,
            mut options,
            token,
            session,
        } = question;
        sanitize::text(&mut summary);
        sanitize::review_options(&mut options);
        questions.iter_mut().for_each(sanitize::text);
        let session = sanitize::session(session);
        let ctx = self.command_context(caller, session.as_ref());
        let review = ReviewId::new(self.ids.ordered_id(ctx.now));
        let command = RequestReview {
            step,
            review,
            summary,
            questions,
            scope,
            options,
            token,
            session,
        };
        // A repeated request returns the review that is already open.
        let opened = move |done: &Applied| {
            let open = done.step(step).and_then(Step::open_review);
            OpenedReview {
                review: open.map_or(review, |open| open.id),
                step,
                plan: done.head.id,
                plan_status: done.head.status(),
            }
        };
        let now = ctx.now;
        let also = move |tx: &mut Tx, done: &Applied| also(tx, &opened(done), now);
        let done = self
            .execute_on_step_with(caller, step, command.into(), ctx, also)
            .await?;
        Ok(opened(&done))
    }

    /// Records a reviewer's decision. A repeated decision gets the first response again.
    pub async fn decide_review(
        &self,
        caller: &Caller,
        review: ReviewDecision,
    ) -> Result<ReviewResponse, Error> {
        let ReviewDecision {
            step,
            review,
            decision,
            mut feedback,
            mut answers,
            token,
            session,
            is_by_agent,
            edits,
            link_recipient,
        } = review;
        let reviewer = match (reviewer(caller, is_by_agent)?, link_recipient) {
            (Reviewer::Person, Some(mut recipient)) => {
                sanitize::text(&mut recipient);
                Reviewer::Link { recipient }
            }
            (reviewer, _) => reviewer,
        };
        sanitize::optional_text(&mut feedback);
        sanitize::answers(&mut answers);
        let session = sanitize::session(session);
        let ctx = self.command_context(caller, session.as_ref());
        let command = DecideReview {
            step,
            review,
            reviewer,
            decision,
            feedback,
            answers,
            token,
            session,
        };
        let done = if edits.is_empty() {
            self.execute_on_step(caller, step, command.into(), ctx)
                .await?
        } else {
            self.decide_with_edits(caller, command, edits, ctx).await?
        };
        if done.events.is_empty() {
            return self.repeat_decision(caller, done.head.id, step).await;
        }
        Ok(decision_response(
            step,
            &done.head,
            done.step(step),
            &done.events,
        ))
    }

    /// Rebuilds the response to the first submission of the same decision.
    async fn repeat_decision(
        &self,
        caller: &Caller,
        plan: PlanId,
        step: StepId,
    ) -> Result<ReviewResponse, Error> {
        let response = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let decided = AuditTrail(tx).decision(plan, step, None).await?;
                let (_, replayed) = replay_commit(tx, plan, &decided).await?;
                let events: Vec<Event> = decided.into_iter().map(|entry| entry.event).collect();
                let after = replayed.step(step);
                Ok::<_, Error>(decision_response(step, replayed.head(), after, &events))
            })
        });
        response.await
    }

    /// Executes a command on a step. A rejected result is stored as an artifact, which the error
    /// names.
    pub(crate) async fn execute_on_step(
        &self,
        caller: &Caller,
        step: StepId,
        command: Command,
        ctx: CommandContext,
    ) -> Result<Applied, Error> {
        self.execute_on_step_with(caller, step, command, ctx, |_, _| ())
            .await
    }

    /// [`Self::execute_on_step`], and `also` in the same transaction.
    async fn execute_on_step_with(
        &self,
        caller: &Caller,
        step: StepId,
        command: Command,
        ctx: CommandContext,
        also: impl Fn(&mut Tx, &Applied) + Send + Sync + 'static,
    ) -> Result<Applied, Error> {
        let (command, also) = (Arc::new(command), Arc::new(also));
        let outcome = self.store.transition(&caller.tenant, move |tx| {
            let (command, ctx) = (Arc::clone(&command), ctx.clone());
            let also = Arc::clone(&also);
            Box::pin(async move {
                let outcome = run(tx, Target::Step(step), &command, &ctx, None).await?;
                Ok::<_, Error>(match outcome {
                    CommandOutcome::Applied(done) => {
                        also(tx, &done);
                        Ok(done)
                    }
                    CommandOutcome::NotFound => {
                        let code = onward_core::Code::StepNotFound;
                        let kept =
                            late_results::store_rejected(tx, &command, None, code, &ctx, None)
                                .await?;
                        let step = step.to_string();
                        Err(Error::StepNotFound { step, kept })
                    }
                    CommandOutcome::Rejected { refusal, head } => {
                        let (plan, code) = (Some(head.id), refusal.code());
                        let kept =
                            late_results::store_rejected(tx, &command, plan, code, &ctx, None)
                                .await?;
                        Err(Error::Rejected { refusal, kept })
                    }
                })
            })
        });
        let done = outcome.await??;
        self.sweep_waker.wake_by(done.due);
        Ok(done)
    }
}
