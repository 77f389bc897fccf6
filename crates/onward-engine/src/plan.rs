//! What people do to a plan as a whole: go on with it, give it up, delete it; and a session that
//! takes it up.

use std::sync::Arc;

use onward_core::command::{AbandonPlan, ResumeSession};
use onward_core::id::SessionId;
use onward_core::role::Permission;
use onward_core::{Command, PlanId, PlanStatus};
use onward_store::{Author, LogLine, Sheet};
use serde_json::json;

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{Done, Moment, Outcome, Target, run};

impl Engine {
    /// Goes on with a stalled plan.
    pub async fn resume_plan(&self, caller: &Caller, plan: PlanId) -> Result<PlanStatus, Error> {
        caller.allow(Permission::Intervene)?;
        let moment = self.moment(caller, None);
        let done = self.on_plan(caller, plan, Command::ResumePlan, moment);
        Ok(done.await?.head.status())
    }

    /// Gives a plan up.
    pub async fn abandon_plan(
        &self,
        caller: &Caller,
        plan: PlanId,
        mut reason: Option<String>,
    ) -> Result<PlanStatus, Error> {
        caller.allow(Permission::AbandonPlan)?;
        clean::maybe(&mut reason);
        let moment = self.moment(caller, None);
        let command = AbandonPlan { reason };
        let done = self.on_plan(caller, plan, command.into(), moment);
        Ok(done.await?.head.status())
    }

    /// Notes that a session takes a plan up which another one worked on. Once per session.
    pub async fn take_up(
        &self,
        caller: &Caller,
        plan: PlanId,
        session: SessionId,
    ) -> Result<(), Error> {
        caller.allow(Permission::Work)?;
        let Some(session) = clean::session(Some(session)) else {
            return Ok(());
        };
        let moment = self.moment(caller, Some(&session));
        let command = ResumeSession { session };
        self.on_plan(caller, plan, command.into(), moment).await?;
        Ok(())
    }

    /// Deletes a plan with its steps and its trail. Its artifacts stay; the tenant's log says that
    /// it was there.
    pub async fn delete_plan(&self, caller: &Caller, plan: PlanId) -> Result<Sheet, Error> {
        caller.allow(Permission::DeletePlan)?;
        self.delete(caller, plan, "plan_deleted").await
    }

    /// Deletes a plan, for the reason that the log shall give.
    pub(crate) async fn delete(
        &self,
        caller: &Caller,
        plan: PlanId,
        action: &'static str,
    ) -> Result<Sheet, Error> {
        let (now, actor) = (self.now(), caller.signature());
        let id = self.fresh.timely_id(now);
        let deleted = self.store.write(&caller.tenant, move |tx| {
            let actor = actor.clone();
            Box::pin(async move {
                // Held until the commit, so that nobody adds to the trail meanwhile.
                tx.plan(plan).await?;
                let sheet = tx.sheet(plan).await?;
                let sheet = sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                tx.delete_plan(plan);
                tx.log_line(&LogLine {
                    id,
                    at: now,
                    actor,
                    action: action.to_owned(),
                    details: json!({
                        "planId": plan.to_string(),
                        "name": sheet.brief.name,
                        "status": sheet.head.status().as_str(),
                        "events": sheet.head.seq,
                    }),
                });
                Ok::<Sheet, Error>(sheet)
            })
        });
        deleted.await
    }

    /// Runs a command about a whole plan.
    pub(crate) async fn on_plan(
        &self,
        caller: &Caller,
        plan: PlanId,
        command: Command,
        moment: Moment,
    ) -> Result<Done, Error> {
        let command = Arc::new(command);
        let done = self.store.write(&caller.tenant, move |tx| {
            let (command, moment) = (Arc::clone(&command), moment.clone());
            Box::pin(async move {
                match run(tx, Target::Plan(plan), &command, &moment, None).await? {
                    Outcome::Done(done) => Ok(done),
                    Outcome::Refused { refusal, .. } => Err(refusal.into()),
                    Outcome::NotFound => Err(Error::PlanNotFound(plan.to_string())),
                }
            })
        });
        let done = done.await?;
        self.alarm.ring(done.due);
        Ok(done)
    }

    pub(crate) fn moment(&self, caller: &Caller, session: Option<&SessionId>) -> Moment {
        let author: Author = caller.author(session);
        Moment {
            now: self.now(),
            author,
            watcher: None,
        }
    }
}
