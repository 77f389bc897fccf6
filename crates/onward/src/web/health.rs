//! `/healthz`: the process is running. `/readyz`: the database also responds and accepts writes,
//! within a time limit. If no process sweeps, the server is ready but degraded: agents can work, and
//! stalls are not detected. If a node of a distributed database does not respond, only its tenants are
//! affected.
//!
//! Both need no token, because monitoring systems have none, and return only the kinds of problems, and
//! the ids of nodes.
//! So the number of requests must not determine the number of writes: there is at most one per
//! interval.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use onward_core::Code;
use onward_engine::caller::LOCAL;
use onward_engine::{Engine, Error, NodeReport};
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
#[derive(Clone)]
enum Readiness {
    Ready,
    /// Agents can work, or those of some tenants.
    Degraded(Degraded),
}

/// The problems of a database that accepts writes.
#[derive(Clone)]
struct Degraded {
    has_no_sweep: bool,
    /// Nodes of a distributed database do not respond.
    outage: Option<NodeReport>,
}

impl Degraded {
    fn respond(self) -> Response {
        let mut problems = Vec::new();
        if self.has_no_sweep {
            tracing::warn!("plans are overdue: no process runs the sweep");
            problems.push("sweep_without_leader");
        }
        let mut body = json!({ "status": "degraded" });
        if let Some(outage) = self.outage {
            let down = outage.down.into_iter().map(|node| (node.id, node.name));
            let (ids, names): (Vec<i64>, Vec<String>) = down.unzip();
            let nodes = names.join(", ");
            tracing::warn!(nodes, "nodes of the database do not respond");
            problems.push("node_down");
            body["nodes"] = json!(ids);
        }
        body["problems"] = json!(problems);
        Json(body).into_response()
    }
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
        let written = within_timeout(engine.check_writable()).await;
        let swept = within_timeout(engine.sweep_has_no_leader()).await;
        let fails = written.is_err() || swept.is_err();
        let outage = if fails || engine.has_node_down() {
            partial_outage(engine).await
        } else {
            None
        };
        let outcome = match (written, swept, outage) {
            (_, swept, outage @ Some(_)) => Ok(Readiness::Degraded(Degraded {
                has_no_sweep: matches!(swept, Ok(true)),
                outage,
            })),
            (Err(error), _, None) => Err(explain(engine, error).await),
            (Ok(()), Err(error), None) => Err(error.into()),
            (Ok(()), Ok(true), None) => Ok(Readiness::Degraded(Degraded {
                has_no_sweep: true,
                outage: None,
            })),
            (Ok(()), Ok(false), None) => Ok(Readiness::Ready),
        };
        *last = Some((Instant::now(), outcome.clone()));
        outcome
    }

    /// The state after a failed query: only the node of its tenant may not respond.
    async fn after_failed_query(&self, engine: &Engine, error: String) -> Outcome {
        let mut last = self.0.lock().await;
        if let Some((at, Ok(Readiness::Degraded(degraded)))) = &*last
            && at.elapsed() < WRITE_INTERVAL
            && degraded.outage.is_some()
        {
            return Ok(Readiness::Degraded(degraded.clone()));
        }
        let Some(outage) = partial_outage(engine).await else {
            return Err(error.into());
        };
        let swept = within_timeout(engine.sweep_has_no_leader()).await;
        let outcome = Ok(Readiness::Degraded(Degraded {
            has_no_sweep: matches!(swept, Ok(true)),
            outage: Some(outage),
        }));
        *last = Some((Instant::now(), outcome.clone()));
        outcome
    }
}

async fn partial_outage(engine: &Engine) -> Option<NodeReport> {
    within_timeout(engine.partial_outage()).await.ok().flatten()
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
        Ok(Ok(Readiness::Degraded(_))) => degraded,
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
        Ok(Ok(Readiness::Degraded(degraded))) => return degraded.respond(),
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
    match within_timeout(site.engine.operator(LOCAL, "readiness")).await {
        Ok(_) => site.write_check.run(&site.engine).await,
        Err(error) => {
            site.write_check
                .after_failed_query(&site.engine, error)
                .await
        }
    }
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
