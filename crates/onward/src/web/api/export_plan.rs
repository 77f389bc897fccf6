//! `GET /plans/{planId}/export`: a plan as one JSON document for `onward import`. Not a tool: the
//! document can have any size.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use onward_engine::Error;

use crate::tools::params;
use crate::web::auth::Principal;
use crate::web::auth_error::TOKEN_REQUIRED;
use crate::web::problem::Problem;
use crate::web::waiting::Lease;
use crate::web::{Site, export};

pub(super) async fn show(
    State(site): State<Arc<Site>>,
    Path(plan): Path<String>,
    request: Request,
) -> Response {
    let extensions = request.extensions();
    let Some(principal) = extensions.get::<Principal>().cloned() else {
        return Problem::from(Error::Unauthorized(TOKEN_REQUIRED)).into_response();
    };
    let lease = extensions.get::<Lease>().cloned().unwrap_or_default();
    let exported = match params::plan_id(&plan) {
        Ok(plan) => export::show(&site, &principal, &lease, plan).await,
        Err(error) => Err(error.into()),
    };
    exported.unwrap_or_else(IntoResponse::into_response)
}
