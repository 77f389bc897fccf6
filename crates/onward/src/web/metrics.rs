//! `/metrics`: what happened, counted, in the text format of Prometheus.
//!
//! The figures are about the whole server, so they are for whoever runs it: the user of this machine,
//! or a token of the server's own tenant. No label names a tenant, a plan or a person.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use onward_core::Code;
use onward_core::finding::Kind;
use onward_engine::embed::{EmbedError, EmbedRound};
use onward_engine::retention::Forgotten;
use onward_engine::sweep::Round;
use onward_engine::{Caller, Error, Indexed};

use super::Site;
use super::problem::Problem;
use crate::notify::Outcome;

/// The text format, as Prometheus asks for it.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// How often what was observed is brought together, so that it does not pile up.
const UPKEEP: Duration = Duration::from_secs(5);
/// Seconds that durations are sorted by.
const SECONDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// Counts from now on, for the whole process.
pub(super) fn start() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .install_recorder()?;
    describe_counter!("onward_tool_calls_total", "Tool calls, by tool and outcome");
    describe_histogram!(
        "onward_tool_call_seconds",
        "How long a tool call took, by tool"
    );
    describe_counter!(
        "onward_http_requests_total",
        "Requests, by route, method and status"
    );
    describe_histogram!(
        "onward_http_request_seconds",
        "Until a request was answered, by route"
    );
    describe_gauge!("onward_open_streams", "Streams that are open");
    describe_gauge!(
        "onward_plans",
        "Plans of the server's own tenant, by status"
    );
    describe_counter!(
        "onward_chunks_embedded_total",
        "Chunks that can be found by what they mean"
    );
    describe_counter!(
        "onward_chunks_refused_total",
        "Chunks that the embedding model does not take"
    );
    describe_counter!(
        "onward_embedding_failures_total",
        "Rounds in which the embedding model did not answer"
    );
    describe_counter!(
        "onward_sweep_rounds_total",
        "Rounds of the sweep, by outcome"
    );
    describe_counter!(
        "onward_sweep_plans_looked_at_total",
        "Plans that the sweep looked at"
    );
    describe_counter!(
        "onward_sweep_plans_acted_on_total",
        "Plans whose stalls the sweep acted on"
    );
    describe_counter!(
        "onward_sweep_plans_failed_total",
        "Plans that could not be looked at"
    );
    describe_counter!(
        "onward_notices_total",
        "Tries to tell people of a finding, by kind and outcome"
    );
    gauge!("onward_open_streams").set(0);
    for kind in Kind::ALL {
        for outcome in ["sent", "waiting", "given_up"] {
            let labels = [("kind", kind.as_str()), ("outcome", outcome)];
            counter!("onward_notices_total", &labels).absolute(0);
        }
    }
    for outcome in ["ok", "failed"] {
        counter!("onward_sweep_rounds_total", "outcome" => outcome).absolute(0);
    }
    for name in [
        "onward_chunks_embedded_total",
        "onward_chunks_refused_total",
        "onward_embedding_failures_total",
    ] {
        counter!(name).absolute(0);
    }
    counter!("onward_sweep_plans_looked_at_total").absolute(0);
    counter!("onward_sweep_plans_acted_on_total").absolute(0);
    counter!("onward_sweep_plans_failed_total").absolute(0);
    Ok(handle)
}

/// Keeps memory bounded where nobody asks for the figures.
pub(super) async fn keep_up(figures: PrometheusHandle) {
    let mut tick = tokio::time::interval(UPKEEP);
    loop {
        tick.tick().await;
        figures.run_upkeep();
    }
}

/// Counts a round of the sweep, and tells the log about what it could not do.
pub(crate) fn swept(round: &Result<Round, Error>) {
    let count = |list: usize| u64::try_from(list).unwrap_or(u64::MAX);
    match round {
        Ok(round) => {
            counter!("onward_sweep_rounds_total", "outcome" => "ok").increment(1);
            counter!("onward_sweep_plans_looked_at_total").increment(count(round.looked_at));
            counter!("onward_sweep_plans_acted_on_total").increment(count(round.acted_on.len()));
            counter!("onward_sweep_plans_failed_total").increment(count(round.failed.len()));
            for (tenant, plan, why) in &round.failed {
                tracing::error!(%tenant, %plan, %why, "a plan cannot be looked at");
            }
            for (due, calls) in &round.calls.sessions {
                let (tenant, session) = (&due.tenant, &due.session);
                tracing::info!(%tenant, %session, calls, "the sweep gave up calls past their time");
            }
            for (due, why) in &round.calls.failed {
                let (tenant, session) = (&due.tenant, &due.session);
                tracing::error!(%tenant, %session, %why, "a session cannot be looked at");
            }
            for (tenant, plan) in &round.acted_on {
                tracing::info!(%tenant, %plan, "the sweep acted on a stall");
            }
        }
        Err(why) => {
            counter!("onward_sweep_rounds_total", "outcome" => "failed").increment(1);
            tracing::warn!(%why, "the sweep cannot work");
        }
    }
}

/// Counts a round of asking the model what chunks mean, and tells the log where it does not answer.
pub(super) fn embedded(round: &Result<EmbedRound, EmbedError>) {
    match round {
        Ok(round) => {
            counter!("onward_chunks_embedded_total").increment(round.embedded);
            counter!("onward_chunks_refused_total").increment(round.refused);
            if round.refused > 0 {
                tracing::warn!(
                    chunks = round.refused,
                    "the embedding model refuses some chunks"
                );
            }
        }
        Err(why) => {
            counter!("onward_embedding_failures_total").increment(1);
            tracing::warn!(%why, "what is stored cannot be embedded");
        }
    }
}

/// Tells the log of indexes that were built or dropped.
pub(super) fn indexed(done: &Result<Indexed, Error>) {
    match done {
        Ok(Indexed {
            made: 0,
            dropped: 0,
        }) => {}
        Ok(Indexed { made, dropped }) => {
            tracing::info!(made, dropped, "indexes of what chunks mean");
        }
        Err(why) => tracing::warn!(%why, "the index of what chunks mean cannot be built"),
    }
}

/// Counts a try to tell people of a finding, and tells the log where it came to nothing.
pub(super) fn notified(tried: &Result<Outcome, Error>) {
    match tried {
        Ok(Outcome {
            kind,
            delivery,
            why,
        }) => {
            let labels = [("kind", kind.as_str()), ("outcome", delivery.as_str())];
            counter!("onward_notices_total", &labels).increment(1);
            if let Some(why) = why {
                tracing::warn!(%kind, outcome = %delivery, why, "a finding could not be told");
            }
        }
        Err(why) => tracing::warn!(%why, "nobody can be told of findings"),
    }
}

pub(super) async fn show(State(site): State<Arc<Site>>, request: Request) -> Response {
    let caller = request.extensions().get::<Caller>();
    let Some(caller) = caller.filter(|caller| *caller.tenant == *site.tenant) else {
        return Problem::new(
            Code::Forbidden,
            "the figures are about the whole server",
            format!("ask with a token of the tenant `{}`", site.tenant),
        )
        .into_response();
    };
    match site.engine.count_plans(caller).await {
        Ok(counts) => {
            for status in onward_core::PlanStatus::ALL {
                let of_status = counts.iter().filter(|counted| counted.status == status);
                let plans: u64 = of_status.map(|counted| counted.plans).sum();
                #[allow(clippy::cast_precision_loss, reason = "a gauge is a float")]
                gauge!("onward_plans", "status" => status.as_str()).set(plans as f64);
            }
        }
        Err(why) => tracing::warn!(%why, "plans cannot be counted"),
    }
    ([(CONTENT_TYPE, TEXT)], site.figures.render()).into_response()
}

/// Tells the log what was forgotten.
pub(super) fn forgotten(tenant: &str, forgotten: Result<Forgotten, Error>) {
    match forgotten {
        Ok(forgotten) if forgotten == Forgotten::default() => {}
        Ok(forgotten) => tracing::info!(
            tenant,
            plans = forgotten.plans.len(),
            tool_calls = forgotten.tool_calls,
            extractions = forgotten.extractions,
            sessions = forgotten.sessions,
            "forgot what is older than `[retention]` says"
        ),
        Err(why) => tracing::warn!(tenant, %why, "nothing could be forgotten"),
    }
}
