//! What happens to a step while it is worked on: progress, a question to a person, their decision.

use std::sync::Arc;

use onward_core::command::{DecideReview, ReportProgress, RequestReview};
use onward_core::event::{Decision, Sign};
use onward_core::id::{ClaimToken, ReviewId, SessionId};
use onward_core::policy::stall_threshold;
use onward_core::role::Permission;
use onward_core::{Command, PlanId, PlanStatus, StepId, StepStatus, Timestamp};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::late;
use crate::run::{Done, Moment, Outcome, Target, run, stalls_at};

/// A sign of life, as an agent reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Of which step.
    pub step: StepId,
    /// In the agent's words.
    pub note: Option<String>,
    /// How far it is, 0 to 100.
    pub percent: Option<f64>,
    /// The claim that it is reported under.
    pub token: Option<ClaimToken>,
    /// Who reports.
    pub session: Option<SessionId>,
}

/// A sign of life that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progressed {
    /// Of which step.
    pub step: StepId,
    /// When.
    pub last_progress_at: Timestamp,
    /// When it will be past its threshold again.
    pub stalls_at: Option<Timestamp>,
    /// Where the plan stands.
    pub plan_status: PlanStatus,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// About which step.
    pub step: StepId,
    /// What the person reads; on approval it becomes the step's result.
    pub summary: String,
    /// What the agent wants to know.
    pub questions: Vec<String>,
    /// The claim that it is asked under.
    pub token: Option<ClaimToken>,
    /// Who asks.
    pub session: Option<SessionId>,
}

/// A question that was put to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Which review it is.
    pub review: ReviewId,
    /// About which step.
    pub step: StepId,
    /// Of which plan.
    pub plan: PlanId,
}

/// What a person's decision led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reviewed {
    /// About which step.
    pub step: StepId,
    /// Where the step stands.
    pub step_status: StepStatus,
    /// Of which plan.
    pub plan: PlanId,
    /// Where the plan stands.
    pub plan_status: PlanStatus,
    /// What the agent is to do, where that was changed.
    pub instructions: Option<String>,
}

impl Engine {
    /// Records that somebody works on a step.
    pub async fn report_progress(
        &self,
        caller: &Caller,
        progress: Progress,
    ) -> Result<Progressed, Error> {
        caller.allow(Permission::Work)?;
        let Progress {
            step,
            mut note,
            percent,
            token,
            session,
        } = progress;
        clean::maybe(&mut note);
        let (token, session) = (clean::token(token), clean::session(session));
        let moment = self.moment(caller, session.as_ref());
        let command = ReportProgress {
            step,
            sign: Sign::Reported,
            note,
            percent,
            token,
            session,
        };
        let done = self.on_step(caller, step, command.into(), moment).await?;
        let after = done.step(step);
        let own = after.and_then(|step| step.spec.stall_threshold);
        let threshold = stall_threshold(None, own, done.head.stall_threshold);
        let last = after.and_then(|step| step.work()?.last_progress_at);
        Ok(Progressed {
            step,
            last_progress_at: last.unwrap_or(Timestamp::MIN),
            stalls_at: after.and_then(|step| stalls_at(step, threshold)),
            plan_status: done.head.status(),
        })
    }

    /// Notes a sign of life that nobody reported: something was written about the step, or the
    /// guard saw the session that holds it. Recorded now and then; never refused.
    pub async fn notice(
        &self,
        caller: &Caller,
        step: StepId,
        sign: Sign,
        session: Option<SessionId>,
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let session = clean::session(session);
        let moment = self.moment(caller, session.as_ref());
        let command = ReportProgress {
            step,
            sign,
            note: None,
            percent: None,
            token: None,
            session,
        };
        self.on_step(caller, step, command.into(), moment).await?;
        Ok(())
    }

    /// Puts a question to a person; the step waits until they decide.
    pub async fn request_review(
        &self,
        caller: &Caller,
        question: Question,
    ) -> Result<Asked, Error> {
        caller.allow(Permission::Work)?;
        let Question {
            step,
            mut summary,
            mut questions,
            token,
            session,
        } = question;
        clean::text(&mut summary);
        questions.iter_mut().for_each(clean::text);
        let (token, session) = (clean::token(token), clean::session(session));
        let moment = self.moment(caller, session.as_ref());
        let review = ReviewId::new(self.fresh.timely_id(moment.now));
        let command = RequestReview {
            step,
            review,
            summary,
            questions,
            token,
            session,
        };
        let done = self.on_step(caller, step, command.into(), moment).await?;
        let plan = done.head.id;
        Ok(Asked { review, step, plan })
    }

    /// A person decides.
    pub async fn decide_review(
        &self,
        caller: &Caller,
        step: StepId,
        decision: Decision,
        mut feedback: Option<String>,
    ) -> Result<Reviewed, Error> {
        caller.allow(Permission::DecideReview)?;
        clean::maybe(&mut feedback);
        let moment = self.moment(caller, None);
        let command = DecideReview {
            step,
            decision,
            feedback,
        };
        let done = self.on_step(caller, step, command.into(), moment).await?;
        let after = done.step(step);
        let instructions = after.map(|step| step.spec.instructions.clone());
        Ok(Reviewed {
            step,
            step_status: after.map_or(StepStatus::AwaitingInput, |step| step.status()),
            plan: done.head.id,
            plan_status: done.head.status(),
            instructions: instructions.filter(|_| decision == Decision::Modify),
        })
    }

    /// Runs a command about one step. What is refused is kept, and the refusal says where.
    pub(crate) async fn on_step(
        &self,
        caller: &Caller,
        step: StepId,
        command: Command,
        moment: Moment,
    ) -> Result<Done, Error> {
        let command = Arc::new(command);
        let outcome = self.store.advance(&caller.tenant, move |tx| {
            let (command, moment) = (Arc::clone(&command), moment.clone());
            Box::pin(async move {
                let outcome = run(tx, Target::Step(step), &command, &moment, None).await?;
                Ok::<_, Error>(match outcome {
                    Outcome::Done(done) => Ok(done),
                    Outcome::NotFound => {
                        let code = onward_core::Code::StepNotFound;
                        let kept = late::keep(tx, &command, None, code, &moment, None).await?;
                        let step = step.to_string();
                        Err(Error::StepNotFound { step, kept })
                    }
                    Outcome::Refused { refusal, head } => {
                        let (plan, code) = (Some(head.id), refusal.code());
                        let kept = late::keep(tx, &command, plan, code, &moment, None).await?;
                        Err(Error::Refused { refusal, kept })
                    }
                })
            })
        });
        let done = outcome.await??;
        self.alarm.ring(done.due);
        Ok(done)
    }
}
