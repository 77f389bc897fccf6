//! `/healthz`: the process lives. `/readyz`: the database answers, too, within a limit.
//!
//! Both are open to everybody, for whoever watches over the process has no token; so they say no more
//! than this.

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

/// A database that takes longer is not ready.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn alive() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

pub(super) async fn ready(State(site): State<Arc<Site>>) -> Response {
    let asked = tokio::time::timeout(PATIENCE, site.engine.operator(LOCAL, "readiness"));
    let why = match asked.await {
        Ok(Ok(_)) => return Json(json!({ "status": "ready" })).into_response(),
        Ok(Err(why)) => why.to_string(),
        Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
    };
    // What exactly is wrong may name hosts and files, so it goes to the log alone.
    tracing::warn!(%why, "the database does not answer");
    Problem::new(
        Code::Unavailable,
        "the database does not answer",
        "look at the server's log; it goes on by itself when the database is back",
    )
    .into_response()
}
