//! Plan downloads: JSON for `onward import`, and Markdown.

use axum::extract::Path;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;

use super::plan::find_plan;
use super::{PageResult, Visit};
use crate::markdown;
use crate::output::format;

pub(super) async fn json(visit: Visit, Path(id): Path<String>) -> PageResult {
    let plan = find_plan(&visit, &id).await?;
    let document = visit.site.engine.export(&visit.caller, plan).await?;
    let text = format::pretty_json(&document);
    Ok(file(&format!("{plan}.json"), "application/json", text))
}

pub(super) async fn markdown(visit: Visit, Path(id): Path<String>) -> PageResult {
    let plan = find_plan(&visit, &id).await?;
    let whole = visit.site.engine.full_plan(&visit.caller, plan).await?;
    let text = markdown::plan(&whole);
    let kind = "text/markdown; charset=utf-8";
    Ok(file(&format!("{plan}.md"), kind, text))
}

/// A download. Browsers do not render attachments, so scripts in the content never run.
fn file(name: &str, kind: &'static str, text: String) -> axum::response::Response {
    let disposition = format!("attachment; filename=\"{name}\"");
    let headers = [
        (CONTENT_TYPE, kind.to_owned()),
        (CONTENT_DISPOSITION, disposition),
    ];
    (headers, text).into_response()
}
