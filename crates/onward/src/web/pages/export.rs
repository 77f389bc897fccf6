//! Plan downloads: JSON for `onward import`, of one plan or of the selected ones, and Markdown.

use axum::extract::Path;
use axum::http::header::CONTENT_DISPOSITION;
use axum::response::Response;
use onward_engine::transfer::ExportTarget as _;

use super::actions::MAX_SELECTED;
use super::plan::find_plan;
use super::{FormPost, PageResult, Visit, redirect};
use crate::markdown;
use crate::web::export;
use crate::web::temporary::{TemporaryFile, unavailable};

/// Bytes of a plan that is rendered as Markdown, in memory.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

pub(super) async fn json(visit: Visit, Path(id): Path<String>) -> PageResult {
    let plan = find_plan(&visit, &id).await?;
    let Visit {
        site,
        principal,
        lease,
        ..
    } = &visit;
    let mut response = export::show(site, principal, lease, plan).await?;
    name(&mut response, &format!("{plan}.json"));
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
    let Visit {
        site,
        principal,
        lease,
        ..
    } = &visit;
    let mut response = export::show_all(site, principal, lease, &plans).await?;
    name(&mut response, "plans.jsonl");
    Ok(response)
}

pub(super) async fn markdown(visit: Visit, Path(id): Path<String>) -> PageResult {
    let plan = find_plan(&visit, &id).await?;
    let Visit {
        site,
        principal,
        lease,
        ..
    } = &visit;
    site.limits.start_export(principal, lease).await;
    let whole = site
        .engine
        .full_plan_within(&visit.caller, plan, MAX_BYTES)
        .await?;
    // A client that reads slowly holds a file, not memory.
    let file = TemporaryFile::new(&site.limits.temporary, principal)?;
    let written = file.write(markdown::plan(&whole).as_bytes());
    written.map_err(|error| file.problem(unavailable(&error)))?;
    lease.end_work();
    let mut response = file.into_response("text/markdown; charset=utf-8")?;
    name(&mut response, &format!("{plan}.md"));
    Ok(response)
}

/// Names a download. Browsers do not render attachments, so scripts in the content never run.
fn name(response: &mut Response, file: &str) {
    let disposition = format!("attachment; filename=\"{file}\"");
    if let Ok(disposition) = disposition.try_into() {
        response
            .headers_mut()
            .insert(CONTENT_DISPOSITION, disposition);
    }
}
