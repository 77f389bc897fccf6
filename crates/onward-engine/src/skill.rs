//! Executions of agents' skills: when they began, how they ended, and the plan that they belong to.
//!
//! Where an execution is linked to a plan, the plan's trail says when it began and ended, in the same
//! transaction. A plan that is made in a session is linked to the skill that the session has started
//! and not yet linked; `create.rs` asks for that here.

mod shown;

use std::time::Duration;

use onward_core::command::{LogSkill, ReportSkill};
use onward_core::decide::report_skill::{self, Reported};
use onward_core::id::{SessionId, SkillExecutionId};
use onward_core::role::Permission;
use onward_core::skill::{SkillExecution, SkillStatus};
use onward_core::{Command, Event, PlanId};
use onward_store::{Entry, Tx};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{Moment, Outcome, Target, run};
pub use shown::{SkillFigures, SkillPage, SkillQuery};

/// How many of a plan's executions are asked how its output should look.
pub(crate) const ASKED: u32 = 20;

/// What became of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillLogged {
    /// Which execution.
    pub execution: SkillExecutionId,
    /// Where it stands.
    pub status: SkillStatus,
    /// The plan that it is linked to.
    pub plan: Option<PlanId>,
    /// How long it took, once it has ended.
    pub duration: Option<Duration>,
}

impl Engine {
    /// Notes a report about a skill's execution; without an execution, it starts one.
    pub async fn log_skill(
        &self,
        caller: &Caller,
        execution: Option<SkillExecutionId>,
        mut report: ReportSkill,
    ) -> Result<SkillLogged, Error> {
        caller.allow(Permission::Work)?;
        clean::skill(&mut report)?;
        let moment = self.moment(caller, report.session.as_ref());
        let fresh = SkillExecutionId::new(self.fresh.timely_id(moment.now));
        let logged = self.store.write(&caller.tenant, move |tx| {
            let (report, moment) = (report.clone(), moment.clone());
            Box::pin(async move {
                let Some(id) = execution else {
                    let reported = report_skill::start(fresh, &report, moment.now)?;
                    tx.add_skill(&reported.execution);
                    return note(tx, reported, &moment, None).await;
                };
                let known = tx.skill(id).await?.ok_or_else(|| Error::NotFound {
                    what: "skill execution",
                    name: id.to_string(),
                })?;
                let reported = report_skill::go_on(&known, &report, moment.now)?;
                tx.change_skill(&reported.execution);
                note(tx, reported, &moment, None).await
            })
        });
        let execution = logged.await?;
        Ok(SkillLogged {
            execution: execution.id,
            status: execution.status(),
            plan: execution.plan,
            duration: execution.duration(),
        })
    }
}

/// Links a plan that was just made to what its session has started, where there is anything.
pub(crate) async fn link(
    tx: &mut Tx,
    session: &SessionId,
    plan: PlanId,
    moment: &Moment,
    commit_seq: u64,
) -> Result<Option<SkillExecutionId>, Error> {
    let Some(known) = tx.free_skill(session).await? else {
        return Ok(None);
    };
    let linked = report_skill::link(&known, plan, moment.now);
    tx.change_skill(&linked.execution);
    let linked = note(tx, linked, moment, Some(commit_seq)).await?;
    Ok(Some(linked.id))
}

/// Writes into the trail of the plan what it must say about the execution.
async fn note(
    tx: &mut Tx,
    reported: Reported,
    moment: &Moment,
    mut commit_seq: Option<u64>,
) -> Result<SkillExecution, Error> {
    let Reported { execution, phases } = reported;
    let Some(plan) = execution.plan else {
        return Ok(execution);
    };
    for phase in phases {
        let command = Command::from(LogSkill {
            execution: execution.id,
            skill: execution.skill.clone(),
            phase,
        });
        match run(tx, Target::Plan(plan), &command, moment, commit_seq).await? {
            Outcome::Done(done) => commit_seq = Some(done.commit_seq),
            Outcome::Refused { refusal, .. } => return Err(refusal.into()),
            Outcome::NotFound => return Err(Error::PlanNotFound(plan.to_string())),
        }
    }
    Ok(execution)
}

/// Where an execution says something else than the trail of the plan that it is linked to.
pub(crate) fn unlike_trail(execution: &SkillExecution, trail: &[Entry]) -> Option<&'static str> {
    let (mut began, mut ended) = (false, false);
    for entry in trail {
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
                return Some("is of another skill than the trail says");
            }
            began |= matches!(entry.event, Event::SkillStarted { .. });
            ended |= matches!(entry.event, Event::SkillCompleted { .. });
        }
    }
    if !began {
        return Some("has no start in the trail");
    }
    (ended != execution.status().is_terminal()).then_some("ended otherwise than the trail says")
}

/// What the skills of a plan say about its output: its media type, and how it should look. Of
/// several that say something, the one that started last is heard: they come in that order.
pub(crate) fn output(skills: &[SkillExecution]) -> (Option<String>, Option<String>) {
    let said = |what: fn(&SkillExecution) -> Option<&str>| {
        let said = skills.iter().find_map(what);
        said.map(str::to_owned)
    };
    (
        said(SkillExecution::output_media_type),
        said(SkillExecution::output_formatting),
    )
}
