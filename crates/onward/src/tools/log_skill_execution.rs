//! `log_skill_execution`: that a skill of the agent began, goes on, or ended.

use onward_core::command::ReportSkill;
use onward_core::skill::SkillStatus;
use onward_engine::{Caller, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::skill::Logged;

pub(super) struct LogSkillExecution;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    skill_name: String,
    status: Status,
    /// From the call that started it
    execution_id: Option<String>,
    session_id: Option<String>,
    plan_id: Option<String>,
    /// `outputMediaType`, `outputFormattingInstructions` reach `plan_complete`
    metadata: Option<Map<String, Value>>,
    error_message: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Started,
    Executing,
    Completed,
    Failed,
}

impl From<Status> for SkillStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Started => SkillStatus::Started,
            Status::Executing => SkillStatus::Executing,
            Status::Completed => SkillStatus::Completed,
            Status::Failed => SkillStatus::Failed,
        }
    }
}

impl Spec for LogSkillExecution {
    type Input = Input;
    type Output = Logged;

    const NAME: &'static str = "log_skill_execution";
    const TITLE: &'static str = "Log a skill";
    const DESCRIPTION: &'static str = "Log that a skill of yours started, and later how it ended. \
        Without `executionId` it starts one; a plan created in the same session is linked to it.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Logged, Refused> {
        let execution = match &input.execution_id {
            None => None,
            Some(id) => Some(id.parse().map_err(|_| Error::NotFound {
                what: "skill execution",
                name: given::cut(id),
            })?),
        };
        let report = ReportSkill {
            skill: input.skill_name,
            status: input.status.into(),
            plan: input.plan_id.as_deref().map(given::plan).transpose()?,
            session: given::session(input.session_id),
            metadata: input.metadata.unwrap_or_default(),
            error: input.error_message,
        };
        let logged = desk.engine.log_skill(caller, execution, report).await?;
        Ok(Logged::of(&logged))
    }
}
