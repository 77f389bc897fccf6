//! Completion of `planId` in prompts and resource templates: unfinished plans whose id starts with
//! the text or whose name contains it.

use onward_engine::list::PlanQuery;
use onward_engine::{Caller, Engine};
use rmcp::model::{ArgumentInfo, CompleteResult, CompletionInfo, ErrorData};

use super::protocol_error;

/// Plans searched.
const MAX_PLANS: u32 = 500;
/// Completions returned.
const MAX_VALUES: usize = 20;

pub(super) async fn complete(
    engine: &Engine,
    caller: &Caller,
    argument: &ArgumentInfo,
) -> Result<CompleteResult, ErrorData> {
    if argument.name != "planId" {
        return Ok(CompleteResult::default());
    }
    let query = PlanQuery {
        limit: MAX_PLANS,
        ..PlanQuery::default()
    };
    let page = engine.list_plans(caller, query).await;
    let page = page.map_err(protocol_error)?;
    let typed = argument.value.to_lowercase();
    let matches = page.plans.iter().filter_map(|listed| {
        let id = listed.sheet.head.id.to_string();
        let name = listed.sheet.brief.name.to_lowercase();
        (id.starts_with(&typed) || name.contains(&typed)).then_some(id)
    });
    let mut values: Vec<String> = matches.take(MAX_VALUES + 1).collect();
    let more = values.len() > MAX_VALUES;
    values.truncate(MAX_VALUES);
    let total = u32::try_from(values.len()).ok().filter(|_| !more);
    let info = CompletionInfo::with_pagination(values, total, more)
        .map_err(|why| ErrorData::internal_error(why, None))?;
    Ok(CompleteResult::new(info))
}
