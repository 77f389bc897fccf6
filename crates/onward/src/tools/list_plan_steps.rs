//! `list_plan_steps`: the steps of a plan in their order, a page at a time.

use onward_core::StepStatus;
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::step::Steps;

/// How many steps a page holds, where nobody says otherwise.
const PAGE: u32 = 100;

pub(super) struct ListPlanSteps;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
    /// Default 100
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// `nextCursor` of the page before
    cursor: Option<String>,
    status: Option<Status>,
}

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
    const TITLE: &'static str = "List a plan's steps";
    const DESCRIPTION: &'static str = "List a plan's steps with ids, orders and results. For long plans, and before `modify_plan`.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Steps, Refused> {
        let plan = given::plan(&input.plan_id)?;
        let behind = match input.cursor.as_deref().map(str::parse) {
            None => 0,
            Some(Ok(order)) => order,
            Some(Err(_)) => {
                let message = "is no `nextCursor` of this list";
                return Err(Refused::invalid("cursor", message));
            }
        };
        let status = input.status.map(StepStatus::from);
        let limit = input.limit.unwrap_or(PAGE);
        let page = desk.engine.list_steps(caller, plan, status, behind, limit);
        Ok(Steps::of(plan, &page.await?))
    }
}
