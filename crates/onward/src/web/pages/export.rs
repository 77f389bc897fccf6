//! Plan downloads: JSON for `onward import`, and Markdown.

use axum::extract::Path;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;

use super::plan::find_plan;
use super::{PageResult, Visit};
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
