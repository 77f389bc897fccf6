//! `get_plan_audit`: the audit trail of a plan, oldest event first, paginated.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::event::Audit;

const DEFAULT_LIMIT: u32 = 1_000;
/// Bytes of the events of a page. A response has at most 40,000 characters.
const MAX_BYTES: u64 = 64 * 1024;

pub(super) struct GetPlanAudit;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
    /// Only events after this `seq`
    #[schemars(range(min = 0))]
    after: Option<u64>,
    /// Default: 1000
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

impl Spec for GetPlanAudit {
    type Input = Input;
    type Output = Audit;

    const NAME: &'static str = "get_plan_audit";
    const TITLE: &'static str = "Get a plan's audit trail";
    const DESCRIPTION: &'static str = "All events of a plan, oldest first. For the next page, set \
        `after` to the last `seq`, until a page is empty.";
    const HINTS: Hints = Hints::READ_ONLY;

    async fn run(context: &ToolContext, caller: &Caller, input: Input) -> Result<Audit, ToolError> {
        let plan = params::plan_id(&input.plan_id)?;
        let (after, limit) = (
            input.after.unwrap_or(0),
            input.limit.unwrap_or(DEFAULT_LIMIT),
        );
        let events = context
            .engine
            .audit_page(caller, plan, after, limit, MAX_BYTES)
            .await?;
        Ok(Audit::new(plan, events))
    }
}
