//! `list_plan_steps`: lists the steps of a plan in order, page by page.

use onward_core::StepStatus;
use onward_core::policy::MAX_CURSOR;
use onward_engine::Caller;
use onward_engine::context::MAX_CHARS;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::step::Steps;

const DEFAULT_LIMIT: u32 = 100;
/// Maximum characters of a step without its report, and of the response around it.
const MAX_STEP_CHARS: usize = 2_000;

pub(super) struct ListPlanSteps;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Plan id
    plan_id: String,
    /// Page size; default 100
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// Previous `nextCursor`
    #[schemars(length(max = MAX_CURSOR))]
    cursor: Option<String>,
    status: Option<Status>,
    /// Include each `stepExecutionReport`
    include_reports: Option<bool>,
    /// Response size limit; default 7900
    #[schemars(range(min = 1, max = MAX_CHARS))]
    max_chars: Option<usize>,
}

/// pending: not started; in_progress: claimed; awaiting_input: under review; completed: has a result;
/// skipped: by a branch or a decision; failed: no result
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    AwaitingInput,
    Completed,
    Skipped,
    Failed,
}

impl From<Status> for StepStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => StepStatus::Pending,
            Status::InProgress => StepStatus::InProgress,
            Status::AwaitingInput => StepStatus::AwaitingInput,
            Status::Completed => StepStatus::Completed,
            Status::Skipped => StepStatus::Skipped,
            Status::Failed => StepStatus::Failed,
        }
    }
}

impl Spec for ListPlanSteps {
    type Input = Input;
    type Output = Steps;

    const NAME: &'static str = "list_plan_steps";
    const TITLE: &'static str = "List the steps (tasks) of a plan";
    const DESCRIPTION: &'static str = "List the steps (tasks) of a plan with their ids, orders, \
        statuses and result summaries. Call it before `modify_plan` to get the step ids.";
    const HINTS: Hints = Hints::READ_ONLY;
    const HAS_MAX_CHARS: bool = true;
    const UNLISTED: &'static [&'static str] = &["/properties/maxChars"];

    async fn run(context: &ToolContext, caller: &Caller, input: Input) -> Result<Steps, ToolError> {
        let plan = params::plan_id(&input.plan_id)?;
        let after = match input.cursor.as_deref().map(str::parse) {
            None => 0,
            Some(Ok(order)) => order,
            Some(Err(_)) => {
                let message = "is not a `nextCursor` of this list";
                return Err(ToolError::invalid("cursor", message));
            }
        };
        let status = input.status.map(StepStatus::from);
        let limit = input.limit.unwrap_or(DEFAULT_LIMIT);
        let page = context
            .engine
            .list_steps(caller, plan, status, after, limit);
        let page = page.await?;
        let max_chars = input.max_chars.unwrap_or(Self::DEFAULT_CHARS);
        let mut reports = Vec::new();
        if input.include_reports.unwrap_or(false)
            && let (Some(first), Some(last)) = (page.steps.first(), page.steps.last())
        {
            // A longer report does not fit into the response with its step.
            let bytes = max_chars.saturating_sub(MAX_STEP_CHARS);
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            let orders = (first.order, last.order);
            reports = context
                .engine
                .step_reports(caller, plan, orders, bytes)
                .await?;
        }
        Ok(Steps::new(plan, &page, reports, max_chars))
    }
}
