//! `/healthz`: the process is running. `/readyz`: the database responds within a time limit, too.
//!
//! Both need no token, because monitoring systems have none, and return no details.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use onward_core::Code;
use onward_engine::caller::LOCAL;
use serde_json::json;

use super::Site;
use super::problem::Problem;

/// Time limit for the database.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) async fn alive() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

pub(super) async fn ready(State(site): State<Arc<Site>>) -> Response {
    let query = tokio::time::timeout(TIMEOUT, site.engine.operator(LOCAL, "readiness"));
    let error = match query.await {
        Ok(Ok(_)) => return Json(json!({ "status": "ready" })).into_response(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no response within {} s", TIMEOUT.as_secs()),
    };
    // The error may name hosts and files, so it is only logged.
    tracing::warn!(%error, "database unavailable");
    Problem::new(
        Code::Unavailable,
        "the database is unavailable",
        "check the server log; the server recovers when the database is available again",
    )
    .into_response()
}
