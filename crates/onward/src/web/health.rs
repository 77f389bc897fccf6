//! `/healthz`: the process is running. `/readyz`: the database also responds and accepts writes,
//! within a time limit. If no process sweeps, the server is ready but degraded: agents can work, and
//! stalls are not detected.
//!
//! Both need no token, because monitoring systems have none, and return only the kinds of problems.
//! So the number of requests must not determine the number of writes: there is at most one per
//! interval.

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
use tokio::task::JoinError;
use tracing::Instrument;

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
type Outcome = Result<Readiness, Failed>;

/// The state of a database that accepts writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// No process sweeps.
    Degraded,
}

/// Why writes fail.
#[derive(Clone)]
struct Failed {
    error: String,
    /// Kinds of problems, without names of hosts, files or tables.
    problems: Vec<String>,
}

impl From<String> for Failed {
    fn from(error: String) -> Self {
        let problems = vec!["unavailable".to_owned()];
        Self { error, problems }
    }
}

impl WriteCheck {
    /// Writes to the database, unless it did so recently. Concurrent requests share the result.
    async fn run(&self, engine: &Engine) -> Outcome {
        let mut last = self.0.lock().await;
        if let Some((at, outcome)) = &*last
            && at.elapsed() < WRITE_INTERVAL
        {
            return outcome.clone();
        }
        let outcome = match within_timeout(engine.check_writable()).await {
            Ok(()) => match within_timeout(engine.sweep_has_no_leader()).await {
                Ok(true) => Ok(Readiness::Degraded),
                Ok(false) => Ok(Readiness::Ready),
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(explain(engine, error).await),
        };
        *last = Some((Instant::now(), outcome.clone()));
        outcome
    }
}

pub(super) async fn alive() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

/// The states, as metrics name them.
pub(super) const STATES: [&str; 3] = ["ready", "degraded", "unavailable"];

/// The state that `/readyz` reports.
pub(super) async fn state(site: &Arc<Site>) -> &'static str {
    let [ready, degraded, unavailable] = STATES;
    match check_in_task(site).await {
        Ok(Ok(Readiness::Ready)) => ready,
        Ok(Ok(Readiness::Degraded)) => degraded,
        Ok(Err(_)) | Err(_) => unavailable,
    }
}

/// In a task, so that a client that disconnects does not cause another write.
async fn check_in_task(site: &Arc<Site>) -> Result<Outcome, JoinError> {
    let site = Arc::clone(site);
    tokio::spawn(async move { check(&site).await }.in_current_span()).await
}

pub(super) async fn ready(State(site): State<Arc<Site>>) -> Response {
    let error = match check_in_task(&site).await {
        Ok(Ok(Readiness::Ready)) => return Json(json!({ "status": "ready" })).into_response(),
        Ok(Ok(Readiness::Degraded)) => {
            tracing::warn!("plans are overdue: no process runs the sweep");
            let problems = ["sweep_without_leader"];
            return Json(json!({ "status": "degraded", "problems": problems })).into_response();
        }
        Ok(Err(failed)) => failed,
        Err(panicked) => panicked.to_string().into(),
    };
    // The error may name hosts and files, so it is only logged.
    let Failed { error, problems } = error;
    tracing::warn!(error, "database unavailable");
    Problem::new(
        Code::Unavailable,
        "the database is unavailable",
        "check the server log; the server recovers when the database is available again",
    )
    .details(Some(json!({ "problems": problems })))
    .into_response()
}

async fn check(site: &Site) -> Outcome {
    within_timeout(site.engine.operator(LOCAL, "readiness")).await?;
    site.write_check.run(&site.engine).await
}

/// Adds why the write may have failed.
async fn explain(engine: &Engine, error: String) -> Failed {
    let obstacles = within_timeout(engine.write_obstacles()).await;
    let obstacles = obstacles.unwrap_or_default();
    if obstacles.is_empty() {
        let problems = vec!["not_writable".to_owned()];
        return Failed { error, problems };
    }
    let named = obstacles
        .iter()
        .map(|obstacle| format!("{}: {}", obstacle.kind.as_str(), obstacle.subject));
    let error = format!("{error}; {}", named.collect::<Vec<_>>().join("; "));
    let kinds = obstacles.iter().map(|one| one.kind.as_str().to_owned());
    let mut problems: Vec<String> = kinds.collect();
    problems.sort();
    problems.dedup();
    Failed { error, problems }
}

pub(super) async fn within_timeout<T>(
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, String> {
    match tokio::time::timeout(TIMEOUT, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no response within {} s", TIMEOUT.as_secs())),
    }
}
