//! `list_active_plans`: the plans, a page at a time, the newest change first.

use onward_core::Timestamp;
use onward_engine::list::PlanQuery;
use onward_engine::{Caller, PlanCursor};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Desk, Hints, Refused, Spec};
use crate::wire::plan::Plans;

/// How many plans a page holds, where nobody says otherwise.
const PAGE: u32 = 20;

pub(super) struct ListActivePlans;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Default 20
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// `nextCursor` of the page before
    cursor: Option<String>,
    include_finished: Option<bool>,
    /// Words in name or question
    query: Option<String>,
}

impl Spec for ListActivePlans {
    type Input = Input;
    type Output = Plans;

    const NAME: &'static str = "list_active_plans";
    const TITLE: &'static str = "List plans";
    const DESCRIPTION: &'static str =
        "Find plans to go on with, newest change first. Call it when you have no `planId`.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = true;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Plans, Refused> {
        let query = PlanQuery {
            limit: input.limit.unwrap_or(PAGE),
            behind: input.cursor.as_deref().map(read).transpose()?,
            finished: input.include_finished.unwrap_or(false),
            status: None,
            text: input.query,
        };
        let page = desk.engine.list_plans(caller, query).await?;
        let next = page.next.as_ref().map(written);
        Ok(Plans::of(&page).with_cursor(next))
    }
}

fn written(cursor: &PlanCursor) -> String {
    format!("{}.{}", cursor.updated_at.as_millis(), cursor.plan)
}

fn read(cursor: &str) -> Result<PlanCursor, Refused> {
    let parts = cursor.split_once('.');
    let parsed = parts.and_then(|(at, plan)| {
        Some(PlanCursor {
            updated_at: Timestamp::from_millis(at.parse().ok()?),
            plan: plan.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| Refused::invalid("cursor", "is no `nextCursor` of this list"))
}
