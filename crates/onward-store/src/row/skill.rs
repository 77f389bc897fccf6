//! Row of a skill execution.

use onward_core::id::{SessionId, SkillExecutionId};
use onward_core::skill::{SkillExecution, SkillState, SkillStatus};
use onward_core::{PlanId, Timestamp};
use serde_json::Value as Json;

use super::mirror;
use crate::error::Error;
use crate::value::{Cells, Row, Value, params};

/// Reads a row of `{skill}`.
pub(crate) fn skill(row: Row) -> Result<SkillExecution, Error> {
    let mut cells = row.cells("skill_executions");
    let id = SkillExecutionId::new(cells.id("execution_id")?);
    let skill = cells.string("skill_name")?;
    let status: SkillStatus = cells.word("status")?;
    let session = cells.maybe_text("session")?.map(SessionId::new);
    let plan = cells.maybe_id("plan_id")?.map(PlanId::new);
    let metadata = mirror(&mut cells, "metadata")?;
    let error = cells.maybe_string("error_message")?;
    let started_at = cells.at("started_at")?;
    let updated_at = cells.at("updated_at")?;
    let ended_at = cells.maybe_at("ended_at")?;
    Ok(SkillExecution {
        id,
        skill,
        session,
        plan,
        metadata,
        state: state(&cells, status, ended_at, error)?,
        started_at,
        updated_at,
    })
}

fn state(
    cells: &Cells,
    status: SkillStatus,
    ended_at: Option<Timestamp>,
    error: Option<String>,
) -> Result<SkillState, Error> {
    let ended_at = || {
        let why = || format!("is empty on an execution that is `{status}`");
        ended_at.ok_or_else(|| cells.corrupt("ended_at", why()))
    };
    Ok(match status {
        SkillStatus::Started => SkillState::Started,
        SkillStatus::Executing => SkillState::Executing,
        SkillStatus::Completed => SkillState::Completed {
            ended_at: ended_at()?,
        },
        SkillStatus::Failed => SkillState::Failed {
            ended_at: ended_at()?,
            error,
        },
    })
}

/// The id, then all columns that a report can change.
pub(crate) fn changing(execution: &SkillExecution) -> Vec<Value> {
    let error = match &execution.state {
        SkillState::Failed { error, .. } => error.as_deref(),
        SkillState::Started | SkillState::Executing | SkillState::Completed { .. } => None,
    };
    params![
        execution.id.as_uuid(),
        execution.status().as_str(),
        execution.session.as_ref().map(SessionId::as_str),
        execution.plan.map(|plan| *plan.as_uuid()),
        &Json::Object(execution.metadata.clone()),
        error,
        execution.updated_at,
        execution.ended_at(),
    ]
}

/// All other columns of the row, besides those of [`changing`].
pub(crate) fn fixed(execution: &SkillExecution) -> Vec<Value> {
    params![&execution.skill, execution.started_at]
}
