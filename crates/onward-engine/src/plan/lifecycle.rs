//! Commands on a whole plan: resume, abandon, delete; and a session that takes over a plan.

use std::sync::Arc;

use onward_core::command::{AbandonPlan, ResumeSession};
use onward_core::id::SessionId;
use onward_core::role::Permission;
use onward_core::{Command, PlanId, PlanStatus};
use onward_store::{Author, Facts, LogLine, Plans, Sheet, Tenants};
use serde_json::json;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{Applied, CommandContext, CommandOutcome, Target, run};
use crate::sanitize;

impl Engine {
    /// Resumes a stalled plan.
    pub async fn resume_plan(&self, caller: &Caller, plan: PlanId) -> Result<PlanStatus, Error> {
        caller.allow(Permission::Intervene)?;
        let ctx = self.command_context(caller, None);
        let done = self.execute_on_plan(caller, plan, Command::ResumePlan, ctx);
        Ok(done.await?.head.status())
    }

    /// Abandons a plan.
    pub async fn abandon_plan(
        &self,
        caller: &Caller,
        plan: PlanId,
        mut reason: Option<String>,
    ) -> Result<PlanStatus, Error> {
        caller.allow(Permission::AbandonPlan)?;
        sanitize::optional_text(&mut reason);
        let ctx = self.command_context(caller, None);
        let command = AbandonPlan { reason };
        let done = self.execute_on_plan(caller, plan, command.into(), ctx);
        Ok(done.await?.head.status())
    }

    /// Records that a session continues a plan that another session worked on. Once per session.
    pub async fn record_session_resume(
        &self,
        caller: &Caller,
        plan: PlanId,
        session: SessionId,
    ) -> Result<(), Error> {
        caller.allow(Permission::Work)?;
        let Some(session) = sanitize::session(Some(session)) else {
            return Ok(());
        };
        let ctx = self.command_context(caller, Some(&session));
        let command = ResumeSession { session };
        self.execute_on_plan(caller, plan, command.into(), ctx)
            .await?;
        Ok(())
    }

    /// Deletes a plan with its steps and audit trail. Its artifacts remain, and the tenant's log
    /// records the deletion.
    pub async fn delete_plan(&self, caller: &Caller, plan: PlanId) -> Result<Sheet, Error> {
        caller.allow(Permission::DeletePlan)?;
        self.delete(caller, plan, "plan_deleted").await
    }

    /// Deletes a plan; `action` is the log entry's action.
    pub(crate) async fn delete(
        &self,
        caller: &Caller,
        plan: PlanId,
        action: &'static str,
    ) -> Result<Sheet, Error> {
        let (now, actor) = (self.now(), caller.actor());
        let id = self.ids.ordered_id(now);
        let deleted = self.store.write(&caller.tenant, move |tx| {
            let actor = actor.clone();
            Box::pin(async move {
                // Locks the plan, so that no events are added before the commit.
                Facts(tx).plan(plan).await?;
                let sheet = Plans(tx).sheet(plan).await?;
                let sheet = sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Plans(tx).delete_plan(plan);
                Tenants(tx).log_line(&LogLine {
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

    /// Executes a command on a plan.
    pub(crate) async fn execute_on_plan(
        &self,
        caller: &Caller,
        plan: PlanId,
        command: Command,
        ctx: CommandContext,
    ) -> Result<Applied, Error> {
        let command = Arc::new(command);
        let done = self.store.write(&caller.tenant, move |tx| {
            let (command, ctx) = (Arc::clone(&command), ctx.clone());
            Box::pin(async move {
                match run(tx, Target::Plan(plan), &command, &ctx, None).await? {
                    CommandOutcome::Applied(done) => Ok(done),
                    CommandOutcome::Rejected { refusal, .. } => Err(refusal.into()),
                    CommandOutcome::NotFound => Err(Error::PlanNotFound(plan.to_string())),
                }
            })
        });
        let done = done.await?;
        self.sweep_waker.wake_by(done.due);
        Ok(done)
    }

    pub(crate) fn command_context(
        &self,
        caller: &Caller,
        session: Option<&SessionId>,
    ) -> CommandContext {
        let author: Author = caller.author(session);
        CommandContext {
            now: self.now(),
            author,
            watcher: None,
            no_agent_after: self.no_agent_after,
        }
    }
}
