//! Requests of agents, reviewers and the sweeper to the engine.

use std::fmt;
use std::sync::Arc;

use onward_core::command::{CreatePlan, Modification, ModifyPlan};
use onward_core::event::{Decision, ProgressSource};
use onward_core::id::SessionId;
use onward_core::role::TenantPolicy;
use onward_core::watcher::Watcher;
use onward_core::{PlanId, Role, StepId};
use onward_engine::step::{ProgressReport, ReviewDecision, ReviewRequest};
use onward_engine::submit::Submission;
use onward_engine::{Caller, Engine};

use crate::response::{Response, clear_surroundings};

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) tenant: Arc<str>,
    pub(crate) author: String,
    pub(crate) operation: Operation,
}

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Create(Box<CreatePlan>, Option<String>),
    Next {
        plan: PlanId,
        session: Option<SessionId>,
        include_stalled: bool,
    },
    Submit(Submission),
    Progress(ProgressReport),
    RecordActivity(StepId, ProgressSource, Option<SessionId>),
    RequestReview(ReviewRequest),
    Decide {
        step: StepId,
        decision: Decision,
        feedback: Option<String>,
        by_link: bool,
    },
    Modify {
        plan: PlanId,
        modification: Modification,
        resume: bool,
    },
    Resume(PlanId),
    Abandon(PlanId, Option<String>),
    ResumeSession(PlanId, SessionId),
    Delete(PlanId),
    /// Exports the plan and imports it into another tenant.
    CopyToTenant(PlanId, Arc<str>),
    /// One round of the sweep, optionally with a new watcher.
    Sweep {
        new_watcher: bool,
    },
}

pub(crate) fn caller(tenant: &Arc<str>, author: &str) -> Caller {
    Caller {
        tenant: Arc::clone(tenant),
        name: author.to_owned(),
        role: Role::Owner,
        policy: TenantPolicy::LOCAL,
        origin: onward_engine::RequestOrigin::default(),
        connection: None,
    }
}

impl Request {
    pub(crate) async fn send(&self, engine: &Engine, watcher: &mut Watcher) -> Response {
        let caller = &caller(&self.tenant, &self.author);
        match self.operation.clone() {
            Operation::Create(command, key) => {
                Response::created(engine.create_plan(caller, *command, key).await)
            }
            Operation::Next {
                plan,
                session,
                include_stalled,
            } => Response::from_result(
                engine
                    .next_step(caller, plan, session, include_stalled)
                    .await,
                |mut next| {
                    clear_surroundings(&mut next);
                    Response::Next(Box::new(next))
                },
            ),
            Operation::Submit(submission) => {
                Response::submitted(engine.submit(caller, submission).await)
            }
            Operation::Progress(progress) => Response::from_result(
                engine.report_progress(caller, progress).await,
                Response::Progressed,
            ),
            Operation::RecordActivity(step, source, session) => Response::from_result(
                engine.record_activity(caller, step, source, session).await,
                |()| Response::Done,
            ),
            Operation::RequestReview(review_request) => Response::from_result(
                engine.request_review(caller, review_request).await,
                Response::ReviewRequested,
            ),
            Operation::Decide {
                step,
                decision,
                feedback,
                by_link,
            } => {
                let review = ReviewDecision {
                    link_recipient: by_link.then(|| "ann".to_owned()),
                    ..ReviewDecision::new(step, decision, feedback)
                };
                let decided = engine.decide_review(caller, review).await;
                Response::from_result(decided, Response::Reviewed)
            }
            Operation::Modify {
                plan,
                modification,
                resume,
            } => Response::modified(
                engine
                    .modify_plan(
                        caller,
                        plan,
                        ModifyPlan {
                            resume,
                            ..ModifyPlan::new(modification)
                        },
                    )
                    .await,
            ),
            Operation::Resume(plan) => {
                Response::from_result(engine.resume_plan(caller, plan).await, Response::Status)
            }
            Operation::Abandon(plan, reason) => Response::from_result(
                engine.abandon_plan(caller, plan, reason).await,
                Response::Status,
            ),
            Operation::ResumeSession(plan, session) => Response::from_result(
                engine.record_session_resume(caller, plan, session).await,
                |()| Response::Done,
            ),
            Operation::Delete(plan) => {
                Response::from_result(engine.delete_plan(caller, plan).await, |sheet| {
                    Response::Deleted(Box::new(sheet.head))
                })
            }
            Operation::CopyToTenant(plan, to) => {
                let document = match engine.export(caller, plan).await {
                    Ok(document) => document,
                    Err(error) => return Response::from_error(&error),
                };
                let importer = crate::request::caller(&to, &self.author);
                Response::from_result(engine.import(&importer, &document).await, Response::Copied)
            }
            Operation::Sweep { new_watcher } => {
                if new_watcher {
                    *watcher = engine.watcher();
                }
                Response::from_result(engine.sweep(watcher).await, |round| {
                    // The other plans were checked.
                    match round.failed.into_iter().next() {
                        Some((_, _, error)) => Response::Unavailable(error),
                        None => Response::swept(round.changed, round.next_at),
                    }
                })
            }
        }
    }
}

/// The first characters of an id, for log messages.
pub(crate) fn short(id: impl fmt::Display) -> String {
    id.to_string().chars().take(6).collect()
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: ", self.author, self.tenant)?;
        match &self.operation {
            Operation::Create(command, key) => write!(
                f,
                "create {} with {} steps and key {key:?}: {command:?}",
                short(command.plan),
                command.steps.len()
            ),
            Operation::Next {
                plan,
                session,
                include_stalled,
            } => {
                write!(
                    f,
                    "next step of {} for {session:?}, include stalled: {include_stalled}",
                    short(plan)
                )
            }
            Operation::Submit(submission) => {
                let Submission {
                    step,
                    result,
                    token,
                    session,
                    claim_next,
                } = submission;
                let token = token.as_ref().map(|token| short(token.as_str()));
                write!(
                    f,
                    "submit for step {} with token {token:?} in {session:?}, claim next: \
                     {claim_next}: {result:?}",
                    short(step)
                )
            }
            Operation::Progress(progress) => write!(
                f,
                "progress of step {} with token {:?}: {:?} {:?}",
                short(progress.step),
                progress.token.as_ref().map(|token| short(token.as_str())),
                progress.note,
                progress.percent
            ),
            Operation::RecordActivity(step, source, session) => {
                write!(
                    f,
                    "record activity {source:?} of step {} in {session:?}",
                    short(step)
                )
            }
            Operation::RequestReview(review_request) => write!(
                f,
                "request a review of step {} with token {:?}: {}",
                short(review_request.step),
                review_request
                    .token
                    .as_ref()
                    .map(|token| short(token.as_str())),
                review_request.summary
            ),
            Operation::Decide {
                step,
                decision,
                feedback,
                by_link,
            } => write!(
                f,
                "decide {decision} on step {} (by link: {by_link}), {feedback:?}",
                short(step)
            ),
            Operation::Modify {
                plan,
                modification,
                resume,
            } => write!(
                f,
                "modify plan {} (resume: {resume}): {modification:?}",
                short(plan)
            ),
            Operation::Resume(plan) => write!(f, "resume plan {}", short(plan)),
            Operation::Abandon(plan, reason) => {
                write!(f, "abandon plan {}: {reason:?}", short(plan))
            }
            Operation::ResumeSession(plan, session) => {
                write!(f, "resume plan {} in {session}", short(plan))
            }
            Operation::Delete(plan) => write!(f, "delete plan {}", short(plan)),
            Operation::CopyToTenant(plan, to) => {
                write!(f, "copy plan {} to {to}", short(plan))
            }
            Operation::Sweep { new_watcher } => {
                write!(f, "sweep, new watcher: {new_watcher}")
            }
        }
    }
}
