//! Completion in prompts and resource templates: unfinished plans, recent artifacts and recent outputs
//! whose id starts with the text or whose name contains it, and recent sessions whose id contains it.

use onward_engine::list::PlanQuery;
use onward_engine::{Caller, Engine};
use rmcp::model::{ArgumentInfo, CompleteResult, CompletionInfo, ErrorData};

use super::protocol_error;

/// Plans, texts or sessions searched.
const MAX_SEARCHED: u32 = 500;
/// Completions returned.
const MAX_VALUES: usize = 20;

pub(super) async fn complete(
    engine: &Engine,
    caller: &Caller,
    argument: &ArgumentInfo,
) -> Result<CompleteResult, ErrorData> {
    let typed = argument.value.to_lowercase();
    let matches = match argument.name.as_str() {
        "planId" => plans(engine, caller, &typed).await?,
        "artifactId" => artifacts(engine, caller, &typed).await?,
        "outputId" => outputs(engine, caller, &typed).await?,
        "sessionId" => sessions(engine, caller, &typed).await?,
        _ => return Ok(CompleteResult::default()),
    };
    let mut values = matches;
    let more = values.len() > MAX_VALUES;
    values.truncate(MAX_VALUES);
    let total = u32::try_from(values.len()).ok().filter(|_| !more);
    let info = CompletionInfo::with_pagination(values, total, more)
        .map_err(|why| ErrorData::internal_error(why, None))?;
    Ok(CompleteResult::new(info))
}

async fn plans(engine: &Engine, caller: &Caller, typed: &str) -> Result<Vec<String>, ErrorData> {
    let query = PlanQuery {
        limit: MAX_SEARCHED,
        ..PlanQuery::default()
    };
    let page = engine.list_plans(caller, query).await;
    let page = page.map_err(protocol_error)?;
    let names = page.plans.into_iter().map(|listed| {
        let sheet = listed.sheet;
        (sheet.head.id.to_string(), sheet.brief.name)
    });
    Ok(matching(names, typed))
}

async fn artifacts(
    engine: &Engine,
    caller: &Caller,
    typed: &str,
) -> Result<Vec<String>, ErrorData> {
    let artifacts = engine.latest_artifacts(caller, MAX_SEARCHED).await;
    let artifacts = artifacts.map_err(protocol_error)?.into_iter();
    let titles = artifacts.map(|(_, artifact)| (artifact.id.to_string(), artifact.title));
    Ok(matching(titles, typed))
}

async fn outputs(engine: &Engine, caller: &Caller, typed: &str) -> Result<Vec<String>, ErrorData> {
    let outputs = engine.latest_outputs(caller, MAX_SEARCHED).await;
    let outputs = outputs.map_err(protocol_error)?.into_iter();
    let titles = outputs.map(|(_, output)| (output.id.to_string(), output.title));
    Ok(matching(titles, typed))
}

/// The ids that start with the text, or whose title contains it.
fn matching(titles: impl Iterator<Item = (String, String)>, typed: &str) -> Vec<String> {
    let matches =
        titles.filter(|(id, title)| id.starts_with(typed) || title.to_lowercase().contains(typed));
    matches.map(|(id, _)| id).take(MAX_VALUES + 1).collect()
}

async fn sessions(engine: &Engine, caller: &Caller, typed: &str) -> Result<Vec<String>, ErrorData> {
    let sessions = engine.list_sessions(caller, MAX_SEARCHED).await;
    let sessions = sessions.map_err(protocol_error)?;
    let ids = sessions.into_iter().map(|line| line.session.id);
    let matches = ids.filter(|id| id.to_lowercase().contains(typed));
    Ok(matches.take(MAX_VALUES + 1).collect())
}
