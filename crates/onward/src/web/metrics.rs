//! `/metrics`: counters, histograms and gauges in the Prometheus text format.
//!
//! The metrics cover the whole server, so only the local user and tokens of the server's own tenant
//! can read them. Numbers of plans and bytes are totals over all tenants. No label contains a tenant,
//! plan or user.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use metrics::{
    Gauge, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use onward_core::Code;
use onward_core::finding::Kind;
use onward_engine::embed::{EmbedError, EmbedRound};
use onward_engine::retention::RetentionReport;
use onward_engine::sweep::SweepRound;
use onward_engine::totals::Totals;
use onward_engine::{Caller, Engine, Error, Indexed};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tracing::Instrument;

use super::Site;
use super::health;
use super::problem::Problem;
use crate::notify::Outcome;
use crate::quota::Usage;

/// Content type of the Prometheus text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Interval at which recorded samples are merged, which bounds memory.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);
/// Histogram buckets, in seconds.
const SECONDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// The totals of all tenants are valid for at least this long, and for this multiple of the time that
/// counting took.
const MIN_LIFETIME: Duration = Duration::from_secs(5);
const LIFETIME_FACTOR: u32 = 20;
/// Time limit for counting within a scrape.
const COUNT_TIMEOUT: Duration = Duration::from_secs(5);

/// Installs the process-wide recorder.
pub(super) fn start() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .install_recorder()?;
    describe_counter!("onward_tool_calls_total", "Tool calls, by tool and outcome");
    describe_histogram!(
        "onward_tool_call_seconds",
        "Duration of tool calls, by tool"
    );
    describe_counter!(
        "onward_http_requests_total",
        "HTTP requests, by route, method and status"
    );
    describe_histogram!(
        "onward_http_request_seconds",
        "Time to the response headers, by route"
    );
    describe_gauge!("onward_open_streams", "Open streams");
    describe_gauge!(
        "onward_plans",
        "Plans of all tenants, by status, and by attention"
    );
    describe_gauge!(
        "onward_stored_bytes",
        "Size of the database: all tables and indexes of all tenants"
    );
    describe_gauge!(
        "onward_tenant_stored_bytes_max",
        "Stored texts of the largest active tenant, if there is a quota"
    );
    describe_gauge!(
        "onward_stored_bytes_quota",
        "Quota of stored texts of a tenant"
    );
    describe_gauge!(
        "onward_readiness",
        "1 for the state that /readyz reports, 0 for the others"
    );
    describe_gauge!(
        "onward_sweep_leader",
        "1 if this process runs the sweep, 0 if another one does"
    );
    describe_gauge!(
        "onward_database_connections",
        "Connections to PostgreSQL that are open or idle, calls that wait for one, and the maximum"
    );
    describe_gauge!(
        "onward_request_log_bytes",
        "Size of the request log; on SQLite an estimate for the server's own tenant"
    );
    describe_counter!(
        "onward_chunks_embedded_total",
        "Chunks embedded for semantic search"
    );
    describe_counter!(
        "onward_chunks_rejected_total",
        "Chunks rejected by the embedding model"
    );
    describe_counter!(
        "onward_embedding_failures_total",
        "Embedding rounds that failed because the model was unavailable"
    );
    describe_counter!("onward_sweep_rounds_total", "Sweep rounds, by outcome");
    describe_histogram!(
        "onward_sweep_round_seconds",
        "Duration of a round of the sweep"
    );
    describe_gauge!(
        "onward_sweep_overdue_plans",
        "Plans that are due for a check of the sweep, of all tenants"
    );
    describe_counter!(
        "onward_sweep_plans_checked_total",
        "Plans checked by the sweep"
    );
    describe_counter!(
        "onward_sweep_plans_changed_total",
        "Plans with a stall that the sweep handled"
    );
    describe_counter!(
        "onward_sweep_plans_failed_total",
        "Plans that the sweep could not check"
    );
    describe_counter!(
        "onward_notifications_total",
        "Attempts to send a notification, by kind and outcome"
    );
    gauge!("onward_open_streams").set(0);
    for kind in Kind::ALL {
        for outcome in ["sent", "waiting", "given_up"] {
            let labels = [("kind", kind.as_str()), ("outcome", outcome)];
            counter!("onward_notifications_total", &labels).absolute(0);
        }
    }
    for outcome in ["ok", "failed"] {
        counter!("onward_sweep_rounds_total", "outcome" => outcome).absolute(0);
    }
    for name in [
        "onward_chunks_embedded_total",
        "onward_chunks_rejected_total",
        "onward_embedding_failures_total",
    ] {
        counter!(name).absolute(0);
    }
    counter!("onward_sweep_plans_checked_total").absolute(0);
    counter!("onward_sweep_plans_changed_total").absolute(0);
    counter!("onward_sweep_plans_failed_total").absolute(0);
    Ok(handle)
}

/// Merges samples periodically, also when the metrics are never scraped.
pub(super) async fn run_upkeep(metrics: PrometheusHandle) {
    let mut tick = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        tick.tick().await;
        metrics.run_upkeep();
    }
}

/// Counts a sweep round and logs its findings and errors.
pub(crate) fn record_sweep(round: &Result<SweepRound, Error>) {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    match round {
        Ok(round) => {
            counter!("onward_sweep_rounds_total", "outcome" => "ok").increment(1);
            histogram!("onward_sweep_round_seconds").record(round.took.as_secs_f64());
            counter!("onward_sweep_plans_checked_total").increment(count(round.checked));
            counter!("onward_sweep_plans_changed_total").increment(count(round.changed.len()));
            counter!("onward_sweep_plans_failed_total").increment(count(round.failed.len()));
            for (tenant, plan, error) in &round.failed {
                tracing::error!(%tenant, %plan, %error, "cannot check a plan");
            }
            for (due, calls) in &round.calls.sessions {
                let (tenant, session) = (&due.tenant, &due.session);
                tracing::info!(%tenant, %session, calls, "interrupted calls past their deadline");
            }
            for (due, error) in &round.calls.failed {
                let (tenant, session) = (&due.tenant, &due.session);
                tracing::error!(%tenant, %session, %error, "cannot check a session");
            }
        }
        Err(error) => {
            counter!("onward_sweep_rounds_total", "outcome" => "failed").increment(1);
            tracing::warn!(%error, "sweep failed");
        }
    }
}

/// Counts an embedding round and logs rejected chunks and errors.
pub(super) fn record_embedding(round: &Result<EmbedRound, EmbedError>) {
    match round {
        Ok(round) => {
            counter!("onward_chunks_embedded_total").increment(round.embedded);
            counter!("onward_chunks_rejected_total").increment(round.rejected);
            if round.rejected > 0 {
                tracing::warn!(
                    chunks = round.rejected,
                    "the embedding model rejected some chunks"
                );
            }
        }
        Err(error) => {
            counter!("onward_embedding_failures_total").increment(1);
            tracing::warn!(%error, "cannot embed chunks");
        }
    }
}

/// Logs vector indexes that were built or dropped.
pub(super) fn record_indexing(indexed: &Result<Indexed, Error>) {
    match indexed {
        Ok(Indexed {
            made: 0,
            dropped: 0,
        }) => {}
        Ok(Indexed { made, dropped }) => {
            tracing::info!(made, dropped, "updated vector indexes");
        }
        Err(error) => tracing::warn!(%error, "cannot update vector indexes"),
    }
}

/// Counts an attempt to send a notification and logs failures.
pub(super) fn record_notification(outcome: &Result<Outcome, Error>) {
    match outcome {
        Ok(Outcome {
            kind,
            delivery,
            why,
        }) => {
            let labels = [("kind", kind.as_str()), ("outcome", delivery.as_str())];
            counter!("onward_notifications_total", &labels).increment(1);
            if let Some(why) = why {
                tracing::warn!(%kind, outcome = %delivery, error = why, "cannot send a notification");
            }
        }
        Err(error) => tracing::warn!(%error, "cannot send notifications"),
    }
}

pub(super) async fn show(State(site): State<Arc<Site>>, request: Request) -> Response {
    let caller = request.extensions().get::<Caller>();
    let Some(caller) = caller.filter(|caller| *caller.tenant == *site.tenant) else {
        return Problem::new(
            Code::Forbidden,
            "metrics cover the whole server",
            format!("use a token of the tenant `{}`", site.tenant),
        )
        .into_response();
    };
    // Together, because each of them waits for an unavailable database.
    let (totals, readiness, log_bytes) = tokio::join!(
        count(Arc::clone(&site)),
        health::state(&site),
        health::within_timeout(site.engine.request_log_bytes(caller)),
    );
    match totals {
        Ok(totals) => record_totals(&totals),
        Err(error) => tracing::warn!(%error, "cannot count plans and bytes"),
    }
    for state in health::STATES {
        let is_current = state == readiness;
        set(
            &gauge!("onward_readiness", "state" => state),
            u64::from(is_current),
        );
    }
    match log_bytes {
        Ok(bytes) => set(&gauge!("onward_request_log_bytes"), bytes),
        Err(error) => tracing::warn!(%error, "cannot measure the request log"),
    }
    set(
        &gauge!("onward_sweep_leader"),
        u64::from(site.engine.leads_sweep()),
    );
    let overdue = site.engine.overdue_plans();
    set(
        &gauge!("onward_sweep_overdue_plans"),
        u64::try_from(overdue).unwrap_or(u64::MAX),
    );
    if let Some(connections) = site.engine.connections() {
        for (state, number) in [
            ("open", connections.open),
            ("idle", connections.idle),
            ("waiting", connections.waiting),
            ("max", connections.max),
        ] {
            let number = u64::try_from(number).unwrap_or(u64::MAX);
            set(
                &gauge!("onward_database_connections", "state" => state),
                number,
            );
        }
    }
    if let Some(quota) = &site.tool_context.quota {
        let Usage { bytes, max_bytes } = quota.largest();
        set(&gauge!("onward_tenant_stored_bytes_max"), bytes);
        set(&gauge!("onward_stored_bytes_quota"), max_bytes);
    }
    ([(CONTENT_TYPE, TEXT)], site.metrics.render()).into_response()
}

/// The totals, if counting takes no longer than a scrape may take. Otherwise it continues, for the next
/// scrape.
async fn count(site: Arc<Site>) -> Result<Arc<Totals>, String> {
    let counting = async move { site.totals.get(&site.engine).await };
    let counting = tokio::spawn(counting.in_current_span());
    match timeout(COUNT_TIMEOUT, counting).await {
        Ok(Ok(counted)) => counted.map_err(|error| error.to_string()),
        Ok(Err(panicked)) => Err(panicked.to_string()),
        Err(_) => Err(format!("no response within {} s", COUNT_TIMEOUT.as_secs())),
    }
}

fn record_totals(totals: &Totals) {
    for (status, plans) in &totals.statuses {
        set(&gauge!("onward_plans", "status" => status.as_str()), *plans);
    }
    for count in &totals.attention {
        let word = count.word.as_str();
        set(&gauge!("onward_plans", "attention" => word), count.plans);
    }
    set(&gauge!("onward_stored_bytes"), totals.bytes);
}

#[allow(clippy::cast_precision_loss, reason = "gauges are floats")]
fn set(gauge: &Gauge, value: u64) {
    gauge.set(value as f64);
}

/// The totals of the last scrape, for a multiple of the time that counting took.
#[derive(Default)]
pub(super) struct CachedTotals(Mutex<Option<(Instant, Arc<Totals>)>>);

impl CachedTotals {
    /// Concurrent scrapes share one count.
    async fn get(&self, engine: &Engine) -> Result<Arc<Totals>, Error> {
        let mut cached = self.0.lock().await;
        let started = Instant::now();
        if let Some((valid_until, totals)) = &*cached
            && started < *valid_until
        {
            return Ok(Arc::clone(totals));
        }
        let totals = Arc::new(engine.totals().await?);
        let lifetime = MIN_LIFETIME.max(started.elapsed() * LIFETIME_FACTOR);
        *cached = Some((Instant::now() + lifetime, Arc::clone(&totals)));
        Ok(totals)
    }
}

/// Logs data deleted by retention.
pub(super) fn record_deletion(tenant: &str, report: Result<RetentionReport, Error>) {
    match report {
        Ok(report) if report == RetentionReport::default() => {}
        Ok(report) => tracing::info!(
            tenant,
            plans = report.plans.len(),
            tool_calls = report.tool_calls,
            extractions = report.extractions,
            sessions = report.sessions,
            "deleted data older than the `[retention]` settings"
        ),
        Err(error) => tracing::warn!(tenant, %error, "cannot delete old data"),
    }
}
