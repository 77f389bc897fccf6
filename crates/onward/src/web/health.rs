//! `/healthz`: the process is running. `/readyz`: the database also responds and accepts writes,
//! within a time limit.
//!
//! Both need no token, because monitoring systems have none, and return no details. So the number
//! of requests must not determine the number of writes: there is at most one per interval.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use onward_core::Code;
use onward_engine::caller::LOCAL;
use onward_engine::{Engine, Error};
use serde_json::json;
use tokio::sync::Mutex;

use super::Site;
use super::problem::Problem;

/// Time limit for the database, for a query and for a write.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum interval between writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);

/// The last check whether the database accepts writes.
#[derive(Default)]
pub(super) struct WriteCheck(Mutex<Option<(Instant, Outcome)>>);

/// Whether a check succeeded; otherwise the reason.
type Outcome = Result<(), String>;

impl WriteCheck {
    /// Writes to the database, unless it did so recently. Concurrent requests share the result.
    async fn run(&self, engine: &Engine) -> Outcome {
        let mut last = self.0.lock().await;
        if let Some((at, outcome)) = &*last
            && at.elapsed() < WRITE_INTERVAL
        {
            return outcome.clone();
        }
        let outcome = within_timeout(engine.check_writable()).await;
        *last = Some((Instant::now(), outcome.clone()));
        outcome
    }
}

pub(super) async fn alive() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

pub(super) async fn ready(State(site): State<Arc<Site>>) -> Response {
    // In a task, so that a client that disconnects does not cause another write.
    let checked = tokio::spawn(async move { check(&site).await }).await;
    let error = match checked {
        Ok(Ok(())) => return Json(json!({ "status": "ready" })).into_response(),
        Ok(Err(error)) => error,
        Err(panicked) => panicked.to_string(),
    };
    // The error may name hosts and files, so it is only logged.
    tracing::warn!(error, "database unavailable");
    Problem::new(
        Code::Unavailable,
        "the database is unavailable",
        "check the server log; the server recovers when the database is available again",
    )
    .into_response()
}

async fn check(site: &Site) -> Outcome {
    within_timeout(site.engine.operator(LOCAL, "readiness")).await?;
    site.write_check.run(&site.engine).await
}

async fn within_timeout<T>(call: impl Future<Output = Result<T, Error>>) -> Outcome {
    match tokio::time::timeout(TIMEOUT, call).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no response within {} s", TIMEOUT.as_secs())),
    }
}
