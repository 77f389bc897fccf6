//! `log_skill_execution`: records the start, progress and end of an agent skill.

use onward_core::command::ReportSkill;
use onward_core::policy::{MAX_REMARK, MAX_SESSION_ID, MAX_SKILL_NAME};
use onward_core::skill::SkillStatus;
use onward_engine::{Caller, Error, ObjectKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::skill::SkillReceipt;

pub(super) struct LogSkillExecution;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Name of the skill
    #[schemars(length(min = 1, max = MAX_SKILL_NAME))]
    skill_name: String,
    status: Status,
    /// From the response to `started`; required for every other status
    execution_id: Option<String>,
    /// Session id; the next plan created in that session is linked
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
    /// Plan the skill works on
    plan_id: Option<String>,
    /// Any data, at most 64 KiB as JSON; `outputMediaType` and `outputFormattingInstructions` are
    /// returned with `plan_complete`
    metadata: Option<Map<String, Value>>,
    /// Why it failed; only with failed
    #[schemars(length(max = MAX_REMARK))]
    error_message: Option<String>,
}

/// started: new execution, without `executionId`; executing: still running; completed: succeeded;
/// failed: ended with an error
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
    type Output = SkillReceipt;

    const NAME: &'static str = "log_skill_execution";
    const TITLE: &'static str = "Log a skill execution";
    const DESCRIPTION: &'static str = "Record that you started a skill (a reusable procedure), and \
        later how it ended. Call it with `started` before `create_research_plan` to link the plan.";
    const HINTS: Hints = Hints::ADDITIVE;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<SkillReceipt, ToolError> {
        let execution = match &input.execution_id {
            None => None,
            Some(id) => Some(id.parse().map_err(|_| Error::NotFound {
                kind: ObjectKind::SkillExecution,
                name: params::truncated(id),
            })?),
        };
        let report = ReportSkill {
            skill: input.skill_name,
            status: input.status.into(),
            plan: input.plan_id.as_deref().map(params::plan_id).transpose()?,
            session: params::session_id(input.session_id),
            metadata: input.metadata.unwrap_or_default(),
            error: input.error_message,
        };
        let logged = context.engine.log_skill(caller, execution, report).await?;
        Ok(SkillReceipt::new(&logged))
    }
}
