//! Plan downloads: JSON for `onward import`, of one plan or of the selected ones, and Markdown.

use axum::extract::Path;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;

use super::actions::MAX_SELECTED;
use super::plan::find_plan;
use super::{FormPost, PageResult, Visit, redirect};
use crate::markdown;
use crate::web::export;

/// Bytes of a plan that is rendered as Markdown, in memory.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

pub(super) async fn json(visit: Visit, Path(id): Path<String>) -> PageResult {
    let plan = find_plan(&visit, &id).await?;
    let mut response = export::show(&visit.site, &visit.caller, plan).await?;
    if let Ok(disposition) = disposition(&format!("{plan}.json")).try_into() {
        response
            .headers_mut()
            .insert(CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// The selected plans in one file, one JSON document per line.
pub(super) async fn selected(post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let mut plans = Vec::new();
    for id in fields.all("plan").take(MAX_SELECTED) {
        plans.push(find_plan(&visit, id).await?);
    }
    if plans.is_empty() {
        return Ok(redirect("/plans?done=none_selected"));
    }
    let mut response = export::show_all(&visit.site, &visit.caller, &plans).await?;
    if let Ok(disposition) = disposition("plans.jsonl").try_into() {
        response
            .headers_mut()
            .insert(CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

pub(super) async fn markdown(visit: Visit, Path(id): Path<String>) -> PageResult {
    let plan = find_plan(&visit, &id).await?;
    let site = &visit.site;
    let _permit = site.limits.exports.acquire().await;
    let whole = site
        .engine
        .full_plan_within(&visit.caller, plan, MAX_BYTES)
        .await?;
    let text = markdown::plan(&whole);
    let kind = "text/markdown; charset=utf-8";
    Ok(file(&format!("{plan}.md"), kind, text))
}

/// A download. Browsers do not render attachments, so scripts in the content never run.
fn file(name: &str, kind: &'static str, text: String) -> axum::response::Response {
    let headers = [
        (CONTENT_TYPE, kind.to_owned()),
        (CONTENT_DISPOSITION, disposition(name)),
    ];
    (headers, text).into_response()
}

fn disposition(name: &str) -> String {
    format!("attachment; filename=\"{name}\"")
}
