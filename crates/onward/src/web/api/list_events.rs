//! `list_events`: the audit trails of all plans in a time span, oldest event first, paginated.

use onward_core::PlanId;
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::get_plan_audit::{MAX_BYTES, times};
use crate::tools::{Hints, Spec, ToolContext, ToolError};
use crate::wire::event::Events;

const DEFAULT_LIMIT: u32 = 1_000;

pub(super) struct ListEvents;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Only events since this time (RFC 3339)
    since: String,
    /// Only events before this time (RFC 3339)
    until: Option<String>,
    /// Only events after this one: `planId` and `seq` of the last event, such as `PLAN/12`
    after: Option<String>,
    /// Default: 1000
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

impl Spec for ListEvents {
    type Input = Input;
    type Output = Events;

    const NAME: &'static str = "list_events";
    const TITLE: &'static str = "List events";
    const DESCRIPTION: &'static str = "Events of all plans in a time span, oldest first. For the next \
        page, set `after` to `planId/seq` of the last event, until a page is empty.";
    const HINTS: Hints = Hints::READ_ONLY;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<Events, ToolError> {
        let times = times(Some(&input.since), input.until.as_deref())?;
        let after = input.after.as_deref().map(parse_event).transpose()?;
        let limit = input.limit.unwrap_or(DEFAULT_LIMIT);
        let events = context
            .engine
            .audit_between(caller, times, after, limit, Some(MAX_BYTES))
            .await?;
        Ok(Events::new(events))
    }
}

/// `PLAN/SEQ`, which names the last event of a page.
fn parse_event(after: &str) -> Result<(PlanId, u64), ToolError> {
    let event = after
        .split_once('/')
        .and_then(|(plan, seq)| Some((plan.parse().ok()?, seq.parse().ok()?)));
    event.ok_or_else(|| {
        ToolError::invalid(
            "after",
            "must be the `planId` and the `seq` of an event, such as `PLAN/12`",
        )
    })
}
