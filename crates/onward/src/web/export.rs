//! Plan downloads of any size: the document is written to a temporary file and sent from there.

use std::sync::Arc;

use axum::response::Response;
use onward_core::PlanId;
use onward_engine::transfer::ExportTarget as _;

use super::Site;
use super::auth::Principal;
use super::problem::Problem;
use super::temporary::{TemporaryFile, unavailable};
use super::waiting::Lease;

/// A plan as a JSON document for `onward import`.
pub(super) async fn show(
    site: &Site,
    principal: &Principal,
    lease: &Lease,
    plan: PlanId,
) -> Result<Response, Problem> {
    site.limits.start_export(principal, lease).await;
    let file = TemporaryFile::new(&site.limits.temporary, principal)?;
    write(site, principal, plan, &file).await?;
    lease.end_work();
    file.into_response("application/json")
}

/// Several plans, one JSON document per line, for `onward import`.
pub(super) async fn show_all(
    site: &Site,
    principal: &Principal,
    lease: &Lease,
    plans: &[PlanId],
) -> Result<Response, Problem> {
    site.limits.start_export(principal, lease).await;
    let file = TemporaryFile::new(&site.limits.temporary, principal)?;
    for plan in plans {
        file.start_document();
        write(site, principal, *plan, &file).await?;
        let ended = file.write(b"\n");
        ended.map_err(|error| file.problem(unavailable(&error)))?;
    }
    lease.end_work();
    file.into_response("application/jsonl")
}

async fn write(
    site: &Site,
    principal: &Principal,
    plan: PlanId,
    file: &Arc<TemporaryFile>,
) -> Result<(), Problem> {
    let target = Arc::clone(file);
    let exported = site.engine.export_to(&principal.caller, plan, target);
    exported.await.map_err(|error| file.problem(error))
}
