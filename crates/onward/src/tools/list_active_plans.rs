//! `list_active_plans`: lists plans page by page, most recently changed first.

use onward_core::policy::{MAX_CURSOR, MAX_SEARCH, MAX_SESSION_ID, MAX_TIME};
use onward_core::routing::{MAX_LABEL, MAX_PROJECT_KEY};
use onward_core::{PlanStatus, Timestamp};
use onward_engine::context::MAX_CHARS;
use onward_engine::list::{Archived, PlanQuery};
use onward_engine::{Caller, PlanCursor};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::plan::Plans;

const DEFAULT_LIMIT: u32 = 20;
/// Characters of a status.
const MAX_STATUS: usize = 20;
/// Characters of a list apart from its entries.
const LIST_CHARS: usize = 300;

pub(super) struct ListActivePlans;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Page size; default 20
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// Previous `nextCursor`
    #[schemars(length(max = MAX_CURSOR))]
    cursor: Option<String>,
    /// Include completed and failed plans
    include_finished: Option<bool>,
    /// Words in name or question
    #[schemars(length(max = MAX_SEARCH))]
    query: Option<String>,
    /// Project
    #[schemars(length(max = MAX_PROJECT_KEY))]
    project_key: Option<String>,
    /// Label
    #[schemars(length(max = MAX_LABEL))]
    label: Option<String>,
    /// Status
    #[schemars(length(max = MAX_STATUS))]
    status: Option<String>,
    /// Owner
    #[schemars(length(max = MAX_SESSION_ID))]
    owner: Option<String>,
    /// Changed since, RFC 3339
    #[schemars(length(max = MAX_TIME))]
    since: Option<String>,
    /// Response size limit; default 7900
    #[schemars(range(min = 1, max = MAX_CHARS))]
    max_chars: Option<usize>,
}

impl Spec for ListActivePlans {
    type Input = Input;
    type Output = Plans;

    const NAME: &'static str = "list_active_plans";
    const TITLE: &'static str = "List plans (task lists) to resume";
    const DESCRIPTION: &'static str = "List unfinished plans, most recently changed first, \
        to find the `planId` to resume.";
    const HINTS: Hints = Hints::READ_ONLY;
    const IN_CORE: bool = true;
    const HAS_MAX_CHARS: bool = true;
    const UNLISTED: &'static [&'static str] = &["/properties/maxChars"];
    const UNLISTED_IN_CORE: &'static [&'static str] = &[
        "/properties/projectKey",
        "/properties/label",
        "/properties/status",
        "/properties/owner",
        "/properties/since",
    ];

    async fn run(context: &ToolContext, caller: &Caller, input: Input) -> Result<Plans, ToolError> {
        let query = PlanQuery {
            limit: input.limit.unwrap_or(DEFAULT_LIMIT),
            after: input.cursor.as_deref().map(parse_cursor).transpose()?,
            finished: input.include_finished.unwrap_or(false),
            status: input.status.as_deref().map(parse_status).transpose()?,
            text: input.query,
            project_key: input.project_key,
            label: input.label,
            owner: input.owner,
            since: params::timestamp(input.since, "since")?,
            archived: Archived::when(input.include_finished.unwrap_or(false)),
            unfinished_lists: None,
        };
        let page = context.engine.list_plans(caller, query).await?;
        let max_chars = input.max_chars.unwrap_or(Self::DEFAULT_CHARS);
        let mut plans = Plans::new(&page);
        let fitting = plans.limit_chars(max_chars.saturating_sub(LIST_CHARS));
        let next = if fitting < page.plans.len() {
            fitting
                .checked_sub(1)
                .and_then(|last| page.cursor_after(last))
        } else {
            page.next
        };
        Ok(plans.with_cursor(next.as_ref().map(format_cursor)))
    }
}

fn parse_status(status: &str) -> Result<PlanStatus, ToolError> {
    status.parse().map_err(|_| {
        let all = PlanStatus::ALL.map(PlanStatus::as_str).join("`, `");
        ToolError::invalid("status", format!("must be one of `{all}`"))
    })
}

fn format_cursor(cursor: &PlanCursor) -> String {
    format!("{}.{}", cursor.acted_at.as_millis(), cursor.plan)
}

fn parse_cursor(cursor: &str) -> Result<PlanCursor, ToolError> {
    let parts = cursor.split_once('.');
    let parsed = parts.and_then(|(at, plan)| {
        Some(PlanCursor {
            acted_at: Timestamp::from_millis(at.parse().ok()?),
            plan: plan.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| ToolError::invalid("cursor", "is not a `nextCursor` of this list"))
}
