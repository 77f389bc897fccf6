//! `get_plan_audit`: the audit trail of a plan, oldest event first, paginated.

use std::ops::Range;

use onward_core::Timestamp;
use onward_engine::Caller;
use onward_engine::audit::ALL_TIMES;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::event::Audit;

const DEFAULT_LIMIT: u32 = 1_000;
/// Bytes of the events of a page. A response has at most 40,000 characters.
pub(super) const MAX_BYTES: u64 = 64 * 1024;

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
    /// Only events since this time (RFC 3339)
    since: Option<String>,
    /// Only events before this time (RFC 3339)
    until: Option<String>,
}

/// The times from `since` until `until`.
pub(super) fn times(
    since: Option<&str>,
    until: Option<&str>,
) -> Result<Range<Timestamp>, ToolError> {
    let time = |field: &str, text: &str| {
        text.parse()
            .map_err(|_| ToolError::invalid(field, "must be an RFC 3339 time"))
    };
    let since = since.map(|text| time("since", text)).transpose()?;
    let until = until.map(|text| time("until", text)).transpose()?;
    Ok(since.unwrap_or(ALL_TIMES.start)..until.unwrap_or(ALL_TIMES.end))
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
        let times = times(input.since.as_deref(), input.until.as_deref())?;
        let (after, limit) = (
            input.after.unwrap_or(0),
            input.limit.unwrap_or(DEFAULT_LIMIT),
        );
        let events = context
            .engine
            .audit_page(caller, plan, times, after, limit, MAX_BYTES)
            .await?;
        Ok(Audit::new(plan, events))
    }
}
