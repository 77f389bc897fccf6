//! A naive model of the plan rules: lists in memory, without indexes, caches or event sourcing, so
//! that it is easy to compare with the specification.
//!
//! The model predicts the response to a request and the rows after it. Random values (tokens, ids
//! of reviews and artifacts) come from the engine's response, or from the rows if the request
//! failed. The model uses the types of the core (statuses, specs, codes), but none of its rules.

mod budget;
mod create;
mod modify;
mod next;
mod plan;
mod resolve;
mod step;
mod submit;
mod sweep;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use onward_core::id::{ArtifactId, ClaimToken, SessionId};
use onward_core::step::StepResult;
use onward_core::{Code, PlanId, StepId, StepStatus, Timestamp};

pub(crate) use plan::{AuditEntry, LateResult, Plan};
pub(crate) use step::{ClaimRecord, Step};

use crate::request::{Operation, Request};
use crate::response::{PlanKey, Response};

/// All plans of all tenants of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) plans: BTreeMap<PlanKey, Plan>,
    /// Plan and content of each idempotency key.
    keys: BTreeMap<(Arc<str>, String), (PlanId, String)>,
    /// Artifacts of rejected results, by step and content.
    late_artifacts: BTreeMap<(Arc<str>, StepId, String), Option<ArtifactId>>,
    pub(crate) watcher: sweep::WatcherState,
}

/// Time, author and session of a request, and the engine's response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) now: Timestamp,
    pub(crate) author: &'a str,
    pub(crate) session: Option<&'a SessionId>,
    pub(crate) actual: Option<&'a Response>,
}

impl Model {
    /// Applies a request and returns the expected response.
    pub(crate) fn apply(
        &mut self,
        request: &Request,
        now: Timestamp,
        actual: Option<&Response>,
    ) -> Response {
        let session = match &request.operation {
            Operation::Create(command, _) => command.session.as_ref(),
            Operation::Next { session, .. } | Operation::RecordActivity(_, _, session) => {
                session.as_ref()
            }
            Operation::Submit(submission) => submission.session.as_ref(),
            Operation::Progress(progress) => progress.session.as_ref(),
            Operation::RequestReview(review_request) => review_request.session.as_ref(),
            Operation::ResumeSession(_, session) => Some(session),
            _ => None,
        };
        let ctx = &Context {
            now,
            author: &request.author,
            session,
            actual,
        };
        let tenant = &request.tenant;
        match &request.operation {
            Operation::Create(command, key) => self.create(tenant, command, key.as_deref(), ctx),
            Operation::Next {
                plan,
                include_stalled,
                ..
            } => self.with_plan(tenant, *plan, |plan| {
                Ok(Response::Next(Box::new(plan.next(
                    *include_stalled,
                    None,
                    ctx,
                ))))
            }),
            Operation::Submit(submission) => {
                let late = Some(submission.result.clone());
                let late = late.map(|late| (late, submission.token.as_ref()));
                self.with_step(tenant, submission.step, late, ctx, |plan, index| {
                    let response = plan.submit(index, submission, ctx)?;
                    Ok(Response::Submitted(Box::new(response)))
                })
            }
            Operation::Progress(progress) => {
                let percent = progress
                    .percent
                    .map(|percent| format!("{percent} percent done"));
                let text = progress.note.clone().or(percent);
                let late = text.map(StepResult::from_summary);
                let late = late.map(|late| (late, progress.token.as_ref()));
                self.with_step(tenant, progress.step, late, ctx, |plan, index| {
                    Ok(Response::Progressed(plan.progress(index, progress, ctx)?))
                })
            }
            Operation::RecordActivity(step, source, _) => {
                self.with_step(tenant, *step, None, ctx, |plan, index| {
                    plan.record_activity(index, *source, ctx);
                    Ok(Response::Done)
                })
            }
            Operation::RequestReview(review_request) => {
                let questions = serde_json::json!({ "questions": review_request.questions });
                let late = StepResult {
                    data: Some(questions.into()),
                    ..StepResult::from_summary(review_request.summary.clone())
                };
                self.with_step(
                    tenant,
                    review_request.step,
                    Some((late, review_request.token.as_ref())),
                    ctx,
                    |plan, index| {
                        Ok(Response::ReviewRequested(plan.request_review(
                            index,
                            review_request,
                            ctx,
                        )?))
                    },
                )
            }
            Operation::Decide {
                step,
                decision,
                feedback,
                by_link,
            } => self.with_step(tenant, *step, None, ctx, |plan, index| {
                let feedback = feedback.as_deref();
                let decided = plan.decide(index, *decision, feedback, *by_link, ctx);
                Ok(Response::Reviewed(decided?))
            }),
            Operation::Modify {
                plan,
                modification,
                resume,
            } => self.with_plan(tenant, *plan, |plan| {
                plan.modify(modification, *resume, ctx)?;
                Ok(Response::Modified(Box::new(plan.head())))
            }),
            Operation::Resume(plan) => {
                self.with_plan(tenant, *plan, |plan| plan.resume_manually(ctx))
            }
            Operation::Abandon(plan, reason) => {
                self.with_plan(tenant, *plan, |plan| plan.abandon(reason.as_ref(), ctx))
            }
            Operation::ResumeSession(plan, session) => self.with_plan(tenant, *plan, |plan| {
                plan.resume_session(session, ctx);
                Ok(Response::Done)
            }),
            Operation::Delete(plan) => match self.plans.remove(&(Arc::clone(tenant), *plan)) {
                Some(plan) => {
                    self.remove_keys(tenant, plan.id);
                    Response::Deleted(Box::new(plan.head()))
                }
                None => Response::Rejected(Code::PlanNotFound, None),
            },
            Operation::CopyToTenant(plan, to) => self.copy(tenant, *plan, to),
            Operation::Sweep { new_watcher } => self.sweep(*new_watcher, ctx),
        }
    }

    fn with_plan(
        &mut self,
        tenant: &Arc<str>,
        plan: PlanId,
        act: impl FnOnce(&mut Plan) -> Result<Response, Code>,
    ) -> Response {
        match self.plans.get_mut(&(Arc::clone(tenant), plan)) {
            None => Response::Rejected(Code::PlanNotFound, None),
            Some(plan) => plan
                .atomically(act)
                .unwrap_or_else(|code| Response::Rejected(code, None)),
        }
    }

    /// A rejected request changes nothing, but its content is stored as an artifact.
    fn with_step(
        &mut self,
        tenant: &Arc<str>,
        step: StepId,
        late: Option<(StepResult, Option<&ClaimToken>)>,
        ctx: &Context<'_>,
        act: impl FnOnce(&mut Plan, usize) -> Result<Response, Code>,
    ) -> Response {
        let mut own = self
            .plans
            .iter_mut()
            .filter(|((owner, _), _)| owner == tenant);
        let found = own.find_map(|(_, plan)| Some((plan.index_of(step)?, plan)));
        let (plan, code) = match found {
            None => (None, Code::StepNotFound),
            Some((index, plan)) => match plan.atomically(|plan| act(plan, index)) {
                Ok(response) => {
                    // An accepted result supersedes the holder's invalid input.
                    if let Some(index) = plan.index_of(step)
                        && plan.steps[index].status == StepStatus::Completed
                        && let Some((key, _)) = plan.steps[index].take_draft()
                    {
                        self.late_artifacts.remove(&key);
                    }
                    return response;
                }
                Err(code) => (Some(plan), code),
            },
        };
        let kept = late.map(|(late, token)| {
            let key = (Arc::clone(tenant), step, format!("{late:?}"));
            let actual = ctx.actual.and_then(Response::kept);
            let stored = self.late_artifacts.get(&key).copied();
            if let (None, Some(plan)) = (stored, plan) {
                plan.begin_command();
                plan.record("late_result_kept", None, Some(step), ctx);
                if code == Code::InvalidInput
                    && let Some(index) = plan.index_of(step)
                    && plan.steps[index].is_held_by(token)
                {
                    let id = actual.unwrap_or(ArtifactId::from_u128(0));
                    let claim = plan.steps[index].current_claim_mut();
                    if let Some((superseded, _)) = claim.draft.replace((key.clone(), id)) {
                        self.late_artifacts.remove(&superseded);
                    }
                }
                plan.late_results.push(LateResult {
                    step,
                    code,
                    summary: late.summary,
                    id: actual,
                });
            }
            let id = stored.flatten().or(actual);
            self.late_artifacts.insert(key, id);
            id.unwrap_or(ArtifactId::from_u128(0))
        });
        Response::Rejected(code, kept)
    }

    /// Copies a plan with its artifacts. A tenant that already has the plan rejects it.
    fn copy(&mut self, from: &Arc<str>, plan: PlanId, to: &Arc<str>) -> Response {
        let Some(mut copied) = self.plans.get(&(Arc::clone(from), plan)).cloned() else {
            return Response::Rejected(Code::PlanNotFound, None);
        };
        let target = (Arc::clone(to), plan);
        if self.plans.contains_key(&target) {
            return Response::Rejected(Code::Conflict, None);
        }
        let is_copied = |step: &StepId, id: Option<ArtifactId>| {
            let mut all = copied.late_results.iter();
            all.any(|late| late.step == *step && late.id == id && late.code != Code::InvalidInput)
        };
        for ((tenant, step, content), id) in self.late_artifacts.clone() {
            if tenant == *from && is_copied(&step, id) {
                let key = (Arc::clone(to), step, content);
                self.late_artifacts.entry(key).or_insert(id);
            }
        }
        copied.forget_tokens();
        copied.move_drafts(to);
        self.plans.insert(target, copied);
        Response::Copied(plan)
    }

    pub(crate) fn copy_keys_and_artifacts(&mut self, other: &Model) {
        self.keys.clone_from(&other.keys);
        self.late_artifacts.clone_from(&other.late_artifacts);
    }
}
