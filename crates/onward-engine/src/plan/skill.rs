//! Skill executions: their start, their end, and the plan they are linked to.
//!
//! The audit trail of a linked plan records the start and the end in the same transaction. A plan
//! created in a session is linked to the session's most recently started skill execution, even if
//! an earlier plan was; `create.rs` calls `link` for that.

mod queries;

use std::time::Duration;

use onward_core::command::{LogSkill, ReportSkill};
use onward_core::decide::report_skill::{self, SkillReportOutcome};
use onward_core::id::{SessionId, SkillExecutionId};
use onward_core::role::Permission;
use onward_core::skill::{SkillExecution, SkillStatus};
use onward_core::{Command, Event, PlanId};
use onward_store::{Entry, Skills, Tx};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::{Error, ObjectKind};
use crate::run::{CommandContext, CommandOutcome, Target, run};
use crate::sanitize;
pub use queries::{SkillPage, SkillQuery, SkillStats};

/// Maximum number of a plan's skill executions that are read for output formatting.
pub(crate) const MAX_FORMATTING_SKILLS: u32 = 20;

/// Response to a skill report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillResponse {
    /// The execution.
    pub execution: SkillExecutionId,
    /// Its status.
    pub status: SkillStatus,
    /// The linked plan.
    pub plan: Option<PlanId>,
    /// Duration, once the execution has ended.
    pub duration: Option<Duration>,
}

impl Engine {
    /// Records a report about a skill execution. Without `execution`, starts one.
    pub async fn log_skill(
        &self,
        caller: &Caller,
        execution: Option<SkillExecutionId>,
        mut report: ReportSkill,
    ) -> Result<SkillResponse, Error> {
        caller.allow(Permission::Work)?;
        sanitize::skill(&mut report)?;
        let ctx = self.command_context(caller, report.session.as_ref());
        let fresh = SkillExecutionId::new(self.ids.ordered_id(ctx.now));
        let logged = self.store.write(&caller.tenant, move |tx| {
            let (report, ctx) = (report.clone(), ctx.clone());
            Box::pin(async move {
                let Some(id) = execution else {
                    let reported = report_skill::start(fresh, &report, ctx.now)?;
                    Skills(tx).add_skill(&reported.execution);
                    return append_events(tx, reported, &ctx, None).await;
                };
                let known = Skills(tx).skill(id).await?.ok_or_else(|| Error::NotFound {
                    kind: ObjectKind::SkillExecution,
                    name: id.to_string(),
                })?;
                let reported = report_skill::update(&known, &report, ctx.now)?;
                Skills(tx).change_skill(&reported.execution);
                append_events(tx, reported, &ctx, None).await
            })
        });
        let execution = logged.await?;
        Ok(SkillResponse {
            execution: execution.id,
            status: execution.status(),
            plan: execution.plan,
            duration: execution.duration(),
        })
    }
}

/// Links the skill execution that a session has started most recently, if there is one, to the
/// session's new plan. An execution is linked to one plan: the link to an earlier plan is replaced.
pub(crate) async fn link(
    tx: &mut Tx,
    session: &SessionId,
    plan: PlanId,
    ctx: &CommandContext,
    commit_seq: u64,
) -> Result<Option<SkillExecutionId>, Error> {
    let Some(known) = Skills(tx).started_skill(session).await? else {
        return Ok(None);
    };
    let linked = report_skill::link(&known, plan, ctx.now);
    Skills(tx).change_skill(&linked.execution);
    let linked = append_events(tx, linked, ctx, Some(commit_seq)).await?;
    Ok(Some(linked.id))
}

/// Appends the execution's events to the linked plan's audit trail.
async fn append_events(
    tx: &mut Tx,
    reported: SkillReportOutcome,
    ctx: &CommandContext,
    mut commit_seq: Option<u64>,
) -> Result<SkillExecution, Error> {
    let SkillReportOutcome { execution, phases } = reported;
    let Some(plan) = execution.plan else {
        return Ok(execution);
    };
    for phase in phases {
        let command = Command::from(LogSkill {
            execution: execution.id,
            skill: execution.skill.clone(),
            phase,
        });
        match run(tx, Target::Plan(plan), &command, ctx, commit_seq).await? {
            CommandOutcome::Applied(done) => commit_seq = Some(done.commit_seq),
            CommandOutcome::Rejected { refusal, .. } => return Err(refusal.into()),
            CommandOutcome::NotFound => return Err(Error::PlanNotFound(plan.to_string())),
        }
    }
    Ok(execution)
}

/// How an execution differs from the audit trail of its linked plan. `None` if it matches.
pub(crate) fn audit_mismatch(
    execution: &SkillExecution,
    entries: &[Entry],
) -> Option<&'static str> {
    let (mut started, mut ended) = (false, false);
    for entry in entries {
        let (Event::SkillStarted {
            execution: id,
            skill,
        }
        | Event::SkillCompleted {
            execution: id,
            skill,
            ..
        }) = &entry.event
        else {
            continue;
        };
        if *id == execution.id {
            if *skill != execution.skill {
                return Some("has a different skill name than its events in the audit trail");
            }
            started |= matches!(entry.event, Event::SkillStarted { .. });
            ended |= matches!(entry.event, Event::SkillCompleted { .. });
        }
    }
    if !started {
        return Some("has no start event in the audit trail");
    }
    (ended != execution.status().is_terminal())
        .then_some("has a status that does not match the audit trail")
}

/// Media type and formatting instructions for a plan's output, from its skills. `skills` is ordered
/// by start time, most recent first; the first skill that specifies a value wins.
pub(crate) fn output_formatting(skills: &[SkillExecution]) -> (Option<String>, Option<String>) {
    let first = |field: fn(&SkillExecution) -> Option<&str>| {
        let first = skills.iter().find_map(field);
        first.map(str::to_owned)
    };
    (
        first(SkillExecution::output_media_type),
        first(SkillExecution::output_formatting),
    )
}
