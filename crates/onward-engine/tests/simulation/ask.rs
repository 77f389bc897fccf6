//! What an agent, a person or the sweep asks of the engine; and asking it.

use std::fmt;
use std::sync::Arc;

use onward_core::command::{CreatePlan, Modification};
use onward_core::event::{Decision, Sign};
use onward_core::id::SessionId;
use onward_core::role::TenantPolicy;
use onward_core::watcher::Watcher;
use onward_core::{PlanId, Role, StepId};
use onward_engine::step::{Progress, Question};
use onward_engine::submit::Submission;
use onward_engine::{Caller, Engine};

use crate::said::Said;

/// Who asks what.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) tenant: Arc<str>,
    pub(crate) who: String,
    pub(crate) what: What,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    Create(Box<CreatePlan>, Option<String>),
    Next {
        plan: PlanId,
        session: Option<SessionId>,
        include_stalled: bool,
    },
    Submit(Submission),
    Progress(Progress),
    Notice(StepId, Sign, Option<SessionId>),
    Question(Question),
    Decide(StepId, Decision, Option<String>),
    Modify {
        plan: PlanId,
        modification: Modification,
        resume: bool,
    },
    Resume(PlanId),
    Abandon(PlanId, Option<String>),
    TakeUp(PlanId, SessionId),
    Delete(PlanId),
    /// Out of one's own tenant, into another.
    Move(PlanId, Arc<str>),
    /// One round. A fresh watcher takes the place of the one before.
    Sweep {
        fresh: bool,
    },
}

/// Whoever acts for a tenant.
pub(crate) fn caller(tenant: &Arc<str>, who: &str) -> Caller {
    Caller {
        tenant: Arc::clone(tenant),
        name: who.to_owned(),
        role: Role::Owner,
        policy: TenantPolicy::LOCAL,
    }
}

impl Ask {
    /// Asks the engine.
    pub(crate) async fn put(&self, engine: &Engine, watcher: &mut Watcher) -> Said {
        let caller = &caller(&self.tenant, &self.who);
        match self.what.clone() {
            What::Create(command, key) => {
                Said::created(engine.create_plan(caller, *command, key).await)
            }
            What::Next {
                plan,
                session,
                include_stalled,
            } => Said::of(
                engine
                    .next_step(caller, plan, session, include_stalled)
                    .await,
                |next| Said::Next(Box::new(next)),
            ),
            What::Submit(submission) => Said::submitted(engine.submit(caller, submission).await),
            What::Progress(progress) => Said::of(
                engine.report_progress(caller, progress).await,
                Said::Progressed,
            ),
            What::Notice(step, sign, session) => {
                Said::of(engine.notice(caller, step, sign, session).await, |()| {
                    Said::Done
                })
            }
            What::Question(question) => {
                Said::of(engine.request_review(caller, question).await, Said::Asked)
            }
            What::Decide(step, decision, feedback) => Said::of(
                engine.decide_review(caller, step, decision, feedback).await,
                Said::Reviewed,
            ),
            What::Modify {
                plan,
                modification,
                resume,
            } => Said::modified(
                engine
                    .modify_plan(caller, plan, modification, None, resume)
                    .await,
            ),
            What::Resume(plan) => Said::of(engine.resume_plan(caller, plan).await, Said::Stands),
            What::Abandon(plan, reason) => Said::of(
                engine.abandon_plan(caller, plan, reason).await,
                Said::Stands,
            ),
            What::TakeUp(plan, session) => {
                Said::of(engine.take_up(caller, plan, session).await, |()| Said::Done)
            }
            What::Delete(plan) => Said::of(engine.delete_plan(caller, plan).await, |sheet| {
                Said::Deleted(Box::new(sheet.head))
            }),
            What::Move(plan, to) => {
                let document = match engine.export(caller, plan).await {
                    Ok(document) => document,
                    Err(why) => return Said::refused(&why),
                };
                let there = crate::ask::caller(&to, &self.who);
                Said::of(engine.import(&there, &document).await, Said::Moved)
            }
            What::Sweep { fresh } => {
                if fresh {
                    *watcher = engine.watcher();
                }
                Said::of(engine.sweep(watcher).await, |round| {
                    Said::swept(round.acted_on, round.next_at)
                })
            }
        }
    }
}

/// The beginning of an id is enough for people.
pub(crate) fn short(id: impl fmt::Display) -> String {
    id.to_string().chars().take(6).collect()
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: ", self.who, self.tenant)?;
        match &self.what {
            What::Create(command, key) => write!(
                f,
                "create {} with {} steps under key {key:?}: {command:?}",
                short(command.plan),
                command.steps.len()
            ),
            What::Next {
                plan,
                session,
                include_stalled,
            } => {
                let stalled = match include_stalled {
                    true => ", stalled ones too",
                    false => "",
                };
                write!(f, "next step of {} for {session:?}{stalled}", short(plan))
            }
            What::Submit(submission) => {
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
                    "submit for step {} under {token:?} in {session:?}, claim next: {claim_next}: {result:?}",
                    short(step)
                )
            }
            What::Progress(progress) => write!(
                f,
                "progress of step {} under {:?}: {:?} {:?}",
                short(progress.step),
                progress.token.as_ref().map(|token| short(token.as_str())),
                progress.note,
                progress.percent
            ),
            What::Notice(step, sign, session) => {
                write!(f, "notice {sign:?} of step {} in {session:?}", short(step))
            }
            What::Question(question) => write!(
                f,
                "ask for a review of step {} under {:?}: {}",
                short(question.step),
                question.token.as_ref().map(|token| short(token.as_str())),
                question.summary
            ),
            What::Decide(step, decision, feedback) => {
                write!(f, "decide {decision} on step {}, {feedback:?}", short(step))
            }
            What::Modify {
                plan,
                modification,
                resume,
            } => write!(
                f,
                "modify plan {} (resume: {resume}): {modification:?}",
                short(plan)
            ),
            What::Resume(plan) => write!(f, "resume plan {}", short(plan)),
            What::Abandon(plan, reason) => write!(f, "abandon plan {}: {reason:?}", short(plan)),
            What::TakeUp(plan, session) => write!(f, "take up plan {} in {session}", short(plan)),
            What::Delete(plan) => write!(f, "delete plan {}", short(plan)),
            What::Move(plan, to) => write!(f, "move a copy of plan {} to {to}", short(plan)),
            What::Sweep { fresh } => write!(f, "sweep, with a fresh watcher: {fresh}"),
        }
    }
}
