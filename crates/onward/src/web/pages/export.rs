//! A plan to take away: as JSON for `onward import`, as Markdown for people.

use axum::extract::Path;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;

use super::plan::named;
use super::{Page, Visit};
use crate::markdown;
use crate::output::words;

pub(super) async fn json(visit: Visit, Path(id): Path<String>) -> Page {
    let plan = named(&visit, &id).await?;
    let document = visit.site.engine.export(&visit.caller, plan).await?;
    let text = words::pretty_json(&document);
    Ok(file(&format!("{plan}.json"), "application/json", text))
}

pub(super) async fn markdown(visit: Visit, Path(id): Path<String>) -> Page {
    let plan = named(&visit, &id).await?;
    let whole = visit.site.engine.whole_plan(&visit.caller, plan).await?;
    let text = markdown::plan(&whole);
    let kind = "text/markdown; charset=utf-8";
    Ok(file(&format!("{plan}.md"), kind, text))
}

/// A file that a browser keeps and does not show: nothing in it is run here.
fn file(name: &str, kind: &'static str, text: String) -> axum::response::Response {
    let kept = format!("attachment; filename=\"{name}\"");
    let headers = [(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, kept)];
    (headers, text).into_response()
}
