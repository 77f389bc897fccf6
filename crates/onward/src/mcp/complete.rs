//! Completion of `planId`, for prompts and resource templates: the plans that are not over, by the
//! beginning of their id or by what their name holds.

use onward_engine::list::PlanQuery;
use onward_engine::{Caller, Engine};
use rmcp::model::{ArgumentInfo, CompleteResult, CompletionInfo, ErrorData};

use super::error;

/// How many plans are looked through.
const SEEN: u32 = 500;
/// How many are offered.
const OFFERED: usize = 20;

pub(super) async fn complete(
    engine: &Engine,
    caller: &Caller,
    argument: &ArgumentInfo,
) -> Result<CompleteResult, ErrorData> {
    if argument.name != "planId" {
        return Ok(CompleteResult::default());
    }
    let query = PlanQuery {
        limit: SEEN,
        ..PlanQuery::default()
    };
    let page = engine.list_plans(caller, query).await.map_err(error)?;
    let begun = argument.value.to_lowercase();
    let fits = page.plans.iter().filter_map(|listed| {
        let id = listed.sheet.head.id.to_string();
        let name = listed.sheet.brief.name.to_lowercase();
        (id.starts_with(&begun) || name.contains(&begun)).then_some(id)
    });
    let mut values: Vec<String> = fits.take(OFFERED + 1).collect();
    let more = values.len() > OFFERED;
    values.truncate(OFFERED);
    let total = u32::try_from(values.len()).ok().filter(|_| !more);
    let info = CompletionInfo::with_pagination(values, total, more)
        .map_err(|why| ErrorData::internal_error(why, None))?;
    Ok(CompleteResult::new(info))
}
